"""`Follower`: reads a forest while another process owns it, so that this process can take over quickly."""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from elasticsearch import Elasticsearch

from esdedup.elastic.execute import hit_pages
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import LearnedCopy, LearnedLog, read_learned
from esdedup.elastic.forest.log import FIELD, log_body
from esdedup.elastic.forest.stored import Hit, live_filter, packed_of
from esdedup.elastic.pages import Hits
from esdedup.elastic.requests import Query, search
from esdedup.forest import NO_TIME, Aging, Nodes, State
from esdedup.neighbours.relation import Relation

Version = tuple[int, int]
"""The `_seq_no` and the `_primary_term` of a document, which together identify one write of the document."""


class _Document(NamedTuple):
    version: Version
    # The latest `seen` of its entries; NO_TIME if none is known.
    seen_ms: int


class LogCopy:
    """The nodes and content hashes of a growing log, and the versions of the documents they were read from.

    Documents in which everything has expired may have been deleted. Their nodes stay in this copy, as in the
    owner's memory, until `settle` drops them.
    """

    def __init__(self, relation: Relation, aging: Aging, *, memory_bytes: int) -> None:
        self.aging = aging
        self.nodes = Nodes(relation, aging)
        # The number of the last document read, which may still grow, and its content so far.
        self.number, self._last = 0, b""
        # How many documents with new content were read.
        self.read_count = 0
        # Whether anything was added since the last `settle`.
        self.is_unsettled = False
        self._memory_bytes = memory_bytes
        self._documents: dict[int, _Document] = {}
        # The state according to the documents read. The forest's time may be later.
        self._state = State()

    def add(self, hits: Hits) -> None:
        """Add the next documents, beginning with the document `number`, which may have grown.

        Raises `ValueError` if they do not continue the log, or if the nodes take too much memory.
        """
        logs = [packed for hit in hits for (packed,) in [packed_of([hit])]]
        if self.number:
            if not hits or hits[0]["sort"][0] != self.number or not logs[0].startswith(self._last):
                raise ValueError(f"the document {self.number} of its log has been replaced")
            logs[0] = logs[0][len(self._last) :]
        for hit, log in zip(hits, logs, strict=True):
            self._note(hit, log)
        if any(logs):
            self.is_unsettled = True
            self.nodes.load_logs(logs)
            # Allow twice the memory here, since some of the nodes have expired.
            self._refuse_beyond(2 * self._memory_bytes)

    def settle(self, *, live_since_ms: int | None = None) -> None:
        """Once all documents have been read, link the nodes to their roots, and drop expired nodes.

        Documents may be added later. Without `live_since_ms`, the documents' times decide what has expired.
        Raises `ValueError` if the nodes take too much memory.
        """
        if live_since_ms is None:
            live_since_ms = self._state.live_since_ms(self.aging)
        self.nodes.settle(live_since_ms=live_since_ms)
        self.is_unsettled = False
        self._documents = self._living(live_since_ms)
        self._refuse_beyond(self._memory_bytes)

    def versions(self, live_since_ms: int) -> dict[int, Version]:
        """Return the versions, by number, of all documents with live nodes, except the last document."""
        living = self._living(live_since_ms)
        return {number: each.version for number, each in living.items() if number < self.number}

    def _note(self, hit: Hit, log: bytes) -> None:
        number, made_ms = hit["sort"][0], _times_ms(hit, "made")
        seen_ms = max(_times_ms(hit, "seen"), default=NO_TIME)
        self._documents[number] = _Document(version_of(hit), seen_ms)
        self._last = self._last + log if number == self.number else log
        self.number = number
        self.read_count += bool(log)
        if made_ms:
            self._state = self._state.after(State(time_ms=max(made_ms), origin_ms=min(made_ms)))

    def _living(self, live_since_ms: int) -> dict[int, _Document]:
        return {number: each for number, each in self._documents.items() if each.seen_ms >= live_since_ms}

    def _refuse_beyond(self, most_bytes: int) -> None:
        if self.nodes.size_bytes > most_bytes:
            raise ValueError(f"its nodes take more than {most_bytes:,} bytes of memory")


def version_of(hit: Hit) -> Version:
    """Return the version of the document in a hit."""
    return hit["_seq_no"], hit["_primary_term"]


def _times_ms(hit: Hit, name: str) -> list[int]:
    return [int(each) for each in hit["fields"].get(name, [])]


log = logging.getLogger("esdedup")

# How often to poll. Each poll refreshes the index, which makes the server write a small segment.
_POLL_EVERY_S = 5.0
# The pause after an error, before the whole log is read again. Each further error doubles it, to a maximum.
_PAUSE_S, _LONGEST_PAUSE_S = 60.0, 3_600.0


class Follower:
    """Follows the log and the learned boilerplate of a forest while another process owns it.

    When this process takes over the forest, it reads only recent changes. If that fails, it loads everything.
    """

    def __init__(self, client: Elasticsearch, *, forest: str, memory_bytes: int) -> None:
        self._client = client
        self._forest = forest
        self._memory_bytes = memory_bytes
        self._next_poll_s = 0.0
        self._pause_s = _PAUSE_S
        self._index: ForestIndex | None = None
        self._uuid = ""
        self._copy: LogCopy | None = None
        self._learned: LearnedCopy | None = None
        # Whether the last poll stopped before the end of the log, and whether any poll has reached the end.
        self._is_more = False
        self._has_followed = False

    def follow(self) -> bool:
        """Read some new documents, if the next poll is due; return whether there are more. Never raises."""
        if time.monotonic() < self._next_poll_s:
            return False
        wait_s = _POLL_EVERY_S
        try:
            self._is_more = self._poll()
        except Exception as error:
            # After any error, this process must remain a standby.
            log.warning("the forest %r will be loaded in full when it is taken over: %s", self._forest, error)
            self._forget()
            wait_s, self._pause_s = self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S)
        else:
            if not self._is_more:
                self._pause_s = _PAUSE_S
        if not self._is_more:
            self._next_poll_s = time.monotonic() + wait_s
        return self._is_more

    def nodes(
        self, index: ForestIndex, *, aging: Aging, live_since_ms: int, on_read: Callable[[], None]
    ) -> Nodes | None:
        """Return all live nodes, once this process owns the forest; None if `load_log` must load them."""
        copy = self._copy
        if copy is None:
            return None
        try:
            if copy.aging != aging or self._uuid != index.setting("uuid"):
                return None
            if _versions(index, copy.number, live_since_ms) != copy.versions(live_since_ms):
                log.info("the forest %r is loaded in full: older parts of its log have changed", self._forest)
                return None
            followed = copy.read_count
            while _read(index, copy):
                on_read()
            copy.settle(live_since_ms=live_since_ms)
        except Exception as error:
            # After any error, the forest can be loaded in full.
            log.warning("the forest %r is loaded in full: %s", self._forest, error)
            return None
        finally:
            # Free the memory of this copy before the nodes are loaded again.
            self._forget()
        log.info(
            "took over the %s nodes of the forest %r: read %s documents of its log; %s had been read before",
            f"{len(copy.nodes):,}",
            self._forest,
            f"{copy.read_count - followed:,}",
            f"{followed:,}",
        )
        return copy.nodes

    def learned(self, index: ForestIndex) -> LearnedLog:
        """Return the learned boilerplate, once this process owns the forest."""
        copy, self._learned = self._learned, None
        if copy is not None:
            try:
                index.run(copy.update(index.name))
                return copy.taken()
            except Exception as error:
                # After any error, the boilerplate can be read in full.
                log.warning("the learned boilerplate of %r is read in full: %s", self._forest, error)
        return LearnedLog(index.name, index.run(read_learned(index.name)))

    def _forget(self) -> None:
        self._index = self._copy = self._learned = None
        self._is_more = self._has_followed = False

    def _poll(self) -> bool:
        """Read some new documents; return whether there are more."""
        index = self._index = self._index or ForestIndex.find(self._client, self._forest)
        if not index.meta.is_log:
            # Forget this index, since another process may replace the forest with one that has a log.
            self._forget()
            return False
        if self._copy is None:
            self._uuid = index.setting("uuid")
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
            log.info("following the forest %r: %s nodes so far", self._forest, f"{len(copy.nodes):,}")
        return False


def _read(index: ForestIndex, copy: LogCopy) -> bool:
    """Read some documents of a log; return whether there are more.

    Needs no point in time, since a document's live nodes are appended to the log before it is deleted.
    """
    body = log_body({"range": {FIELD: {"gte": copy.number}}}, versions=True, repeated=True)
    (answer,) = index.run(search(index.name, body))
    hits: Hits = answer["hits"]["hits"]
    copy.add(hits)
    return len(hits) == int(body["size"])


def _versions(index: ForestIndex, before: int, live_since_ms: int) -> dict[int, tuple[int, int]]:
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
