"""Clusters and feeds the pages of a file in child processes, and measures time and memory."""

import collections
import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.cluster import Clustering
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.files import read_articles
from esdedup.ingest.load import Load

from benchmarks.day.crawl import RETENTION
from benchmarks.processes import in_new_process, resident_bytes
from esdedup.elastic.client import connect
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.store import ElasticStore
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT
from esdedup.forest import Aging
from esdedup.maintenance.stats import LearnedStats, learned_stats

Root = str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Usage:
    """The time and memory that were needed for a part of the pages."""

    pages: int
    # The processor time of this process alone.
    processor_s: float
    wall_s: float
    # The memory of the process at the end.
    resident_bytes: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fed:
    """A part of the pages, fed by a new process that opened the forest."""

    usage: Usage
    # The time until the forest was open.
    opening_s: float
    without_fingerprint: int


def cluster_file(path: Path, count: int, *, parts: int) -> tuple[list[Root], list[Usage]]:
    """Cluster `count` pages in memory; return their roots, and the usage of each part."""
    return in_new_process(_cluster, path, count, parts)


def feed_file(url: str, path: Path, count: int, *, parts: int, index: str, forest: str) -> Iterator[Fed]:
    """Feed `count` pages to a forest, each part from a new process."""
    for start, stop in itertools.pairwise(count * part // parts for part in range(parts + 1)):
        yield in_new_process(_feed, url, path, start, stop, index, forest)


def roots_of(client: Elasticsearch, index: str, count: int) -> list[Root]:
    """Return the roots of pages in an index, by page number; None for a page without a fingerprint."""
    client.indices.refresh(index=index)
    roots: list[Root] = [None] * count
    for hit in helpers.scan(client, index=index, query={"_source": ["dedup.root"]}, size=5_000):
        root = hit["_source"]["dedup"]["root"]
        roots[int(hit["_id"])] = None if root.startswith("~") else root
    return roots


def learned_by(client: Elasticsearch, forest: str) -> LearnedStats:
    client.indices.refresh(index=forest)
    learned = learned_stats(ForestIndex.find(client, forest))
    assert learned is not None
    return learned


def _cluster(path: Path, count: int, parts: int) -> tuple[list[Root], list[Usage]]:
    clustering = Clustering(
        profile=DEFAULT, fields=Fields(), use_time=True, retention=RETENTION, on_rejected=_refuse
    )
    clustered = clustering.cluster(read_articles([path]))
    roots: list[Root] = []
    used = []
    for part in range(parts):
        stop = count * (part + 1) // parts
        with _using(stop - len(roots)) as usage:
            roots += [each.root for each in itertools.islice(clustered, stop - len(roots))]
        used.append(usage())
    return roots, used


def _feed(url: str, path: Path, start: int, stop: int, index: str, forest: str) -> Fed:
    articles = read_articles([path])
    collections.deque(itertools.islice(articles, start), maxlen=0)
    load = Load(on_rejected=_refuse)
    with connect(url) as client:
        with _using(0) as opening:
            aging = Aging.of(retention=RETENTION)
            ElasticStore(client, forest=forest, profile=DEFAULT, aging=aging).close()
        with Dedup(client, forest=forest, retention=RETENTION) as dedup, _using(stop - start) as usage:
            dedup.setup(index)
            load.run(client, dedup, itertools.islice(articles, stop - start), index=index, backfill=True)
    return Fed(
        usage=usage(), opening_s=opening().wall_s, without_fingerprint=load.summary.without_fingerprint
    )


def _refuse(rejected: ArticleRejected) -> None:
    raise rejected


@contextlib.contextmanager
def _using(pages: int) -> Iterator[Callable[[], Usage]]:
    """Measure a block that processes `pages` pages; after it, the yielded function returns the usage."""
    found: list[Usage] = []
    processor_s, wall_s = time.process_time(), time.perf_counter()
    yield found.pop
    found.append(
        Usage(
            pages=pages,
            processor_s=time.process_time() - processor_s,
            wall_s=time.perf_counter() - wall_s,
            resident_bytes=resident_bytes(),
        )
    )
