"""Generates valid and nearly valid requests from the description of an API (OpenAPI 3.1).

This module supports only the parts of OpenAPI that the project's own descriptions use, and fails for all
other parts.
"""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

Schema = Mapping[str, Any]

_JSON = "application/json"
_OWNED = "/v1/"
_METHODS = frozenset(("get", "post", "put", "delete"))
_LONG = 2**63
_TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", "a", "news", "*", "a,b", "../x", "\0", "\ud83d", "\u202e", "-", "_all", "9" * 30]
    ),
    st.text(max_size=20),
    st.just("x" * 3_000),
)
_NUMBERS = st.sampled_from([0, 1, -1, 2, 100, _LONG, -_LONG - 1, 10**400, 1.5, 1e308, True])
# Values whose type is wrong for most schemas.
_ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), _NUMBERS, _TEXTS, st.just([]), st.just({}), st.just([[[]]]), st.just({"": None})
)
# Bodies that are invalid or unusual JSON.
_RAW = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [b"", b"{", b"[" * 100_000, b'{"a":' * 20_000, b"nul", b"\xef\xbb\xbf{}", b'"\xff"', b"NaN", b"1e999"]
    ),
)


@dataclasses.dataclass(frozen=True)
class Sent:
    """A request to send."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    # The status codes of responses that the description documents.
    answers: tuple[str, ...]


class Description:
    """The OpenAPI description of an API."""

    def __init__(self, openapi: Mapping[str, Any]) -> None:
        self._schemas: Mapping[str, Schema] = openapi.get("components", {}).get("schemas", {})
        self.operations = [
            (method, path, operation)
            for path, methods in openapi["paths"].items()
            for method, operation in methods.items()
            if method in _METHODS
        ]

    def requests(self, *, known: Mapping[str, list[str]]) -> st.SearchStrategy[Sent]:
        """Return requests for all operations.

        Args:
            known: Existing values, by the name of a parameter or field, so that some requests find something.
        """
        return st.sampled_from(self.operations).flatmap(lambda each: self._of(*each, known=known))

    def _of(
        self, method: str, path: str, operation: Schema, *, known: Mapping[str, list[str]]
    ) -> st.SearchStrategy[Sent]:
        parameters = operation.get("parameters", [])
        content = operation.get("requestBody", {}).get("content", {})
        media_type, described = next(iter(content.items()), (_JSON, None))
        schema = None if described is None else described["schema"]
        # The sidecar passes other paths on to Elasticsearch, where a different method could create an index.
        is_owned = path.startswith(_OWNED)

        @st.composite
        def build(draw: st.DrawFn) -> Sent:
            target, query = path, []
            for each in parameters:
                value = self._value(draw, each["schema"], known, each["name"])
                text = value if isinstance(value, str) else json.dumps(value)
                encoded = quote(text.encode(errors="surrogatepass"), safe="")
                if each["in"] == "path":
                    target = target.replace(f"{{{each['name']}}}", encoded or "%20")
                elif each.get("required") or draw(st.booleans()):
                    query += [f"{each['name']}={encoded}"] * draw(st.sampled_from([1, 1, 1, 2]))
            body = b""
            if schema is not None and draw(st.integers(0, 9)):
                body = json.dumps(self._value(draw, schema, known, "")).encode()
            elif schema is not None:
                body = draw(_RAW)
            given = draw(
                st.sampled_from([media_type] * 9 + ["", "text/html", "application/json;charset=latin-1"])
            )
            headers = {"Content-Type": given} if given else {}
            return Sent(
                method=draw(st.sampled_from([method.upper()] * 19 + ["PUT"])) if is_owned else method.upper(),
                target=target + ("?" + "&".join(query) if query else ""),
                headers=headers,
                body=body,
                answers=tuple(operation["responses"]),
            )

        return build()

    def _value(self, draw: st.DrawFn, schema: Schema, known: Mapping[str, list[str]], name: str) -> Any:
        """Return a value that matches the schema in most cases."""
        if not draw(st.integers(0, 11)):
            return draw(_ODD)
        if name in known and draw(st.integers(0, 3)):
            return draw(st.sampled_from(known[name]))
        if "$ref" in schema:
            return self._value(draw, self._schemas[schema["$ref"].rpartition("/")[2]], known, name)
        if "anyOf" in schema:
            return self._value(draw, draw(st.sampled_from(schema["anyOf"])), known, name)
        if "enum" in schema:
            return draw(st.sampled_from(schema["enum"]))
        kind = schema.get("type")
        if kind == "object" or kind is None:
            return self._object(draw, schema, known)
        if kind == "array":
            count = draw(st.integers(0, 3))
            return [self._value(draw, schema.get("items", {}), known, name) for _ in range(count)]
        if kind == "string":
            return draw(_TEXTS)
        if kind in {"integer", "number"}:
            least, most = schema.get("minimum", 0), schema.get("maximum", 1_000)
            return draw(st.sampled_from([least, most, least - 1, most + 1]) | st.integers(least, most))
        if kind == "boolean":
            return draw(st.booleans())
        assert kind == "null", schema
        return None

    def _object(self, draw: st.DrawFn, schema: Schema, known: Mapping[str, list[str]]) -> Any:
        required = schema.get("required", [])
        found = {
            name: self._value(draw, each, known, name)
            for name, each in schema.get("properties", {}).items()
            if draw(st.integers(0, 9 if name in required else 1))
        }
        if not schema.get("properties"):
            # The object is an article, which has the user's fields.
            found = {name: draw(st.sampled_from(known[name]) | _ODD) for name in known if draw(st.booleans())}
        if not draw(st.integers(0, 9)):
            found[draw(_TEXTS)] = draw(_ODD)
        return found
