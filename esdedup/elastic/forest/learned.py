"""What pages have taught, as documents of the forest's index: changes, batch after batch.

A batch's changes are written after its nodes, in one document. So after a crash either all of the batch
counts, or the batch comes again and is judged as it was before.
"""

import base64
import functools
import itertools
import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes
from esdedup.boilerplate.lesson import Lesson
from esdedup.boilerplate.pins import NO_PINS, Pins
from esdedup.elastic.forest.documents import Document
from esdedup.elastic.pages import all_hits
from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import ForestDamaged
from esdedup.neighbours.key_table import Keys
from esdedup.text.passages import OmitOn, Passages

FIELD = "learned"
"""The number of a document."""

EVERY_DOCUMENT: Query = {"exists": {"field": FIELD}}
"""Matches the documents."""

# Of up to a megabyte each.
_READ_AT_ONCE = 20


class LearnedDocument(NamedTuple):
    """A document with the changes of some batches."""

    # From 1, without gaps.
    number: int
    # The same in all documents of a forest: made up for the first.
    log: str
    changes: Changes
    # Which write of the document this is, as `_write_of` names it; None for one that is to be written.
    write: tuple[Any, ...] | None = None

    def to_document(self) -> Document:
        """Return it as it is stored."""
        content = base64.b64encode(self.changes.to_bytes()).decode()
        state = {"log": self.log, "changes": content}
        return f"{FIELD}-{self.number}", {FIELD: self.number, "state": state}

    @classmethod
    def of_hit(cls, hit: dict[str, Any], *, forest: str) -> "LearnedDocument":
        """Read it from a hit.

        Raises:
            ForestDamaged: It is unreadable.
        """
        number = hit["sort"][0]
        try:
            state = hit["_source"]["state"]
            content = base64.b64decode(state["changes"], validate=True)
            return cls(number, str(state["log"]), Changes.of_bytes(content), _write_of(hit, state))
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(forest, number, f"unreadable ({error})") from error


class LearnedCopy:
    """What another process has learned for a forest, brought up to date on request. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boilerplate = Boilerplate()
        # The last document, which may have grown when it is read again: its changes are a step that is open.
        self._number = 0
        self._log = ""
        # Which write of it was read.
        self._write: tuple[Any, ...] | None = None

    def update(self, forest: str) -> Requests[None]:
        """Learn what has been learned since the last time, as far as a refresh has made it visible.

        If nothing has, that costs one short search.

        Raises:
            ForestDamaged: A document is missing or unreadable, or does not follow the one before.
        """
        number, log, write = self._number, self._log, self._write
        latest = yield from _latest_writes(forest, first=max(1, number))
        if latest == ([] if number == 0 else [write]):
            return
        found = yield from read_learned(forest, first=max(1, number))
        if number and not (found and found[0].number == number and found[0].log == log):
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
            boilerplate, self._boilerplate, self._number = self._boilerplate, Boilerplate(), 0
            teach(boilerplate, found, forest=forest)
            self._boilerplate = boilerplate
            if found:
                self._number, self._log, self._write = found[-1].number, found[-1].log, found[-1].write

    def are_learned(self, hashes: Keys) -> npt.NDArray[np.bool_]:
        """Return which passages are boilerplate by what has been learned, by their hashes: bool ``(n,)``."""
        with self._lock:
            return self._boilerplate.known(hashes).are_learned

    def omit_on(self, pins: Pins = NO_PINS) -> OmitOn:
        """Return what leaves out of pages what has been learned by then, or is pinned."""
        return lambda site: functools.partial(self.omit, pins=pins, sites=[site])

    def omit(
        self,
        passages: Passages,
        pages: Keys,
        *,
        pins: Pins = NO_PINS,
        sites: Iterable[str | None] = itertools.repeat(None),
    ) -> npt.NDArray[np.bool_]:
        """Return which passages of pages would be left out, as `Lesson.omit` does, and learn nothing.

        Args:
            passages: Of the pages.
            pages: Their ids, uint64 ``(text_count,)``.
            pins: Those of the process that feeds the forest.
            sites: Of the pages. If pages are given a few at a time, an iterator that goes on.
        """
        with self._lock:
            self._boilerplate.begin()
            try:
                return Lesson(self._boilerplate, pins=pins, sites=sites).omit(passages, pages)
            finally:
                if self._boilerplate.is_torn:
                    # The next `update` begins anew.
                    self._boilerplate, self._number = Boilerplate(), 0
                else:
                    self._boilerplate.undo()


def read_learned(forest: str, *, first: int = 1) -> Requests[list[LearnedDocument]]:
    """Read the documents of a forest from a number on. Only what a refresh has made visible counts.

    Raises:
        ForestDamaged: One is missing or unreadable, or is of another log.
    """
    body: Query = {
        "query": {"range": {FIELD: {"gte": first}}},
        "sort": [FIELD],
        "size": _READ_AT_ONCE,
        "_source": ["state"],
        "seq_no_primary_term": True,
        "track_total_hits": False,
    }
    hits = yield from all_hits(forest, body)
    found = [LearnedDocument.of_hit(hit, forest=forest) for hit in hits]
    for before, after in itertools.pairwise(found):
        if after.number != before.number + 1:
            raise damaged(forest, before.number + 1, "missing")
        if after.log != before.log:
            raise damaged(forest, after.number, "from another forest")
    return found


def _latest_writes(forest: str, *, first: int) -> Requests[list[tuple[Any, ...]]]:
    """Return which writes the documents from a number on are; of more than two the first two."""
    body: Query = {
        "query": {"range": {FIELD: {"gte": first}}},
        "sort": [FIELD],
        "size": 2,
        "_source": ["state.log"],
        "seq_no_primary_term": True,
        "track_total_hits": False,
    }
    (answer,) = yield from search(forest, body)
    hits = answer["hits"]["hits"]
    return [_write_of(hit, hit.get("_source", {}).get("state")) for hit in hits]


def _write_of(hit: dict[str, Any], state: object) -> tuple[Any, ...]:
    """Name the write of a document; no other has that name, not even in an earlier forest."""
    log = state.get("log") if isinstance(state, dict) else None
    return hit["sort"][0], log, hit["_seq_no"], hit["_primary_term"]


def teach(boilerplate: Boilerplate, found: Sequence[LearnedDocument], *, forest: str) -> None:
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
            raise damaged(forest, each.number, f"wrong ({error})") from error
    if is_new and found and found[0].changes.first_page > boilerplate.window.former_from:
        raise damaged(forest, found[0].number - 1, "missing")


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
