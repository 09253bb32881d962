"""Random invalid requests to the sidecar: paths, bodies, compression and framing."""

import dataclasses
import gzip
import json
import random
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from tests.soak.odd_bytes import FORGED, large_bodies, misframed, request
from tests.support.stream import words

DEDUPS: tuple[dict[str, Any], ...] = (
    {"dedup": {"root": FORGED, "seq": 1}},
    {"dedup.root": FORGED},
    {"dedup": [{"root": FORGED}]},
    {"dedup": None},
    {"dedup": FORGED},
    {"dedup.root.x": FORGED},
)
_IDS = [str(number) for number in range(40)]
_NAMES = (
    *(
        "a*",
        "_all",
        "",
        "x:a1",
        "_x",
        "<a1-{now/x}>",
        "A",
        "..",
        ".",
        "a,b",
        "a" * 300,
        "\ud83d",
        "-a",
        "?",
        " ",
    ),
    *("<logstash-{now/d}>", "a\0b", "*,-*", "é", "a/b", "#", "+a", "a\\b", "{index}", "%"),
)
_TYPES = (
    *("application/json", "application/x-ndjson", "application/vnd.elasticsearch+json;compatible-with=7"),
    *("application/vnd.elasticsearch+x-ndjson;compatible-with=8", "application/yaml", "application/cbor"),
    *(
        "application/smile",
        "text/plain",
        "",
        "application/json;charset=utf-16",
        "*/*",
        "application/",
        ";",
        "a" * 5_000,
    ),
)
_YAML = b"---\ntext: a harbour council\ndedup:\n  root: " + FORGED.encode() + b"\n"
# {"text": "abc", "dedup": {"root": ...}} in CBOR and Smile.
_CBOR = b"\xa2dtextcabcededup\xa1droot\x78\x20" + FORGED.encode()
_SMILE = b":)\n\x00\xfa\x83text\x42abc\x84dedup\xfa\x83root\x5f" + FORGED.encode() + b"\xfb\xfb"
_QUERIES = (
    *(
        "",
        "",
        "",
        "",
        "refresh",
        "refresh=wait_for",
        "refresh=x",
        "pipeline=_none",
        "pipeline=missing",
        "routing=a",
    ),
    *(
        "require_alias=true",
        "op_type=create",
        "op_type=x",
        "version=3&version_type=external",
        "version=x",
        "timeout=1x",
    ),
    *(
        "if_seq_no=0&if_primary_term=1",
        "if_seq_no=-9",
        "retry_on_conflict=3",
        "filter_path=items.*.error",
        "pretty",
    ),
    *(
        "format=yaml",
        "format=cbor",
        "error_trace",
        "_source=true",
        "source=%7B%7D&source_content_type=application/json",
    ),
    *(
        "wait_for_active_shards=all&timeout=1ms",
        "a=b;c=d",
        "%",
        "%ff=%ff",
        "routing=&routing=%00",
        "&&&",
        "?",
        "x" * 3_000,
    ),
    *(
        "include_type_name=true",
        "detect_noop=false",
        "doc_as_upsert=true",
        "lang=painless",
        "human",
        "#",
        "list_executed_pipelines",
    ),
)
_ACCEPTS = (
    "*/*",
    "application/json",
    "application/yaml",
    "application/cbor",
    "text/html",
    "",
    "application/smile",
)


@dataclasses.dataclass(frozen=True)
class RawRequest:
    """The bytes of a request."""

    # The category by which responses are counted.
    category: str
    content: bytes
    # Whether the client closes its side of the connection after sending the bytes.
    is_ended: bool = False
    # Whether the bytes may be something other than one request, so that 504 after a timeout is correct.
    is_broken: bool = False

    @property
    def method(self) -> str:
        return self.content.partition(b" ")[0].decode("latin-1")


class OddRequests:
    """Draws random requests."""

    def __init__(self, chance: random.Random, *, set_up: Sequence[str], others: Sequence[str]) -> None:
        """Set the indices that requests name: those that were set up, by name or alias, and other indices."""
        self._chance = chance
        self._set_up = list(set_up)
        self._others = list(others)
        self._texts = [" ".join(chance.choices(words(), k=chance.randrange(1, 80))) for _ in range(300)]

    def draw(self) -> RawRequest:
        generators: tuple[tuple[int, Callable[[], RawRequest]], ...] = (
            *(
                (30, self._bulk),
                (16, self._document),
                (6, self._typed),
                (5, self._by_query),
                (10, self._enrich),
            ),
            *(
                (12, self._framing),
                (6, self._own),
                (4, self._other_types),
                (4, self._large),
                (4, self._reading),
            ),
        )
        (generate,) = self._chance.choices(
            [each for _, each in generators], [weight for weight, _ in generators]
        )
        return generate()

    def _pick(self, values: Sequence[Any]) -> Any:
        return self._chance.choice(values)

    def _is_rare(self, one_in: int = 4) -> bool:
        return self._chance.randrange(one_in) == 0

    def _index(self) -> str:
        return str(self._pick([*self._set_up, *self._set_up, *self._others]))

    def _quoted(self, name: str) -> str:
        """Return a name as part of a path, percent-encoded where needed and sometimes elsewhere."""
        raw = name.encode("utf-8", "surrogatepass")
        odd = self._is_rare(6)
        return "".join(
            chr(byte) if chr(byte).isalnum() and not (odd and self._is_rare()) else f"%{byte:02X}"
            for byte in raw
        )

    def _document_of(self) -> dict[str, Any]:
        document: dict[str, Any] = {"text": self._pick(self._texts)} if not self._is_rare(6) else {}
        if self._is_rare():
            document |= self._pick(DEDUPS)
        if self._is_rare(8):
            document |= self._pick(
                [
                    {"text": None}, {"text": []}, {"text": ["a b c", "d"]}, {"text": "\ud83d cut"},
                    {"text": {"a": 1}}, {"text": 7}, {"text": ""}, {"text": "\0"},
                    {"published_at": "yesterday"}, {"published_at": 1e300}, {"published_at": -(2**70)},
                    {"url": "http://[::1"}, {"url": ["x"] * 50}, {"source": "\udfff"}, {"": 1}, {".": 1},
                    {"a..b": 1}, {"\ud800": "\ud800"}, {"text.x": 1}, {"n": 10**400}, {"n": 1e308},
                ]
            )  # fmt: skip
        return document

    def _update_of(self) -> dict[str, Any]:
        update: dict[str, Any] = {}
        if not self._is_rare(4):
            update["doc"] = self._document_of() if not self._is_rare(3) else {"n": 1}
        if self._is_rare(3):
            update["upsert"] = self._document_of() if not self._is_rare(3) else {"n": 2}
        if self._is_rare(3):
            update["doc_as_upsert"] = self._pick([True, "true", False, 1, None, "TRUE"])
        if self._is_rare(12):
            update["script"] = {"source": f"ctx._source.dedup = ['root': '{FORGED}']"}
        if self._is_rare(12):
            update |= self._pick(
                [{"scripted_upsert": True}, {"detect_noop": False}, {"_source": True}, {"doc": [1]}, {"x": 1}]
            )
        return update

    def _action(self) -> tuple[str, dict[str, Any]]:
        operation = self._pick(["index", "index", "create", "update", "delete"])
        meta: dict[str, Any] = {}
        if not self._is_rare(5):
            meta["_id"] = self._pick(_IDS)
        if self._is_rare():
            meta["_index"] = self._pick([self._index(), self._index(), *_NAMES])
        if self._is_rare():
            meta |= self._pick(
                [
                    {"routing": "r"}, {"op_type": "create"}, {"op_type": 5}, {"require_alias": True},
                    {"pipeline": "_none"}, {"pipeline": "missing"}, {"if_seq_no": 0, "if_primary_term": 1},
                    {"version": 3, "version_type": "external"}, {"retry_on_conflict": 3}, {"_type": "_doc"},
                    {"_type": "typed"}, {"_id": ""}, {"_id": 5}, {"_id": None}, {"_id": "\ud83d"},
                    {"_id": "x" * 600}, {"_id": 10**500}, {"dynamic_templates": {"a": "b"}}, {"_id": [1]},
                    {"_source": False}, {"_index": 5}, {"_index": None}, {"routing": ["a"]},
                    {"parent": "x"}, {"x": {"y": [1]}},
                ]
            )  # fmt: skip
        return operation, meta

    def _bulk_body(self) -> bytes:
        lines: list[Any] = []
        for _ in range(self._chance.randrange(1, 9)):
            operation, meta = self._action()
            lines.append({operation: meta})
            if operation != "delete":
                lines.append(self._update_of() if operation == "update" else self._document_of())
        end = self._pick([b"\n", b"\n", b"\n", b"\r\n", b"\n\n"])
        return self._damaged(b"".join(_json(each) + end for each in lines))

    def _damaged(self, body: bytes) -> bytes:
        """Return a body, in most cases unchanged, in other cases with random insertions and deletions."""
        for _ in range(self._pick([0, 0, 0, 0, 0, 0, 1, 1, 3])):
            at, other = (self._chance.randrange(len(body) + 1) for _ in range(2))
            keys = [place + 1 for place, byte in enumerate(body[:2_000]) if byte in b"{,:["] or [0]
            put = self._pick(
                [
                    b"", b'"', b"}", b"{", b"\n", b"\\", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"/**/",
                    b"\0", b"1e999", b"NaN", b'"dedup":{"root":"%b"},' % FORGED.encode(),
                    b'"dedup.root":"%b",' % FORGED.encode(), b'"text":"b",',
                    b'"\\u0064edup":{"root":"%b"},' % FORGED.encode(),
                    b'"doc":{"dedup":{"root":"%b"}},' % FORGED.encode(),
                    b'"upsert":{"dedup":{"root":"%b"}},' % FORGED.encode(), b"[" * 3_000, b'{"a":' * 1_500,
                    b"9" * 5_000, b"\xef\xbb\xbf", b"#", b"'", b'"_index":"%b",' % self._set_up[0].encode(),
                    b'"_id":"z",', b"\r", b"\x0b",
                ]
            )  # fmt: skip
            place = self._pick(keys)
            body = self._pick(
                [
                    *(
                        body[:at] + put + body[at:],
                        body[:place] + put + body[place:],
                        body[:at] + put + body[at + 1 :],
                    ),
                    *(
                        body[:place] + put + body[place:],
                        body[: min(at, other)] + body[max(at, other) :],
                        body[:at],
                    ),
                ]
            )
        return body

    def _headers(self, usual: str) -> dict[str, str]:
        headers = {"content-type": usual if not self._is_rare(20) else self._pick(_TYPES)}
        if self._is_rare(6):
            headers["accept"] = self._pick(_ACCEPTS)
        if self._is_rare(20):
            headers |= self._pick(
                [
                    {"expect": "100-continue"}, {"expect": "x"}, {"authorization": "Basic !!!"},
                    {"x-opaque-id": "\xff"}, {"accept-encoding": "gzip, br"},
                    {"x-http-method-override": "PUT"}, {"te": "trailers"}, {"range": "bytes=0-1"},
                    {"connection": "close, content-length"}, {"connection": "close, x-a"},
                    {"transfer_encoding": "x"}, {"if-match": "*"}, {"upgrade": "h2c"},
                    {"authorization": "Basic " + "a" * 6_000}, {"cookie": "a" * 9_000},
                ]
            )  # fmt: skip
        return headers

    def _packed(self, body: bytes, headers: dict[str, str]) -> bytes:
        if not self._is_rare(5):
            return body
        bad = self._chance.randrange(len(body) + 1)
        how, packed = self._pick(
            [
                ("gzip", gzip.compress(body)), ("deflate", zlib.compress(body)), ("x-gzip",
                gzip.compress(body)), ("deflate", zlib.compress(body)[2:-4]), ("gzip",
                gzip.compress(body)[:bad]), ("gzip", body), ("gzip", gzip.compress(body[:bad])
                + gzip.compress(body[bad:])), ("identity", body), ("br", body), ("gzip, gzip",
                gzip.compress(gzip.compress(body))), ("zstd", b"\x28\xb5\x2f\xfd" + body), ("GZIP ",
                gzip.compress(body)), ("gzip", gzip.compress(b"") * 300 + gzip.compress(body)), ("deflate",
                body), ("gzip", b""), ("identity, gzip", body),
            ]
        )  # fmt: skip
        headers["content-encoding"] = how
        return bytes(packed)

    def _query(self) -> str:
        query = "&".join(self._pick(_QUERIES) for _ in range(self._pick([0, 0, 0, 0, 1, 2])))
        return f"?{query}" if query else ""

    def _request(self, category: str, method: str, path: str, body: bytes, usual: str) -> RawRequest:
        headers = self._headers(usual)
        body = self._packed(body, headers)
        return RawRequest(category, request(method, path + self._query(), body, **headers))

    def _bulk(self) -> RawRequest:
        name = self._quoted(self._pick([self._index()] * 40 + list(_NAMES)))
        path = self._pick(
            [
                *(f"/{name}/_bulk",) * 20,
                *("/_bulk", "/_bulk", "/_bulk/", f"/{name}/_bulk/"),
                *(
                    f"//{name}/_bulk",
                    "//_bulk",
                    f"/{name}//_bulk",
                    f"/{name}/%5Fbulk",
                    f"/{name}/_Bulk",
                    "/_bulk/x",
                ),
                *(
                    f"{name}/_bulk",
                    f"http://localhost/{name}/_bulk",
                    f"/{name}/_bulk;x=1",
                    f"/./{name}/_bulk",
                    "/_all/_bulk",
                ),
            ]
        )
        method = self._pick(["POST"] * 16 + ["PUT", "PUT", "GET", "HEAD", "OPTIONS", "DELETE", "PATCH"])
        return self._request("bulk", method, path, self._bulk_body(), "application/x-ndjson")

    def _document(self) -> RawRequest:
        operation = self._pick(["_doc", "_create", "_update"])
        name = self._quoted(self._pick([self._index()] * 40 + list(_NAMES)))
        id_ = self._pick(
            [*_IDS, *_IDS, "a%2Fb", "%F0%9F%98%80", "%ff", "a" * 513, "", "%", "%00", "..", "%2e%2e", "a;b"]
        )
        path = self._pick(
            [
                *(f"/{name}/{operation}/{id_}",) * 14,
                *(f"/{name}/{operation}", f"//{name}/{operation}/{id_}", f"/{name}/{operation}/{id_}/x"),
                *(
                    f"/{name}/{operation}/{id_}/",
                    f"/{name}/{operation}/{id_}/_update",
                    f"/{name}/{operation}//{id_}",
                ),
            ]
        )
        method = self._pick(["POST"] * 8 + ["PUT", "PUT", "GET", "HEAD", "DELETE", "OPTIONS"])
        document = self._update_of() if operation == "_update" else self._document_of()
        return self._request(operation, method, path, self._damaged(_json(document)), "application/json")

    def _typed(self) -> RawRequest:
        """Return a request with a document type, as clients of version 7 may send it."""
        name, id_ = self._quoted(self._index()), self._pick(_IDS)
        type_ = self._pick(["typed", "_doc", "doc", "%5Fdoc", "_create", "_x"])
        path = self._pick(
            [
                *(f"/{name}/{type_}/{id_}", f"/{name}/{type_}", f"/{name}/{type_}/{id_}/_create"),
                *(
                    f"/{name}/{type_}/{id_}/_update",
                    f"/{name}/{type_}/_bulk",
                    f"//{type_}/_bulk",
                    f"/missing/{type_}/_bulk",
                ),
            ]
        )
        if path.endswith("_bulk"):
            body = self._bulk_body()
        else:
            body = self._damaged(
                _json(self._update_of() if path.endswith("_update") else self._document_of())
            )
        version = self._pick(["7", "7", "8", "6", "x"])
        form = "x-ndjson" if path.endswith("_bulk") else "json"
        named = f"application/vnd.elasticsearch+{form};compatible-with={version}"
        content = request(
            self._pick(["POST", "PUT"]),
            path + self._query(),
            body,
            content_type=named,
            accept=named.replace("x-ndjson", "json"),
        )
        return RawRequest("typed", content)

    def _by_query(self) -> RawRequest:
        name = self._quoted(self._index())
        dest = self._pick(
            [
                self._index(),
                self._index() + "*",
                f"missing,{self._set_up[0]}",
                [self._set_up[0]],
                None,
                *_NAMES,
            ]
        )
        reindex: dict[str, Any] = {"source": {"index": self._index()}, "dest": {"index": dest}}
        if self._is_rare():
            reindex["script"] = {"source": f"ctx._index = '{self._set_up[0]}'"}
        path, body = self._pick(
            [
                ("/_reindex", _json(reindex)), ("/_reindex/", _json(reindex)), ("//_reindex",
                _json(reindex)), ("/%5Freindex", _json(reindex)), ("/_reindex/x/_rethrottle", b""),
                (f"/{name}/_update_by_query", b"{}"), (f"/{name},x/_update_by_query", b"{}"),
                ("/_all/_update_by_query", b"{}"), ("/*/_update_by_query", b"{}"), (f"/{name}/_rollover",
                b"{}"), ("/_unknown", b"{}"), (f"/{name}/_unknown/x", b"{}"),
                ("/_monitoring/bulk?system_id=a&system_api_version=7&interval=1s", self._bulk_body()),
            ]
        )  # fmt: skip
        return self._request(
            "by query", self._pick(["POST", "POST", "PUT"]), path, self._damaged(body), "application/json"
        )

    def _enrich(self) -> RawRequest:
        query = self._pick(
            [
                "", f"?index={self._quoted(self._index())}", "?backfill=true", "?backfill=x", "?forest=x",
                "?profile=x", "?index=", "?index=*", "?text_field=title", "?text_field=",
                "?text_field=a.b.c", "?dedup_field=text", "?dedup_field=_id", "?time_field=%ff",
                "?text_field=%ED%A0%80", "?index=a&index=b", "?text_field=" + "a." * 2_000, "?index="
                + self._quoted(self._pick(_NAMES)),
            ]
        )  # fmt: skip
        one = self._is_rare(3)
        body = (
            self._damaged(_json(self._document_of() | {"_id": self._pick([*_IDS, 5, None, [], "\ud83d"])}))
            if one
            else self._bulk_body()
        )
        return self._request(
            "enrich", "POST", f"/v1/enrich{'/one' if one else ''}{query}", body, "application/json"
        )

    def _own(self) -> RawRequest:
        path = self._pick(
            [
                "/v1/", "/v1", "/v1/x", "/v1/openapi.json", "/v1/_search", "/healthz", "/readyz",
                "/metrics", "/healthz/", "/v1/enrich/", "/v1//enrich", "/v1/enrich/one/x", "/pages/",
                "/pages", "/pages/%2e%2e/_bulk", "/pages/article?id=%00", "/api/v1/", "/api/v1/x", "/",
                "//", "/%00", "*", "/" + "a/" * 3_000, "/" + "%2F" * 2_000, "/v1/enrich/one?index="
                + "a" * 7_000, "/_cat/indices", "/_search?size=1", "/_nodes",
            ]
        )  # fmt: skip
        method = self._pick(
            ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "X-Y", "get"]
        )
        if method == "DELETE":
            path = "/v1/enrich"
        body = self._pick([b"", b"{}", b"\xff", b"[" * 50_000])
        return RawRequest("own paths", request(method, path, body, **self._headers("application/json")))

    def _reading(self) -> RawRequest:
        """Return a request that reads articles or results about them."""
        index = self._quoted(self._index())
        id_ = self._pick([*_IDS, "%00", "%ED%A0%80", "a" * 5_000])
        path = self._pick(
            [
                f"/api/v1/articles?index={index}&root={FORGED}",
                f"/api/v1/articles?index={index}&fingerprint=x&size=99999",
                f"/api/v1/similar?index={index}&id={id_}",
                f"/api/v1/similar?index={index}&id={id_}&after=x&page=-1",
                f"/api/v1/list?index={index}&q=%22&sort=similar-desc", f"/pages/?q={'a+' * 3_000}",
                f"/pages/article?id={id_}", f"/pages/compare?one={id_}&other={id_}",
                f"/{index}/_search?q=*&size=5", f"/{index}/_doc/{id_}", f"/{index}/_count",
            ]
        )  # fmt: skip
        return RawRequest("reading", request("GET", path, **self._headers("application/json")))

    def _other_types(self) -> RawRequest:
        """Return a request with an article in YAML, CBOR or Smile."""
        type_, body = self._pick([("yaml", _YAML), ("cbor", _CBOR), ("smile", _SMILE)])
        index, id_ = self._quoted(self._index()), self._pick(_IDS)
        path = self._pick(
            [
                f"/{index}/_doc/{id_}",
                f"/{index}/_create/{id_}",
                f"/{index}/_update/{id_}",
                f"/{index}/_bulk",
                "/v1/enrich/one",
            ]
        )
        named = self._pick(
            [
                f"application/{type_}",
                f"application/vnd.elasticsearch+{type_};compatible-with=8",
                "application/json",
                "",
            ]
        )
        return RawRequest("yaml, cbor, smile", request("POST", path, body, content_type=named))

    def _large(self) -> RawRequest:
        """Return a request whose body is expensive to read for its size."""
        index = self._index()
        content: bytes = self._pick(large_bodies(self._chance.randrange(1, 60_000)))
        path, type_ = self._pick(
            [
                *((f"/{index}/_bulk", "application/x-ndjson"), ("/v1/enrich", "application/x-ndjson")),
                *((f"/{index}/_doc/1", "application/json"), ("/v1/enrich/one", "application/json")),
            ]
        )
        if type_ == "application/json":
            content = content.partition(b"\n")[2] or content
        headers = {"content_type": type_}
        if self._is_rare():
            headers["content_encoding"], content = "gzip", gzip.compress(content, 1)
        return RawRequest("large", request("POST", path, content, **headers))

    def _framing(self) -> RawRequest:
        """Return a request whose head and body contradict each other."""
        index, body = self._set_up[0], self._bulk_body()
        paths = (f"/{index}/_bulk", "/_bulk", f"/{index}/_doc/1", "/v1/enrich", "/v1/enrich/one", "/_reindex")
        path = self._pick([*paths, f"/{self._others[0]}/_search"])
        article = _json({"text": "hidden", "dedup": {"root": FORGED}})
        hidden = request("PUT", f"/{index}/_doc/h", article, content_type="application/json")
        content = self._pick(misframed(path, body, hidden, cut=self._chance.randrange(len(body) + 1)))
        return RawRequest("framing", content, is_ended=not self._is_rare(12), is_broken=True)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
