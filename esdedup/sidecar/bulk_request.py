"""Reads the bodies of bulk requests as Elasticsearch does, and writes items with what was added. Pure.

What is not changed is sent as it came, byte for byte. A body that Elasticsearch could not read is refused
with the status and the kind of error that it would give. What it checks after reading (missing ids, versions
that make no sense) it refuses itself: these items go on.
"""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import orjson

from esdedup.errors import ArticleRejected
from esdedup.ingest.actions import Addition, writes_out_upsert
from esdedup.sidecar.action_line import BYTE_ORDER_MARK, read_action_line
from esdedup.sidecar.json_splice import members, with_member, without_object
from esdedup.sidecar.refusals import BulkMalformed

MAX_ITEMS = 100_000
"""In one body. Some 20 times what clients send; each takes about 1 kB of memory besides its bytes."""

MAX_LINE_BYTES = 100 * 1024 * 1024
"""Elasticsearch takes no larger request, unless it is told to."""

_FIRST_VALUE = json.JSONDecoder()

# Bodies have a line for each action, one for its document, and blank lines, which mean nothing.
_LINES_PER_ITEM = 4


# Not frozen: a body has thousands, and a frozen one takes three times as long to make.
@dataclasses.dataclass(kw_only=True, slots=True)
class BulkItem:
    """One operation of a bulk request, or the operation of a request for one document."""

    # "index", "create", "update" or "delete".
    operation: str
    # Where it writes, by the action line or else by the path; None if neither says.
    index: str | None
    # The parameters of the action line; see `action_line.Action`.
    meta: dict[str, Any]
    # The action line as it came, without the line break; empty for a single document.
    header: bytes
    # The document likewise; None for a deletion.
    source: bytes | None
    # The number of the action line in the body, from 1; names an article without an id.
    line: int = 1

    @property
    def name(self) -> str:
        """What names it in messages."""
        return str(self.meta.get("_id") or f"line {self.line}")

    def as_it_came(self) -> bytes:
        """Return its lines, unchanged."""
        return b"%b\n" % self.header if self.source is None else b"%b\n%b\n" % (self.header, self.source)

    def document(self) -> dict[str, Any]:
        """Parse its document, which is to be looked at, not written again: large numbers lose digits here.

        Raises:
            ArticleRejected: Elasticsearch would not index it, and would say so for this item.
            BulkMalformed: It is an update, for which Elasticsearch would refuse the whole request.
        """
        assert self.source is not None
        source = self.source.removeprefix(BYTE_ORDER_MARK)
        try:
            document = orjson.loads(source)
        except orjson.JSONDecodeError as error:
            document = self._taken_anyway(source, error)
        if not isinstance(document, dict):
            raise self._unreadable("is not a JSON object")
        return document

    def with_addition(self, added: Addition, document: Mapping[str, Any], *, dedup: str) -> bytes:
        """Return its lines with what is added.

        Args:
            added: What is added.
            document: As `document` has returned it.
            dedup: The name of the dedup object.
        """
        header = self.header
        if added.routing is not None:
            # ASCII: an id may have half a character.
            meta = {**self.meta, "routing": added.routing}
            header = json.dumps({self.operation: meta}, separators=(",", ":")).encode()
        return b"%b\n%b\n" % (header, self.source_with(added, document, dedup=dedup))

    def source_with(self, added: Addition, document: Mapping[str, Any], *, dedup: str) -> bytes:
        """Return its document alone with what is added; see `with_addition`."""
        assert self.source is not None
        if "source" in added.parts:
            return _with_object(self.source, document, added.parts["source"], dedup)
        return _with_parts(self.source, document, added, dedup)

    def _taken_anyway(self, source: bytes, error: orjson.JSONDecodeError) -> Any:
        """Parse what is not JSON, and Elasticsearch takes all the same.

        That is half a character, for which it is then rejected; and whatever follows the object of an update.
        """
        try:
            if self.operation == "update":
                return _FIRST_VALUE.raw_decode(_beginning(source).lstrip(" \t\r\n"))[0]
            return json.loads(source.decode())
        except (ValueError, RecursionError):
            raise self._unreadable(f"is not JSON: {error}") from error

    def _unreadable(self, reason: str) -> ArticleRejected | BulkMalformed:
        if self.operation == "update":
            return BulkMalformed(
                400, "x_content_parse_exception", f"the update in line [{self.line}] {reason}"
            )
        return ArticleRejected(self.name, reason)


def read_bulk(
    body: bytes, *, index: str | None, max_items: int = MAX_ITEMS, max_line_bytes: int = MAX_LINE_BYTES
) -> list[BulkItem]:
    """Read the body of a bulk request.

    Args:
        body: Not compressed.
        index: Of the path; where items write that name no index.
        max_items: Bodies with more are refused.
        max_line_bytes: Bodies with a longer line are refused.

    Raises:
        BulkMalformed: Elasticsearch would not read it, or it is too large.
    """
    if not body:
        raise BulkMalformed(400, "parse_exception", "request body is required")
    most_lines = _LINES_PER_ITEM * max_items
    # After the last line break nothing may follow.
    *lines, rest = body.split(b"\n", most_lines)
    if b"\n" in rest:
        raise _too_large(f"more than {most_lines:,} lines")
    if len(body) > max_line_bytes and max(map(len, lines), default=0) > max_line_bytes:
        raise _too_large(f"a line of more than {max_line_bytes:,} bytes")
    items = []
    number = 0
    while number < len(lines):
        header = lines[number].removesuffix(b"\r")
        number += 1
        action = read_action_line(header, number)
        if action is None:
            continue
        operation, meta = action
        line, source = number, None
        if operation != "delete":
            if number == len(lines):
                # Elasticsearch does nothing for an action whose document is missing at the end.
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
        raise BulkMalformed(
            400, "illegal_argument_exception", r"The bulk request must be terminated by a newline [\n]"
        )
    if not items:
        raise BulkMalformed(
            400, "action_request_validation_exception", "Validation Failed: 1: no requests added;"
        )
    if len(items) > max_items:
        raise _too_large(f"more than {max_items:,} items")
    return items


def _beginning(source: bytes) -> str:
    """Return a text up to the first byte that is no character."""
    try:
        return source.decode()
    except UnicodeDecodeError as error:
        return source[: error.start].decode()


def _too_large(what: str) -> BulkMalformed:
    return BulkMalformed(413, "content_too_long_exception", f"the bulk request has {what}: send smaller ones")


def _with_object(source: bytes, old: Mapping[str, Any], values: Mapping[str, Any] | None, name: str) -> bytes:
    """Return a document with the dedup object, if there is one, instead of what it has by that name."""
    dotted = f"{name}."
    if any(key == name or key.startswith(dotted) for key in old):
        source = without_object(source, name)
    return source if values is None else with_member(source, name, orjson.dumps(values))


def _with_parts(source: bytes, old: Mapping[str, Any], added: Addition, name: str) -> bytes:
    """Return an update with the object in its parts."""
    parts = {each.key: source[each.value : each.end] for each in members(source)}
    is_written_out = writes_out_upsert(added, old)
    if is_written_out:
        del parts["doc_as_upsert"]
    parts |= {
        part: _with_object(parts[origin], old[origin], values, name)
        for part, values in added.parts.items()
        for origin in ("doc" if is_written_out else part,)
    }
    return b"{%b}" % b",".join(json.dumps(key).encode() + b":" + value for key, value in parts.items())
