"""Compares eager and lazy ordinals of `dedup.root`: `python -m benchmarks.ordinals`.

Elasticsearch renumbers the values of a keyword field for each refresh: during the refresh if ordinals are
eager, otherwise when they are next needed. For a growing index, this prints the duration of a refresh after
one more article, and of two requests per list. Run this once for each release, not with other benchmarks.
"""

import argparse
import datetime as dt
import random
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from elasticsearch import Elasticsearch, helpers

from benchmarks.server import client
from esdedup import Dedup, Reader

_INDEX = "ordinals"
_ROUNDS = 7
# The share of articles that begin a cluster.
_NEW = 0.6
_SOURCES = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=int, nargs="+", default=[250_000, 1_000_000, 4_000_000])
    options = parser.parse_args()
    with client(lifetime_s=4 * 3600, heap="4g") as es:
        Dedup(es, forest="ordinals-forest").setup(_INDEX)
        es.indices.put_settings(index=_INDEX, settings={"refresh_interval": "-1"})
        stream = _articles()
        _print("articles", "ordinals", "refresh", "newest, 1st", "2nd", "by count, 1st", "2nd", unit="")
        done = 0
        for count in sorted(options.articles):
            _bulk(es, (next(stream) for _ in range(count - done)))
            done = count
            for eager in (True, False):
                root = {"type": "keyword", "eager_global_ordinals": eager}
                es.indices.put_mapping(index=_INDEX, properties={"dedup": {"properties": {"root": root}}})
                rounds = [_round(es, stream) for _ in range(_ROUNDS)]
                medians = (round(1000 * statistics.median(each)) for each in zip(*rounds, strict=True))
                _print(f"{count:,}", "eager" if eager else "lazy", *medians)


def _articles() -> Iterator[dict[str, Any]]:
    """Yield enriched articles with the fields that lists read."""
    chance = random.Random(1)
    roots: list[str] = []
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    seq = 0
    while True:
        seq, at = seq + 1, at + dt.timedelta(seconds=1)
        if not roots or chance.random() < _NEW:
            roots.append(uuid.UUID(int=chance.getrandbits(128)).hex)
            root = roots[-1]
        else:
            # Most reprints appear soon after their original.
            root = roots[-min(len(roots), 1 + int(chance.expovariate(1 / 2_000)))]
        dedup = {"root": root, "fingerprint": root, "profile": "verified-5", "seq": seq}
        yield {
            "_index": _INDEX,
            "published_at": at.isoformat(),
            "source": f"Medium {chance.randrange(_SOURCES)}",
            "title": "Ferry",
            "dedup": dedup,
        }


def _bulk(es: Elasticsearch, actions: Iterator[dict[str, Any]]) -> None:
    for _ in helpers.streaming_bulk(es, actions, chunk_size=2_000):
        pass
    es.indices.refresh(index=_INDEX)
    es.options(request_timeout=600).indices.forcemerge(index=_INDEX, max_num_segments=10)
    es.indices.refresh(index=_INDEX)


def _round(es: Elasticsearch, stream: Iterator[dict[str, Any]]) -> tuple[float, ...]:
    """Return durations in seconds: a refresh after one new article, then each of two lists, twice."""
    took_s = []
    for sort in ("newest", "similar-desc"):
        # Let the reader read the mappings before the measurement.
        reader = Reader(es)
        reader.list(_INDEX, sort=sort)
        article = next(stream)
        es.index(index=article.pop("_index"), document=article)
        refresh_s = _timed(lambda: es.indices.refresh(index=_INDEX))
        first_s = _timed(lambda reader=reader, sort=sort: reader.list(_INDEX, sort=sort))
        second_s = _timed(lambda reader=reader, sort=sort: reader.list(_INDEX, sort=sort))
        took_s += [first_s, second_s] if took_s else [refresh_s, first_s, second_s]
    return tuple(took_s)


def _timed(call: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    call()
    return time.perf_counter() - started_s


def _print(articles: str, ordinals: str, *values: object, unit: str = " ms") -> None:
    cells = (f"{value}{unit}" for value in values)
    sys.stdout.write(" | ".join((articles, ordinals, *cells)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
