"""A forest's log: what its batches wrote, in their order, as documents that have many nodes and pages each.

A forest of the lookup `memory` has it instead of a document for each node: its owner has all nodes in memory,
and never searches for one. If a node or page has several entries, the last one counts; a node that is only
needed longer gets a short entry. Expired nodes are deleted with their document; before that, the nodes in it
that are still needed are appended to the log.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from esdedup.elastic.forest.documents import JsonDocument, packed_of, search_body
from esdedup.elastic.forest.stored import Codec
from esdedup.elastic.pages import all_hits
from esdedup.elastic.requests import Query, Requests, aggregate
from esdedup.forest.model import NO_TIME, State

FIELD = "log"
"""The field with the number of a document."""

EVERY_LOG: Query = {"exists": {"field": FIELD}}

# Smaller documents grow with the next batches: the log of a trickle of articles is read as fast as others.
_ENOUGH_BYTES = 8_000
# Documents in one answer.
_READ_AT_ONCE = 100


class LogDocument(NamedTuple):
    """One document of a log."""

    number: int
    log: bytes = b""
    # The latest `seen` in it; NO_TIME if unknown.
    seen_ms: int = NO_TIME
    # The forest's state after the last batch in it.
    state: State = State()

    def json(self) -> JsonDocument:
        """Return its id and its source."""
        # Includes the forest's time, so that the last document, which has the state, never counts as expired.
        seen_ms = max(self.seen_ms, self.state.time_ms)
        times_ms = [each for each in (self.state.origin_ms, self.state.time_ms) if each != NO_TIME]
        source: dict[str, Any] = {FIELD: self.number, "packed": base64.b64encode(self.log).decode()}
        if self.state.seq:
            source["seq"] = self.state.seq
        if times_ms:
            source["made"] = times_ms
        if seen_ms != NO_TIME:
            source["seen"] = seen_ms
        return f"{FIELD}-{self.number}", json.dumps(source)


class LogDocuments:
    """Makes the documents of a log, for the forest's owner."""

    def __init__(self, packing: Codec, *, last: int) -> None:
        self._packing = packing
        self._last = LogDocument(last + 1)

    @property
    def number(self) -> int:
        """The number of the last document, or the next one."""
        return self._last.number

    def begin_another(self) -> None:
        """Begin another document, since the content of the last one is uncertain."""
        self._last = LogDocument(self.number + 1)

    def add(self, packed: Sequence[bytes], log: bytes | None, state: State | None) -> LogDocument:
        """Return the document that holds a batch: a new one, or the last one extended.

        `log` has the same as entries of a log; without it, all of `packed` is written whole.
        """
        added = self._packing.log(packed) if log is None else log
        if self._last.log and len(self._last.log) + len(added) > _ENOUGH_BYTES:
            self.begin_another()
        last = self._last
        seen_ms = max(
            (self._packing.seen_ms(*each) for each in self._packing.entries(added)), default=NO_TIME
        )
        self._last = LogDocument(
            last.number, last.log + added, max(last.seen_ms, seen_ms), last.state if state is None else state
        )
        return self._last


def read_last_number(forest: str) -> Requests[int]:
    """Read the number of the last refreshed document; 0 if there is none."""
    answer = yield from aggregate(forest, EVERY_LOG, {"last": {"max": {"field": FIELD}}})
    return int(answer["last"]["value"] or 0)


def log_body(query: Query, *, versions: bool = False, repeated: bool = False) -> Query:
    """Return the body of a search for documents in order, whose content `packed_of` reads."""
    return search_body(query, size=_READ_AT_ONCE, sort=[FIELD], versions=versions, repeated=repeated)


def read_logs(forest: str, *, first: int) -> Requests[Iterator[bytes]]:
    """Read the refreshed documents from a number on (inclusive)."""
    hits = yield from all_hits(forest, log_body({"range": {FIELD: {"gte": first}}}))
    return iter(packed_of(hits))
