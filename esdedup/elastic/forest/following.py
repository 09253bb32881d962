"""`Following`: what another process writes to a forest, read by one that may take it over."""

import logging
import time
from collections.abc import Callable

from elasticsearch import Elasticsearch

from esdedup.elastic.execute import hit_pages
from esdedup.elastic.forest.documents import live_filter
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import LearnedCopy, read_learned
from esdedup.elastic.forest.learned_log import LearnedLog
from esdedup.elastic.forest.log import FIELD, log_body
from esdedup.elastic.forest.log_copy import LogCopy, version_of
from esdedup.elastic.pages import Hits
from esdedup.elastic.requests import Query, search
from esdedup.forest import Aging, Nodes

log = logging.getLogger("esdedup")

# A look refreshes the index, so that the server writes a small segment.
_LOOK_EVERY_S = 5.0
# Before all is read again after an error; twice as long after the next one.
_PAUSE_S, _LONGEST_PAUSE_S = 60.0, 3_600.0


class Following:
    """Follows the log of a forest, and what is learned for it, while another process owns it.

    So whoever takes the forest over reads only the rest. Whatever goes wrong, it loads all.
    """

    def __init__(self, client: Elasticsearch, *, forest: str, memory_bytes: int) -> None:
        """Read nothing yet.

        Args:
            client: Owned by the caller.
            forest: Name of its index.
            memory_bytes: What the nodes may take in memory.
        """
        self._client = client
        self._forest = forest
        self._memory_bytes = memory_bytes
        self._next_look_s = 0.0
        self._pause_s = _PAUSE_S
        self._index: ForestIndex | None = None
        self._uuid = ""
        self._copy: LogCopy | None = None
        self._learned: LearnedCopy | None = None
        # Whether the last look has not come to the end, and whether any has.
        self._is_more = False
        self._has_followed = False

    def follow(self) -> bool:
        """Read some of what is new, if it is time to look; return whether there is more. Raises nothing."""
        if time.monotonic() < self._next_look_s:
            return False
        wait_s = _LOOK_EVERY_S
        try:
            self._is_more = self._look()
        except Exception as error:
            # Whatever it is, this process stands by.
            log.warning("the forest %r will be loaded when it is taken over: %s", self._forest, error)
            self._forget()
            wait_s, self._pause_s = self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S)
        else:
            if not self._is_more:
                self._pause_s = _PAUSE_S
        if not self._is_more:
            self._next_look_s = time.monotonic() + wait_s
        return self._is_more

    def nodes(
        self, index: ForestIndex, *, aging: Aging, live_since_ms: int, on_read: Callable[[], None]
    ) -> Nodes | None:
        """Return all that lives, once nobody else writes; None if it has to be loaded, as by `load_log`."""
        copy = self._copy
        if copy is None:
            return None
        try:
            return self._taken(copy, index, aging=aging, live_since_ms=live_since_ms, on_read=on_read)
        except Exception as error:
            # Whatever it is, the forest can be loaded.
            log.warning("the forest %r is loaded: %s", self._forest, error)
            return None
        finally:
            # Their memory is free before others are loaded.
            self._forget()

    def learned(self, index: ForestIndex) -> LearnedLog:
        """Return what was learned, once nobody else writes."""
        copy, self._learned = self._learned, None
        if copy is not None:
            try:
                index.run(copy.update(index.name))
                return LearnedLog.of(copy)
            except Exception as error:
                # As above.
                log.warning("what the forest %r has learned is read: %s", self._forest, error)
        return LearnedLog(index.name, index.run(read_learned(index.name)))

    def _forget(self) -> None:
        self._index = self._copy = self._learned = None
        self._is_more = self._has_followed = False

    def _look(self) -> bool:
        """Read some of what is new; return whether there is more."""
        index = self._index = self._index or ForestIndex.find(self._client, self._forest)
        if not index.meta.is_log:
            # Another owner may make it anew.
            self._forget()
            return False
        if self._copy is None:
            self._uuid = index.uuid()
            self._copy = LogCopy(index.relation, index.status().aging, memory_bytes=self._memory_bytes)
        copy = self._copy
        self._learned = self._learned or LearnedCopy()
        if not self._is_more:
            index.refresh()
            index.run(self._learned.update(index.name))
        if _read(index, copy):
            return True
        if copy.is_unsettled:
            if index.status().aging != copy.aging:
                raise ValueError("its retention has changed")
            copy.settle()
        if not self._has_followed:
            self._has_followed = True
            log.info("follows the forest %r: %s nodes so far", self._forest, f"{len(copy.nodes):,}")
        return False

    def _taken(
        self,
        copy: LogCopy,
        index: ForestIndex,
        *,
        aging: Aging,
        live_since_ms: int,
        on_read: Callable[[], None],
    ) -> Nodes | None:
        """Return the nodes, with what was not followed; None if the log has others."""
        if copy.aging != aging or self._uuid != index.uuid():
            return None
        if _versions(index, copy.number, live_since_ms) != copy.versions(live_since_ms):
            log.info("the forest %r is loaded: its log has changed, and not only grown", self._forest)
            return None
        followed = copy.read_count
        while _read(index, copy):
            on_read()
        copy.settle(live_since_ms=live_since_ms)
        log.info(
            "took over the %s nodes of the forest %r by %s documents of its log: %s had been followed",
            f"{len(copy.nodes):,}",
            self._forest,
            f"{copy.read_count - followed:,}",
            f"{followed:,}",
        )
        return copy.nodes


def _read(index: ForestIndex, copy: LogCopy) -> bool:
    """Read some documents of a log; return whether there are more.

    Without a point in time: what is still needed of a document is written again, at the end, before that is
    deleted.
    """
    body = log_body({"range": {FIELD: {"gte": copy.number}}}, versions=True, repeated=True)
    (answer,) = index.run(search(index.name, body))
    hits: Hits = answer["hits"]["hits"]
    copy.add(hits)
    return len(hits) == int(body["size"])


def _versions(index: ForestIndex, before: int, live_since_ms: int) -> dict[int, tuple[int, int]]:
    """Return the versions, by number, of the documents before a number in which something lives."""
    body: Query = {
        "query": {"bool": {"filter": [{"range": {FIELD: {"lt": before}}}, *live_filter(live_since_ms)]}},
        "sort": [FIELD],
        "size": index.limits.max_hits,
        "_source": False,
        "seq_no_primary_term": True,
        "track_total_hits": False,
    }
    pages = hit_pages(index.client, index.name, body)
    return {hit["sort"][0]: version_of(hit) for hits in pages for hit in hits}
