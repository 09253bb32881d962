"""What pages have taught, as documents of the forest's index: changes, batch after batch.

A batch's changes are written after its nodes, in one document or several; they count once the last of these
is there. So after a crash either all of the batch counts, or the batch comes again and is judged as it was
before.
"""

import base64
import collections
import functools
import itertools
import secrets
import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes
from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.elastic.forest.documents import Document
from esdedup.elastic.pages import Hits, all_hits
from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import ForestDamaged
from esdedup.text.parsed import Passages, SiteFilters

FIELD = "learned"
"""The number of a document."""

_LAST_ID = "~learned"

EVERY_DOCUMENT: Query = {"bool": {"should": [{"exists": {"field": FIELD}}, {"ids": {"values": [_LAST_ID]}}]}}
"""Matches the documents, and the one that says how many there must be."""

# Servers refuse documents of tens of megabytes, and small ones sooner.
_MOST_BYTES = 1_000_000
_READ_AT_ONCE = 50


class End(NamedTuple):
    """Where a record ends: the numbers of its last document, and of the last page that it has."""

    document: int
    page: int


class LearnedRecord(NamedTuple):
    """The changes of some batches, in one document, or in several if they are too large for one."""

    # The number of its first document and of its last one, from 1, without gaps.
    first: int
    last: int
    # The same in all documents of a forest: made up for the first.
    log: str
    changes: Changes
    size_bytes: int
    # Of the last record that was read: which write of all documents was the latest, as `_write_of` names it.
    write: tuple[Any, ...] | None = None

    @classmethod
    def of_hits(cls, hits: Sequence[dict[str, Any]], *, forest: str) -> "LearnedRecord":
        """Read it from the hits of its documents.

        Raises:
            ForestDamaged: It is unreadable.
        """
        numbers = [hit["sort"][0] for hit in hits]
        try:
            states = [hit["_source"]["state"] for hit in hits]
            content = "".join(state["changes"] for state in states)
            changes = Changes.of_bytes(base64.b64decode(content, validate=True))
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(forest, numbers[0], f"unreadable ({error})") from error
        return cls(numbers[0], numbers[-1], str(states[0]["log"]), changes, len(content))

    @property
    def end(self) -> End:
        """Where it ends."""
        return End(self.last, self.changes.last_page)

    def to_documents(self) -> list[Document]:
        """Return its documents as they are stored."""
        return documents_of(self.changes, log=self.log, first=self.first)


def documents_of(changes: Changes, *, log: str, first: int) -> list[Document]:
    """Return documents with some changes, from a number on, and the one that says that they must be there."""
    content = base64.b64encode(changes.to_bytes()).decode()
    last = first + (len(content) - 1) // _MOST_BYTES
    found: list[Document] = []
    for number in range(first, last + 1):
        at = (number - first) * _MOST_BYTES
        part = {"log": log, "changes": content[at : at + _MOST_BYTES], "goes_on": number < last}
        found.append((f"{FIELD}-{number}", {FIELD: number, "state": part}))
    return [*found, (_LAST_ID, {"state": {"log": log, "last": last}})]


class LearnedCopy:
    """What another process has learned for a forest, brought up to date on request. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boilerplate = Boilerplate()
        # The first document of the last record, which may have grown when it is read again: its changes are a
        # step that is open.
        self._number = 0
        self._log = ""
        # The latest write of it that was read.
        self._write: tuple[Any, ...] | None = None
        self._last: LearnedRecord | None = None
        self._ends: collections.deque[End] = collections.deque()

    def update(self, forest: str) -> Requests[None]:
        """Learn what has been learned since the last time, as far as a refresh has made it visible.

        If nothing has, that costs one short search.

        Raises:
            ForestDamaged: A document is missing or unreadable, or does not follow the one before.
        """
        number, log, write = self._number, self._log, self._write
        if (yield from _latest_write(forest, first=max(1, number))) == write:
            return
        found = yield from read_learned(forest, first=max(1, number))
        if number and not (found and found[0].first == number and found[0].log == log):
            # The forest is another one by now, or has forgotten more than this copy knows.
            found = yield from read_learned(forest)
            number = 0
        with self._lock:
            if number == 0:
                self._boilerplate = Boilerplate()
            elif number == self._number:
                self._boilerplate.undo()
            else:
                # Another thread was faster.
                return
            # If the documents are damaged, the next call begins anew.
            boilerplate, self._boilerplate = self._boilerplate, Boilerplate()
            self._number, self._write = 0, None
            teach(boilerplate, found, forest=forest)
            self._boilerplate = boilerplate
            self._ends = self._ends if number else collections.deque()
            if found:
                self._number, self._log, self._write = found[-1].first, found[-1].log, found[-1].write
                self._last = found[-1]
                if number:
                    # It may have grown, and is among those that were found.
                    self._ends.pop()
                self._ends.extend(each.end for each in found)
                while self._ends[0].page < boilerplate.window.former_from and len(self._ends) > 1:
                    self._ends.popleft()

    def taken(self) -> "tuple[Boilerplate, LearnedRecord | None, collections.deque[End]]":
        """Return what it knows, the last record, and the ends of all that still teach; then it is empty."""
        with self._lock:
            taken = self._boilerplate, self._last if self._number else None, self._ends
            if taken[0].has_begun:
                taken[0].keep()
            self._boilerplate, self._number, self._write = Boilerplate(), 0, None
            self._ends = collections.deque()
            return taken

    def are_learned(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return which passages are boilerplate by what has been learned, by their hashes: bool ``(n,)``."""
        with self._lock:
            return self._boilerplate.are_learned(hashes)

    def filter_on(self, overrides: Overrides = NO_OVERRIDES) -> SiteFilters:
        """Return what leaves out of pages what has been learned by then, or declared."""
        return lambda site: functools.partial(self.filter, overrides=overrides, sites=[site])

    def filter(
        self,
        passages: Passages,
        pages: npt.NDArray[np.uint64],
        *,
        overrides: Overrides = NO_OVERRIDES,
        sites: Iterable[str | None] = itertools.repeat(None),
    ) -> npt.NDArray[np.bool_]:
        """Return which passages of pages would be left out, as `Boilerplate.filter` does, and learn nothing.

        Args:
            passages: Of the pages.
            pages: Their ids, uint64 ``(text_count,)``.
            overrides: Those of the process that feeds the forest.
            sites: Of the pages. If pages are given a few at a time, an iterator that goes on.
        """
        with self._lock:
            self._boilerplate.begin()
            try:
                return self._boilerplate.filter(passages, pages, overrides=overrides, sites=sites)
            finally:
                if self._boilerplate.is_torn:
                    # The next `update` begins anew.
                    self._boilerplate, self._number, self._write = Boilerplate(), 0, None
                else:
                    self._boilerplate.undo()


def read_learned(forest: str, *, first: int = 1) -> Requests[list[LearnedRecord]]:
    """Read what a forest has learned, from a document on. Only what a refresh has made visible counts.

    Raises:
        ForestDamaged: A document is missing or unreadable, or is of another log.
    """
    body: Query = {
        "query": _documents_from(first),
        "sort": [{FIELD: {"missing": "_first"}}],
        "size": _READ_AT_ONCE,
        "_source": ["state"],
        "seq_no_primary_term": True,
        "track_total_hits": False,
    }
    hits = yield from all_hits(forest, body)
    if not hits:
        return []
    write, last = _write_of(max(hits, key=lambda hit: hit["_seq_no"])), 0
    if hits[0]["_id"] == _LAST_ID:
        last = _number(hits.pop(0))
    for before, after in itertools.pairwise(hits):
        number = before["sort"][0] + 1
        if after["sort"][0] != number:
            raise damaged(forest, number, "missing")
        if _state(after).get("log") != _state(before).get("log"):
            raise damaged(forest, number, "from another forest")
    found = _records(hits, forest=forest)
    known = found[-1].last if found else first - 1
    if known < last:
        raise damaged(forest, known + 1, "missing")
    if found:
        found[-1] = found[-1]._replace(write=write)
    return found


def _records(hits: Hits, *, forest: str) -> list[LearnedRecord]:
    """Return the records in documents, but for the last one if its writer died in the middle of it."""
    found: list[LearnedRecord] = []
    start = 0
    for stop, hit in enumerate(hits, 1):
        if not _state(hit).get("goes_on"):
            found.append(LearnedRecord.of_hits(hits[start:stop], forest=forest))
            start = stop
    return found


def _documents_from(number: int) -> Query:
    """Match the documents from a number on, and the one that says how many there must be."""
    return {"bool": {"should": [{"range": {FIELD: {"gte": number}}}, {"ids": {"values": [_LAST_ID]}}]}}


def _latest_write(forest: str, *, first: int) -> Requests[tuple[Any, ...] | None]:
    """Return which write of the documents from a number on is the latest; None if there are none."""
    body: Query = {
        "query": _documents_from(first),
        "sort": [{"_seq_no": "desc"}],
        "size": 1,
        "_source": ["state.log"],
        "seq_no_primary_term": True,
        "track_total_hits": False,
    }
    (answer,) = yield from search(forest, body)
    hits = answer["hits"]["hits"]
    return _write_of(hits[0]) if hits else None


def _write_of(hit: dict[str, Any]) -> tuple[Any, ...]:
    """Name the write of a document; no other has that name, not even in an earlier forest."""
    return hit["_id"], _state(hit).get("log"), hit["_seq_no"], hit["_primary_term"]


def _state(hit: dict[str, Any]) -> dict[str, Any]:
    """Return what a document says; nothing if it is damaged."""
    state = hit.get("_source", {}).get("state")
    return state if isinstance(state, dict) else {}


def _number(hit: dict[str, Any]) -> int:
    """Return how many documents there must be, at least."""
    last = _state(hit).get("last")
    return last if isinstance(last, int) else 0


def teach(boilerplate: Boilerplate, found: Sequence[LearnedRecord], *, forest: str) -> None:
    """Teach what documents say, the last of them as a step that stays open.

    Args:
        boilerplate: Knows what the documents before them say, or nothing.
        found: As `read_learned` returned them.
        forest: The forest's name.

    Raises:
        ForestDamaged: One does not follow the one before, or documents before them are missing.
    """
    is_new = boilerplate.last_page == 0
    for each in found:
        if boilerplate.has_begun:
            boilerplate.keep()
        boilerplate.begin()
        try:
            boilerplate.apply(each.changes)
        except ValueError as error:
            raise damaged(forest, each.first, f"wrong ({error})") from error
    if is_new and found and found[0].changes.first_page > boilerplate.window.former_from:
        raise damaged(forest, found[0].first - 1, "missing")


def damaged(forest: str, number: int, flaw: str) -> ForestDamaged:
    """Return the error for a flaw of a document."""
    document = f"{FIELD}-{number}"
    return ForestDamaged(
        f"what the forest {forest!r} has learned about boilerplate is damaged: its document {document!r} is "
        f"{flaw}. Repair the forest: it then begins to learn anew; stored articles keep their roots",
        forest=forest,
        document=document,
        flaw=flaw,
    )


# The changes of small batches share a document, which is written again with each of them.
_ENOUGH_BYTES = 8_000
_LOG_BYTES = 8
# One document with changes, and the one that says how many there must be.
_ONE_AND_LAST = 2


class LearnedLog:
    """The documents of one forest, and what they have taught, for the forest's owner."""

    def __init__(self, forest: str, found: Sequence[LearnedRecord]) -> None:
        """Learn from all documents that a forest has.

        Raises:
            ForestDamaged: One is missing, or does not follow the one before.
        """
        boilerplate = Boilerplate()
        teach(boilerplate, found, forest=forest)
        if found:
            boilerplate.keep()
        self._go_on(boilerplate, found[-1] if found else None, collections.deque(each.end for each in found))

    @classmethod
    def of(cls, copy: LearnedCopy) -> "LearnedLog":
        """Go on from what a copy knows, which knows nothing then."""
        log = cls.__new__(cls)
        log._go_on(*copy.taken())
        return log

    def _go_on(
        self, boilerplate: Boilerplate, last: LearnedRecord | None, ends: collections.deque[End]
    ) -> None:
        self.boilerplate = boilerplate
        self._log = last.log if last else secrets.token_hex(_LOG_BYTES)
        self._number = last.last if last else 0
        # The changes in the last document, while there is room for more.
        self._tail: Changes | None = None
        if last and last.size_bytes < _ENOUGH_BYTES:
            self._tail = last.changes
        # Of the records that may teach still.
        self._ends = ends

    def add(self, changes: Changes) -> list[Document]:
        """Return the documents that add the changes of a batch: new ones, or the last with more in it.

        None are needed if the batch had no new page, and ended no block.
        """
        if changes.are_empty:
            return []
        documents: list[Document] = []
        if self._tail is not None:
            joined = self._tail.then(changes)
            documents = documents_of(joined, log=self._log, first=self._number)
        # What is there already must not become a part of something that does not count yet.
        if len(documents) == _ONE_AND_LAST:
            changes = joined
            self._ends.pop()
        else:
            documents = documents_of(changes, log=self._log, first=self._number + 1)
        self._number = documents[-1][1]["state"]["last"]
        self._ends.append(End(self._number, changes.last_page))
        is_small = sum(len(each["state"].get("changes", "")) for _, each in documents) < _ENOUGH_BYTES
        self._tail = changes if is_small else None
        return documents

    def outdated(self) -> Query | None:
        """Return a query for documents that teach nothing any more; None if there are no new ones."""
        outdated = 0
        # The last document may get more.
        while len(self._ends) > 1 and self._ends[0].page < self.boilerplate.window.former_from:
            outdated = self._ends.popleft().document
        return {"range": {FIELD: {"lte": outdated}}} if outdated else None
