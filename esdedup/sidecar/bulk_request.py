"""Parses bulk requests, and writes their items with additions. Pure.

Action lines must be strict JSON. Only their operation and the parameters needed here are interpreted;
Elasticsearch validates the rest. Items without additions are sent byte for byte.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import orjson

from esdedup.errors import ArticleRejected, Refused
from esdedup.fields import is_in_objects
from esdedup.ingest.actions import Addition, ArticleAction, forged_parts, writes_out_upsert
from esdedup.ingest.json_values import parsed_with_surrogates

ARTICLE_REJECTED = "esdedup_article_rejected"
"""The error type for an article that gets no root."""


class RequestRefused(Refused):
    """A whole request is refused; `kind` is an error type of Elasticsearch or of the sidecar's own API."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason, status=status, kind=kind)


MAX_ITEMS = 100_000
"""Maximum number of items in a body, 20 times as many as clients usually send; each takes 1 kB of memory."""

MAX_LINE_BYTES = 100 * 1024 * 1024
"""Maximum size of a line: Elasticsearch's default limit on a whole request."""

OPERATIONS = frozenset(("create", "delete", "index", "update"))
# The byte order mark with which some Windows programs begin a text; stripped, since JSON forbids it.
UTF8_MARK = b"\xef\xbb\xbf"
# Parameters of an action line whose values are read as strings.
_TEXTS = ("_id", "_index", "pipeline", "routing")
_SPACE = b" \t\r"
_ILLEGAL = "illegal_argument_exception"

# The average number of lines allowed per item: an action, a document, and blank lines, which are ignored.
_LINES_PER_ITEM = 4


class Rejection(NamedTuple):
    """The reason why an item is rejected."""

    reason: str
    status: int = 400


# Not frozen: a body has thousands of items, and creating a frozen dataclass takes three times as long.
@dataclasses.dataclass(kw_only=True, slots=True)
class BulkItem:
    """One operation of a bulk request, or the operation of a request for one document.

    `Enrichment` sets an addition or a rejection. An item without either is forwarded unchanged.
    """

    # "index", "create", "update" or "delete".
    operation: str
    # The index named by the action line, or by the path; None if neither names one.
    index: str | None
    # The parameters of the action line, except nulls; the values of `_TEXTS` are strings.
    meta: dict[str, Any]
    # The action line as received, without the line break; empty for a single document.
    header: bytes
    # The bytes of the document; None for a deletion.
    source: bytes | None
    # The number of the action line in the body, from 1; identifies an article without an id.
    line: int = 1

    # `WritableIndex.objects` of the item's index, if that is set up and the caller may write to it.
    objects: tuple[str, ...] = ()
    # The article in the document, if there is a valid one.
    article: ArticleAction | None = None
    added: Addition | None = None
    rejection: Rejection | None = None
    _document: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The item's name in messages."""
        return str(self.meta.get("_id") or f"line {self.line}")

    def document(self) -> dict[str, Any]:
        """Parse the document, for reading only: large numbers lose digits, lone surrogates become "?"."""
        if self._document is not None:
            return self._document
        assert self.source is not None
        try:
            document = orjson.loads(self.source)
        except orjson.JSONDecodeError as error:
            try:
                document = _replaced(parsed_with_surrogates(self.source))
            except ValueError:
                raise ArticleRejected(self.name, f"is not JSON: {error}") from error
        if not isinstance(document, dict):
            raise ArticleRejected(self.name, "is not a JSON object")
        self._document = document
        return document

    def pass_on(self) -> None:
        """Forward an item whose article was rejected; remove any root that the caller has set."""
        if self.rejection is None or not self.objects:
            return
        try:
            document = self.document()
        except ArticleRejected:
            # Elasticsearch may accept the document, with a root that the caller has set.
            return
        parts = forged_parts(document, self.objects) if self.operation == "update" else {"source": None}
        self.rejection, self.added = None, Addition(parts) if parts else None

    def lines(self) -> bytes:
        """Return the item's lines to forward."""
        header, source = self.header, self.source
        if self.added is not None:
            source = self.body()
            if self.added.routing is not None:
                meta = {**self.meta, "routing": self.added.routing}
                header = json.dumps({self.operation: meta}, separators=(",", ":")).encode()
        return b"%b\n" % header if source is None else b"%b\n%b\n" % (header, source)

    def body(self) -> bytes:
        """Return the document with the addition."""
        assert self.source is not None
        assert self.added is not None
        document, parts = self.document(), self.added.parts
        if "source" in parts:
            return _with_object(self.source, document, parts["source"], self.objects)
        return _with_parts(self.source, document, self.added, self.objects)


def read_bulk(body: bytes, *, index: str | None) -> list[BulkItem]:
    """Parse the body of a bulk request; `index` is named by the path. Raises `RequestRefused`."""
    if not body:
        raise RequestRefused(400, "parse_exception", "request body is required")
    most_lines = _LINES_PER_ITEM * MAX_ITEMS
    # A complete body ends with a line break, so `rest` must be empty.
    *lines, rest = body.split(b"\n", most_lines)
    if b"\n" in rest:
        raise _too_large(f"more than {most_lines:,} lines")
    if len(body) > MAX_LINE_BYTES and max(map(len, lines), default=0) > MAX_LINE_BYTES:
        raise _too_large(f"a line of more than {MAX_LINE_BYTES:,} bytes")
    items = []
    number = 0
    while number < len(lines):
        header = lines[number].removesuffix(b"\r")
        number += 1
        if not header.strip(_SPACE):
            continue
        operation, meta = _read_action(header, number)
        line, source = number, None
        if operation != "delete":
            if number == len(lines):
                # Elasticsearch ignores a last action whose document is missing.
                break
            source = lines[number].removesuffix(b"\r")
            number += 1
        items.append(
            BulkItem(
                operation=operation,
                index=meta.get("_index", index),
                meta=meta,
                header=header,
                source=source,
                line=line,
            )
        )
    if rest:
        raise RequestRefused(400, _ILLEGAL, r"The bulk request must be terminated by a newline [\n]")
    if not items:
        raise RequestRefused(
            400, "action_request_validation_exception", "Validation Failed: 1: no requests added;"
        )
    if len(items) > MAX_ITEMS:
        raise _too_large(f"more than {MAX_ITEMS:,} items")
    return items


def _read_action(line: bytes, number: int) -> tuple[str, dict[str, Any]]:

    def refuse(what: str) -> NoReturn:
        raise RequestRefused(400, _ILLEGAL, f"Malformed action/metadata line [{number}], {what}")

    line = line.removeprefix(UTF8_MARK)
    try:
        action = orjson.loads(line)
    except orjson.JSONDecodeError:
        action = None
    if not isinstance(action, dict) or len(action) != 1:
        # Like Elasticsearch 8, use only the first member. Elasticsearch 9 refuses the forwarded request.
        try:
            end = next((each.end for each in members(line)), len(line))
            action = orjson.loads(line[:end] + b"}")
        except ValueError as error:
            refuse(f"it is not JSON: {error}")
    if len(action) != 1:
        refuse("it must be an object with an operation")
    ((operation, given),) = action.items()
    if operation not in OPERATIONS or not isinstance(given, dict):
        refuse("expected field [create], [delete], [index] or [update] with an object")
    meta = {key: value for key, value in given.items() if value is not None}
    for key, value in meta.items():
        if not isinstance(value, str) and key in _TEXTS:
            if isinstance(value, dict | list):
                refuse(f"its [{key}] must be a string, a number or a boolean")
            # Keep the spelling: 1.0 is a different id than 1.
            given = line[line.index(b"{", line.index(b"{") + 1) :]
            meta[key] = {m.key: given[m.value : m.end] for m in members(given)}[key].strip().decode()
    return "create" if operation == "index" and meta.get("op_type") == "create" else operation, meta


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [_replaced(each) for each in value]
    if isinstance(value, dict):
        return {_replaced(key): _replaced(each) for key, each in value.items()}
    return value


def _too_large(what: str) -> RequestRefused:
    return RequestRefused(
        413, "content_too_long_exception", f"the bulk request has {what}: send smaller requests"
    )


def _with_object(
    source: bytes, old: Mapping[str, Any], values: Mapping[str, Any] | None, names: tuple[str, ...]
) -> bytes:
    """Remove a document's dedup objects, then add `values` (unless None) under the first of `names`."""
    if any(key.startswith(names) for key in old):
        source = without_objects(source, names)
    return source if values is None else with_member(source, names[0], orjson.dumps(values))


def _with_parts(source: bytes, old: Mapping[str, Any], added: Addition, names: tuple[str, ...]) -> bytes:
    parts = {each.key: source[each.value : each.end] for each in members(source)}
    is_written_out = writes_out_upsert(added, old)
    if is_written_out:
        del parts["doc_as_upsert"]
    parts |= {
        part: _with_object(parts[origin], old[origin], values, names)
        for part, values in added.parts.items()
        for origin in ("doc" if is_written_out else part,)
    }
    return b"{%b}" % b",".join(json.dumps(key).encode() + b":" + value for key, value in parts.items())


# Possessive quantifiers: an unterminated string is scanned only once, instead of once per quote in it.
_STRING_OR_MARK = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[{}\[\]:,]', re.DOTALL)
_QUOTE = ord('"')


class Member(NamedTuple):
    """A key of an object and its value."""

    key: str
    # Offsets: the start of the key, the start of the value (perhaps with white space before it), and its end.
    start: int
    value: int
    end: int


def members(source: bytes) -> list[Member]:
    """Return the members of a JSON object, but not the members of nested objects."""
    found: list[Member] = []
    depth = 0
    key, start, value = "", -1, -1
    for match in _STRING_OR_MARK.finditer(source):
        mark = source[match.start()]
        if mark == _QUOTE:
            if depth == 1 and start < 0:
                # orjson rejects lone surrogates.
                key, start = json.loads(match[0].decode(errors="surrogatepass")), match.start()
        elif mark in b"{[":
            depth += 1
        elif mark == ord(":"):
            if depth == 1:
                value = match.end()
        else:
            if depth == 1 and start >= 0:
                found.append(Member(key, start, value, match.start()))
                start = -1
            if mark in b"]}":
                depth -= 1
                if depth == 0:
                    break
    return found


def with_member(source: bytes, key: str, value: bytes) -> bytes:
    """Return an object with a member appended; the key must not exist yet."""
    end = source.rindex(b"}")
    is_empty = source[:end].rstrip(b" \t\r\n").endswith(b"{")
    return b"".join(
        (source[:end], b"" if is_empty else b",", json.dumps(key).encode(), b":", value, source[end:])
    )


def without_objects(source: bytes, names: tuple[str, ...]) -> bytes:
    """Return an object without the keys in `names`, and without dotted keys that begin with them."""
    kept = [source[each.start : each.end] for each in members(source) if not is_in_objects(each.key, names)]
    return b"{%b}" % b",".join(kept)
