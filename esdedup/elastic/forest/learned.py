"""Stores learned boilerplate in a forest's index, in documents with the changes that each batch made.

A batch's changes are written after its nodes, in one or more documents. They are valid once the last of
these documents exists. If the owner crashes earlier, it repeats the batch, and filters it as before.
"""

import base64
import collections
import contextlib
import itertools
import secrets
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup._core import PassageFilter
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes, bytes_of, read_changes
from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.elastic.forest.stored import Document
from esdedup.elastic.pages import all_hits
from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import ForestDamaged

FIELD = "learned"
"""The field with a document's number."""

_LAST_ID = "~learned"

# Servers refuse documents of tens of megabytes; small servers refuse even smaller ones.
_MAX_BYTES = 1_000_000
_READ_AT_ONCE = 50
# Up to this size, the last document also gets the changes of the next batch, and is then rewritten.
_ENOUGH_BYTES = 8_000
_LOG_BYTES = 8
# How many documents `documents_of` returns if one document has all changes; the second is `~learned`.
_ONE_AND_LAST = 2


class LearnedRecord(NamedTuple):
    """The changes of some batches, in one document, or in several if they are too large for one."""

    # The numbers of its first and its last document. Numbers begin at 1 and have no gaps.
    first: int
    last: int
    # A random id, the same in all documents of a forest.
    log: str
    changes: Changes
    size_bytes: int
    # For the last record read: the latest write of any document, as `_write_of` identifies it.
    write: tuple[Any, ...] | None = None

    @classmethod
    def of_hits(cls, hits: Sequence[dict[str, Any]], *, forest: str) -> "LearnedRecord":
        """Read a record from the hits of its documents."""
        numbers = [hit["sort"][0] for hit in hits]
        try:
            states = [hit["_source"]["state"] for hit in hits]
            content = "".join(state["changes"] for state in states)
            changes = read_changes(base64.b64decode(content, validate=True))
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(forest, numbers[0], f"unreadable ({error})") from error
        return cls(numbers[0], numbers[-1], str(states[0]["log"]), changes, len(content))


def documents_of(changes: Changes, *, log: str, first: int) -> list[Document]:
    """Return documents with `changes`, numbered from `first`, and `~learned`, which has the last number."""
    content = base64.b64encode(bytes_of(changes.columns())).decode()
    last = first + (len(content) - 1) // _MAX_BYTES
    found: list[Document] = []
    for number in range(first, last + 1):
        at = (number - first) * _MAX_BYTES
        part = {"log": log, "changes": content[at : at + _MAX_BYTES], "goes_on": number < last}
        found.append((f"{FIELD}-{number}", {FIELD: number, "state": part}))
    return [*found, (_LAST_ID, {"state": {"log": log, "last": last}})]


class LearnedLog:
    """The boilerplate in the documents of one forest, and the documents that its owner adds."""

    def __init__(self, forest: str = "", found: Sequence[LearnedRecord] = ()) -> None:
        """Apply all records of a forest, whose name is used in messages."""
        self.boilerplate = Boilerplate()
        self.last: LearnedRecord | None = None
        # For each record that is not outdated: the numbers of its last document and its last page.
        self._ends: collections.deque[tuple[int, int]] = collections.deque()
        self.read(forest, found)
        self.keep()

    def read(self, forest: str, found: Sequence[LearnedRecord]) -> None:
        """Apply further records. Unless `keep` was called, `found` begins with the last known record.

        That record is undone, then applied again, since its documents may have grown. Raises `ForestDamaged`
        if a record does not follow its predecessor, or if earlier documents are missing; the boilerplate must
        then not be used.
        """
        boilerplate = self.boilerplate
        if boilerplate.has_begun:
            boilerplate.undo()
            self._ends.pop()
        is_new = boilerplate.last_page == 0
        for each in found:
            self.keep()
            boilerplate.begin()
            try:
                boilerplate.apply(each.changes)
            except ValueError as error:
                raise damaged(forest, each.first, f"wrong ({error})") from error
            self._ends.append((each.last, each.changes.last_page))
            self.last = each
        if is_new and found and found[0].changes.first_page > boilerplate.former_from:
            raise damaged(forest, found[0].first - 1, "missing")

    def keep(self) -> None:
        """Make the last record permanent."""
        if self.boilerplate.has_begun:
            self.boilerplate.keep()

    def add(self, changes: Changes) -> list[Document]:
        """Return the documents to write for a batch: new ones, or the last document with the changes added.

        The list is empty if the batch changed nothing that the documents store.
        """
        if changes.are_empty:
            return []
        last, documents = self.last, list[Document]()
        log, first = (last.log, last.last + 1) if last else (secrets.token_hex(_LOG_BYTES), 1)
        if last and last.size_bytes < _ENOUGH_BYTES:
            joined = last.changes.then(changes)
            documents = documents_of(joined, log=log, first=last.last)
        # Extend the last document only if all changes fit: a crash between two writes must not damage it.
        if len(documents) == _ONE_AND_LAST:
            changes, first = joined, first - 1
            self._ends.pop()
        else:
            documents = documents_of(changes, log=log, first=first)
        number = documents[-1][1]["state"]["last"]
        size_bytes = sum(len(each["state"].get("changes", "")) for _, each in documents)
        self.last = LearnedRecord(first, number, log, changes, size_bytes)
        self._ends.append((number, changes.last_page))
        return documents

    def forget_outdated(self) -> Query | None:
        """Return a query for documents that became outdated since the last call; None if there are none."""
        outdated = 0
        # The last document may still be extended.
        while len(self._ends) > 1 and self._ends[0][1] < self.boilerplate.former_from:
            outdated, _ = self._ends.popleft()
        return {"range": {FIELD: {"lte": outdated}}} if outdated else None


class LearnedCopy:
    """A copy of the boilerplate that another process learns, updated on request. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known = LearnedLog()

    def update(self, forest: str) -> Requests[None]:
        """Read the documents that became visible to searches since the last update.

        If there are none, this takes only one short search. Raises `ForestDamaged` if a document is missing
        or unreadable, or does not follow its predecessor.
        """
        last = self._known.last
        first = last.first if last else 1
        latest: Query = {"sort": [{"_seq_no": "desc"}], "size": 1, "_source": ["state.log"]}
        (answer,) = yield from search(forest, _documents_from(first) | latest)
        if [_write_of(hit) for hit in answer["hits"]["hits"]] == ([last.write] if last else []):
            return
        found = yield from read_learned(forest, first=first)
        if last and not (found and found[0].first == last.first and found[0].log == last.log):
            # The forest was replaced, or its owner has deleted the last document that this copy knows.
            found = yield from read_learned(forest)
            last = None
        with self._lock:
            known = self._known if last else LearnedLog()
            if last and not (known.last and known.last.first == last.first):
                # Another thread was faster.
                return
            # If the documents are damaged, the next call starts over.
            self._known = LearnedLog()
            known.read(forest, found)
            known.forget_outdated()
            self._known = known

    def taken(self) -> LearnedLog:
        """Return the contents of this copy, and empty it."""
        with self._lock:
            taken, self._known = self._known, LearnedLog()
        taken.keep()
        return taken

    def are_learned(self, hashes: npt.NDArray[np.uint64], site: str | None) -> npt.NDArray[np.bool_]:
        """Return which passages are learned boilerplate of a site: bool ``(n,)``."""
        with self._lock:
            return self._known.boilerplate.are_learned(hashes, site)

    @contextlib.contextmanager
    def filter_on(self, site: str | None, overrides: Overrides = NO_OVERRIDES) -> Iterator[PassageFilter]:
        """Give a filter for texts of a site, which learns nothing; `overrides` are those of the owner."""
        with self._lock:
            boilerplate = self._known.boilerplate
            boilerplate.begin()
            try:
                yield boilerplate.filter(overrides=overrides, sites=itertools.repeat(site))
            finally:
                if boilerplate.is_broken:
                    # The next `update` starts over.
                    self._known = LearnedLog()
                else:
                    boilerplate.undo()


def read_learned(forest: str, *, first: int = 1) -> Requests[list[LearnedRecord]]:
    """Read the learned boilerplate of a forest, from the document `first` on, as of the last refresh.

    Raises `ForestDamaged` if a document is missing or unreadable, or belongs to another forest.
    """
    body: Query = {
        **_documents_from(first),
        "sort": [{FIELD: {"missing": "_first"}}],
        "size": _READ_AT_ONCE,
        "_source": ["state"],
    }
    hits = yield from all_hits(forest, body)
    if not hits:
        return []
    write = _write_of(max(hits, key=lambda hit: hit["_seq_no"]))
    # The last document has at least this number.
    last = _state(hits.pop(0)).get("last") if hits[0]["_id"] == _LAST_ID else 0
    for before, after in itertools.pairwise(hits):
        number = before["sort"][0] + 1
        if after["sort"][0] != number:
            raise damaged(forest, number, "missing")
        if _state(after).get("log") != _state(before).get("log"):
            raise damaged(forest, number, "from another forest")
    found: list[LearnedRecord] = []
    start = 0
    # Leave out an incomplete record at the end, whose writer has died.
    for stop, hit in enumerate(hits, 1):
        if not _state(hit).get("goes_on"):
            found.append(LearnedRecord.of_hits(hits[start:stop], forest=forest))
            start = stop
    known = found[-1].last if found else first - 1
    if isinstance(last, int) and known < last:
        raise damaged(forest, known + 1, "missing")
    if found:
        found[-1] = found[-1]._replace(write=write)
    return found


def _documents_from(number: int) -> Query:
    """Return a search for the documents numbered from `number`, and for `~learned`."""
    either: list[Query] = [{"range": {FIELD: {"gte": number}}}, {"ids": {"values": [_LAST_ID]}}]
    return {"query": {"bool": {"should": either}}, "seq_no_primary_term": True, "track_total_hits": False}


def _write_of(hit: dict[str, Any]) -> tuple[Any, ...]:
    """Identify a write of a document, uniquely even among earlier forests of the same name."""
    return hit["_id"], _state(hit).get("log"), hit["_seq_no"], hit["_primary_term"]


def _state(hit: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a document; empty if the document is damaged."""
    state = hit.get("_source", {}).get("state")
    return state if isinstance(state, dict) else {}


def damaged(forest: str, number: int, flaw: str) -> ForestDamaged:
    """Return the error for a flaw in a document."""
    document = f"{FIELD}-{number}"
    return ForestDamaged(
        f"the learned boilerplate of the forest {forest!r} is damaged: its document {document!r} is {flaw}. "
        "Repair the forest, which then starts learning from scratch; stored articles keep their roots",
        forest=forest,
        document=document,
        flaw=flaw,
    )
