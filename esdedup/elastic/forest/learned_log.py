"""What pages have taught, as the forest's owner keeps it: in memory, and in documents of the index."""

import collections
import secrets
from collections.abc import Sequence

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes
from esdedup.elastic.forest.documents import Document
from esdedup.elastic.forest.learned import FIELD, End, LearnedCopy, LearnedRecord, documents_of, teach
from esdedup.elastic.requests import Query

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
