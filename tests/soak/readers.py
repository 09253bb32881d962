"""Readers that check throughout a soak test that they find every article of an index that does not change."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from elasticsearch import helpers

from esdedup import Dedup, EsdedupError, Reader
from esdedup.elastic.client import connect
from tests.soak.feeders import articles

_PAUSE_S = 0.3
# After a node or a sidecar was killed, a reader may get errors for this long.
_LONGEST_S = 15.0


class Readers:
    """Readers in threads, each of which uses some addresses of Elasticsearch or of sidecars."""

    def __init__(self, url: str, *, index: str, forest: str, shards: int, count: int, seed: int) -> None:
        """Create the index, with `count` articles."""
        with connect(url) as es, Dedup(es, forest=forest) as dedup:
            dedup.setup(index, shards=shards)
            given = ({"_index": index, **each} for each in articles(count, seed=seed))
            helpers.bulk(es, dedup.enrich(given), refresh=True)
        self._index, self._count = index, count
        self._is_over = threading.Event()
        self._partial: Counter[str] = Counter()
        # For each of the addresses: the reads, the errors, and the longest time in which all reads failed.
        self._reads: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._longest_s: dict[str, float] = {}

    @contextlib.contextmanager
    def running(self, urls: Sequence[str]) -> Iterator[None]:
        """Read from each of the addresses, which may be several separated by commas, until the block ends."""
        threads = [threading.Thread(target=self._read, args=(url,), daemon=True) for url in urls]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            self._is_over.set()
            for each in threads:
                each.join()

    @property
    def figures(self) -> dict[str, int]:
        """How much was read, and with which errors."""
        return {
            "reads": self._reads.total(),
            "reads that failed": self._errors.total(),
            "ms longest time in which a reader's reads failed": round(1000 * max(self._longest_s.values())),
        }

    @property
    def faults(self) -> list[str]:
        """Responses that lacked articles, and errors that lasted."""
        found = [f"{count} reads {what}" for what, count in self._partial.items()]
        return found + [
            f"reads from {url} failed for {longest_s:.0f} s"
            for url, longest_s in self._longest_s.items()
            if longest_s > _LONGEST_S
        ]

    def _read(self, url: str) -> None:
        self._longest_s[url] = 0.0
        with connect(url) as es:
            reader = Reader(es)
            fine_s = time.monotonic()
            while not self._is_over.wait(_PAUSE_S):
                began_s = time.monotonic()
                self._reads[url] += 1
                try:
                    found = reader.list(self._index).total_articles
                except EsdedupError:
                    self._errors[url] += 1
                    self._longest_s[url] = max(self._longest_s[url], time.monotonic() - fine_s)
                    continue
                fine_s = time.monotonic()
                if found != self._count:
                    self._partial[f"from {url} found {found} of {self._count} articles"] += 1
                if fine_s - began_s > _LONGEST_S:
                    self._longest_s[url] = max(self._longest_s[url], fine_s - began_s)
