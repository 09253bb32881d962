"""Measures how fast tens of millions of articles are listed, in one index or many.

Thirty million articles are ten years of news at about 8,000 articles a day. Generated articles have the
fields of the dedup object that lists read. Run `python -m benchmarks.ten_years` once for each release, not
with the other benchmarks: thirty million articles take an hour.
"""

import argparse
import concurrent.futures
import datetime as dt
import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from elasticsearch import Elasticsearch

from benchmarks.server import client
from esdedup import Dedup, Reader
from esdedup.elastic.patience import patient
from esdedup.fields import partition_of

_ALIAS = "years"
_ROUNDS = 8
# The share of articles that begin a cluster. Each other article repeats one of the `_LATEST` latest articles,
# so large clusters grow.
_NEW, _LATEST = 0.6, 20_000
_SOURCES, _WORDS = 500, 3_000
_SECONDS_PER_DAY = 86_400
_AT_ONCE = 5_000
_WRITERS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=int, default=30_000_000)
    parser.add_argument("--indices", type=int, nargs="+", default=[30, 1])
    parser.add_argument("--heap", default="8g")
    options = parser.parse_args()
    for indices in options.indices:
        with client(lifetime_s=6 * 3600, heap=options.heap) as es:
            _fill(es, articles=options.articles, indices=indices)
            _measure(es, articles=options.articles)


def _fill(es: Elasticsearch, *, articles: int, indices: int) -> None:
    names = [f"{_ALIAS}-{number:02}" for number in range(indices)]
    dedup = Dedup(es, forest=f"{_ALIAS}-forest")
    for name in names:
        dedup.setup(name)
        es.indices.put_alias(index=name, name=_ALIAS)
        settings = {"refresh_interval": "-1", "translog": {"durability": "async"}}
        es.indices.put_settings(index=name, settings=settings)
    started_s = time.monotonic()
    bodies = _bodies(names, articles)
    with concurrent.futures.ThreadPoolExecutor(_WRITERS) as pool:
        # No more than a few bodies are in memory.
        waiting = {pool.submit(_write, es, body) for body in itertools.islice(bodies, 2 * _WRITERS)}
        while waiting:
            done, waiting = concurrent.futures.wait(waiting, return_when="FIRST_COMPLETED")
            for each in done:
                each.result()
            waiting |= {pool.submit(_write, es, body) for body in itertools.islice(bodies, len(done))}
    took_s = time.monotonic() - started_s
    _log(f"{articles:,} articles in {indices} indices, {articles / took_s:,.0f} per second")
    es.indices.refresh(index=_ALIAS)
    merging = es.options(request_timeout=3_600)
    merging.indices.forcemerge(index=_ALIAS, max_num_segments=max(1, 30 // indices))
    es.indices.refresh(index=_ALIAS)
    size = es.indices.stats(index=_ALIAS, metric="store")["_all"]["primaries"]["store"]["size_in_bytes"]
    _log(f"{size / 1e9:,.1f} GB on disk")


def _write(es: Elasticsearch, body: list[str]) -> None:
    # A patient client waits while the server refuses requests because its memory is full.
    answer = patient(es).bulk(operations=body, filter_path="errors")
    if answer["errors"]:
        raise RuntimeError("articles were refused")


def _bodies(names: list[str], count: int) -> Iterator[list[str]]:
    """Yield the lines of bulk requests, oldest articles first; each index has consecutive articles."""
    chance = random.Random(1)
    words = [f"w{number}" for number in range(_WORDS)]
    # The roots of the latest articles; each new root replaces the oldest.
    roots: list[str] = []
    step_s = len(names) * _SECONDS_PER_DAY / count if len(names) > 1 else 30 * _SECONDS_PER_DAY / count
    start_ms = int(dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp() * 1000)
    body: list[str] = []
    for number in range(count):
        is_new = not roots or chance.random() < _NEW
        root = f"{chance.getrandbits(128):032x}" if is_new else chance.choice(roots)
        if len(roots) < _LATEST:
            roots.append(root)
        else:
            roots[number % _LATEST] = root
        at_ms = start_ms + int(number * step_s * 1000)
        title = " ".join(chance.choices(words, k=6))
        dedup = (
            f'{{"root":"{root}","fingerprint":"{root}","profile":"verified-5","seq":{number + 1},'
            f'"seen":{at_ms},"published":{at_ms},"length":900,"partition":{partition_of(root)}}}'
        )
        index = names[number * len(names) // count]
        body += (
            f'{{"create":{{"_index":"{index}","_id":"{number}"}}}}',
            f'{{"published_at":{at_ms},"source":"Medium {chance.randrange(_SOURCES)}","title":"{title}",'
            f'"text":"{title}","url":"https://medium.example/{number}","dedup":{dedup}}}',
        )
        if len(body) >= 2 * _AT_ONCE:
            yield body
            body = []
    if body:
        yield body


def _measure(es: Elasticsearch, *, articles: int) -> None:
    reader, chance = Reader(es), random.Random(2)

    def words() -> dict[str, Any]:
        some = " ".join(f"w{chance.randrange(_WORDS)}" for _ in range(2))
        return {"match": {"title": {"query": some, "operator": "or"}}}

    def plain() -> None:
        es.search(index=_ALIAS, size=20, sort=[{"dedup.published": "desc"}], track_total_hits=True)

    def similar() -> None:
        reader.similar(_ALIAS, str(chance.randrange(articles)), size=20)

    cases: dict[str, Callable[[], Any]] = {
        "plain search, newest, counted": plain,
        "newest": lambda: reader.list(_ALIAS),
        "oldest": lambda: reader.list(_ALIAS, sort="oldest"),
        "two words, newest": lambda: reader.list(_ALIAS, query=words()),
        "two words, by relevance": lambda: reader.list(_ALIAS, query=words(), sort="relevance"),
        "by count, descending": lambda: reader.list(_ALIAS, sort="similar-desc"),
        "by count, ascending": lambda: reader.list(_ALIAS, sort="similar-asc"),
        "two words, by count": lambda: reader.list(_ALIAS, query=words(), sort="similar-desc"),
        "similar articles of one article": similar,
    }
    for name, call in cases.items():
        first_s, *later_s = [_timed(call) for _ in range(_ROUNDS)]
        _log(f"{name}: first {first_s * 1e3:,.0f} ms, then {statistics.median(later_s) * 1e3:,.1f} ms")
    for sort in ("similar-desc", "similar-asc", "newest"):
        page = reader.list(_ALIAS, sort=sort)
        about = "exact" if page.total_rows_exact else "estimated"
        order = "exact" if page.order_exact else "approximate"
        _log(f"{sort}: {page.total_articles:,} articles, {page.total_rows:,} rows ({about}), order {order}")
    refreshed_s = []
    last = max(es.indices.get(index=_ALIAS))
    for number in range(5):
        root = f"{chance.getrandbits(128):032x}"
        document = {"published_at": 1_800_000_000_000 + number, "title": "x", "dedup": {"root": root}}
        es.index(index=last, document=document)
        refreshed_s.append(_timed(lambda: es.indices.refresh(index=last)))
    _log(f"a refresh after one article: {statistics.median(refreshed_s) * 1e3:,.0f} ms")
    for sort in ("similar-desc", "similar-asc"):
        rows = reader.list(_ALIAS, sort=sort).rows
        _log(f"{sort}: first row {rows[0].similar:,} similar articles, last row {rows[-1].similar:,}")


def _timed(call: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    call()
    return time.perf_counter() - started_s


def _log(what: str) -> None:
    sys.stdout.write(f"{dt.datetime.now():%H:%M:%S} {what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
