"""What pages have taught, as the forest's owner keeps it: in memory, and in documents of the index."""

import collections
import secrets
from collections.abc import Sequence

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes
from esdedup.elastic.forest.documents import Document
from esdedup.elastic.forest.learned import FIELD, LearnedDocument, teach
from esdedup.elastic.requests import Query

# The changes of small batches share a document, which is written again with each of them.
_ENOUGH_BYTES = 32_000
_LOG_BYTES = 8


class LearnedLog:
    """The documents of one forest, and what they have taught, for the forest's owner."""

    def __init__(self, forest: str, found: Sequence[LearnedDocument]) -> None:
        """Learn from all documents that a forest has.

        Raises:
            ForestDamaged: One is missing, or does not follow the one before.
        """
        self.boilerplate = Boilerplate()
        teach(self.boilerplate, found, forest=forest)
        if found:
            self.boilerplate.keep()
        self._log = found[0].log if found else secrets.token_hex(_LOG_BYTES)
        self._number = found[-1].number if found else 0
        # The changes in the last document, while there is room for more.
        self._tail: Changes | None = None
        # The number of each document, and its last page.
        self._last_pages = collections.deque((each.number, each.changes.last_page) for each in found)

    def add(self, changes: Changes) -> Document | None:
        """Return the document that adds the changes of a batch: a new one, or the last with more in it.

        None if the batch had no new page, and ended no block.
        """
        if not changes.page_count and not len(changes.site_numbers):
            return None
        if self._tail is None:
            self._number += 1
        else:
            changes = self._tail.then(changes)
            self._last_pages.pop()
        self._last_pages.append((self._number, changes.last_page))
        document = LearnedDocument(self._number, self._log, changes).to_document()
        self._tail = changes if len(document[1]["state"]["changes"]) < _ENOUGH_BYTES else None
        return document

    def outdated(self) -> Query | None:
        """Return a query for documents that teach nothing any more; None if there are no new ones."""
        outdated = 0
        # The last document may get more.
        while len(self._last_pages) > 1 and self._last_pages[0][1] < self.boilerplate.window.former_from:
            outdated, _ = self._last_pages.popleft()
        return {"range": {FIELD: {"lte": outdated}}} if outdated else None
