"""Adopts daily indices while articles are fed and the command is killed: `python -m benchmarks.adoption`.

Run this once for each release, not with the other benchmarks: a million articles take a quarter of an hour.
The benchmark prints measurements and compares the articles with a replay, as the sidecars' soak test does.
"""

import argparse
import datetime as dt
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from elasticsearch import Elasticsearch, helpers

from benchmarks.server import client, url_of
from esdedup import Reader
from tests.soak.feeders import articles
from tests.soak.outcome import Articles, Indices, outcome_of
from tests.support.sidecar_process import SidecarProcess, running

_DAYS = 30
_ALIAS, _LIVE, _PLAIN = "adoption", "adoption-live", "adoption-plain"
_FOREST = "adoption-forest"
_LIVE_AT_ONCE, _LIVE_EVERY_S = 50, 1.0
_AT_ONCE = 500
_SEED, _LIVE_SEED = 1, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=3)
    options = parser.parse_args()
    with client(lifetime_s=4 * 3600, heap="4g") as es:
        given = dict(archive(options.articles))
        _load(es, given)
        plain = _plain_per_s(es, given, min(len(given), 100_000))
        log(f"plain reading and updating: {plain:,.0f} articles per second")
        with running(url_of(es), "--memory-bytes", "6GiB", forest=_FOREST) as sidecar:
            # The index of the live articles has the `dedup` fields before the adoption starts.
            esdedup_command("setup", _LIVE, es=es)
            es.indices.put_alias(index=_LIVE, name=_ALIAS)
            feeding = Feeding(sidecar, index=_LIVE)
            feeding.start()
            took_s = _adopt(es, sidecar, kills=options.kills, total=len(given))
            feeding.stop()
        log(f"adopted in {took_s:,.0f} s, {len(given) / took_s:,.0f} per second")
        log(f"{len(feeding.fed):,} articles were fed during the adoption")
        page = Reader(es).list(_ALIAS, sort="similar-desc")
        log(f"the list: {page.total_articles:,} articles, {page.not_enriched} without a root")
        outcome = outcome_of(es, given | feeding.fed, Indices(articles=_ALIAS, forest=_FOREST), report=log)
    for what, count in outcome.figures.items():
        log(f"{count:>10,}  {what}")
    for fault in outcome.faults:
        log(f"FAULT: {fault}")
    sys.exit(1 if outcome.faults else 0)


def archive(count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield articles by id, each with a time, in the order of their times."""
    started = dt.datetime.now(dt.UTC) - dt.timedelta(days=_DAYS)
    for number, article in enumerate(articles(count, seed=_SEED)):
        at = started + dt.timedelta(days=_DAYS) * number / count
        yield article["_id"], article | {"published_at": at.isoformat(timespec="milliseconds")}


def _load(es: Elasticsearch, given: Articles) -> None:
    """Index the articles without esdedup."""
    days = sorted({_index(each) for each in given.values()})
    for day in days:
        es.indices.create(index=day, aliases={_ALIAS: {}})
    bulk(es, ({"_index": _index(each), **each} for each in given.values()))
    log(f"{len(given):,} articles in {len(days)} indices")


def _index(article: dict[str, Any]) -> str:
    return f"{_ALIAS}-{article['published_at'][:10]}"


def _plain_per_s(es: Elasticsearch, given: Articles, count: int) -> float:
    """Return how many articles per second can be read in order and given an object as large as `dedup`."""
    chance = random.Random(_SEED)
    taken = list(given.values())[:count]
    bulk(es, ({"_index": _PLAIN, **each} for each in taken))
    mapping = {"properties": {"object": {"enabled": False}}}
    es.indices.put_mapping(index=_PLAIN, body=mapping)
    started_s = time.monotonic()
    hits = helpers.scan(
        es, index=_PLAIN, size=_AT_ONCE, query={"sort": [{"published_at": "asc"}]}, preserve_order=True
    )
    bulk(
        es,
        (
            {
                "_op_type": "update",
                "_index": _PLAIN,
                "_id": hit["_id"],
                "doc": {"object": {"value": chance.randbytes(450).hex()}},
            }
            for hit in hits
        ),
    )
    took_s = time.monotonic() - started_s
    es.indices.delete(index=_PLAIN)
    return count / took_s


def bulk(es: Elasticsearch, actions: Iterator[dict[str, Any]]) -> None:
    for _ in helpers.streaming_bulk(es, actions, chunk_size=_AT_ONCE, refresh=False):
        pass
    es.indices.refresh(index=f"{_ALIAS}*")


def _adopt(es: Elasticsearch, sidecar: SidecarProcess, *, kills: int, total: int) -> float:
    command = ("adopt", _ALIAS, "--forest", _FOREST, "--sidecar", sidecar.url)
    return killed_s(*command, es=es, kills=kills, total=total, done=lambda: _adopted(es))


def killed_s(*command: str, es: Elasticsearch, kills: int, total: int, done: Callable[[], int]) -> float:
    """Kill a command `kills` times, evenly over its work, then let it finish; return the total duration."""
    started_s = time.monotonic()
    for number in range(1, kills + 1):
        process = subprocess.Popen(command_of(*command, es=es), stderr=subprocess.DEVNULL)
        while process.poll() is None and done() < total * number / (kills + 1):
            time.sleep(1.0)
        process.kill()
        process.wait()
        log(f"killed at {done():,} after {time.monotonic() - started_s:,.0f} s")
    esdedup_command(*command, es=es)
    return time.monotonic() - started_s


def _adopted(es: Elasticsearch) -> int:
    found = es.options(ignore_status=404).count(
        index=f"{_ALIAS},-{_LIVE}", query={"exists": {"field": "dedup.root"}}
    )
    return int(found.get("count", 0))


def esdedup_command(*arguments: str, es: Elasticsearch) -> None:
    subprocess.run(command_of(*arguments, es=es), check=True)


def command_of(*arguments: str, es: Elasticsearch) -> list[str]:
    return [sys.executable, "-m", "esdedup", *arguments, "--url", url_of(es)]


class Feeding(threading.Thread):
    """Feeds articles through the sidecar until `stop` is called, and records the accepted articles."""

    def __init__(self, sidecar: SidecarProcess, *, index: str) -> None:
        super().__init__()
        self.fed: Articles = {}
        self._sidecar = sidecar
        self._index = index
        self._stopped = threading.Event()

    def run(self) -> None:
        with Elasticsearch(self._sidecar.url, request_timeout=60) as es:
            stream = articles(10_000_000, seed=_LIVE_SEED)
            while not self._stopped.wait(_LIVE_EVERY_S):
                now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
                batch = [
                    {**next(stream), "published_at": now, "_index": self._index} for _ in range(_LIVE_AT_ONCE)
                ]
                for each in batch:
                    each["_id"] = f"live-{each['_id']}"
                helpers.bulk(es, batch)
                for each in batch:
                    del each["_index"]
                    self.fed[each["_id"]] = each

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def log(what: str) -> None:
    sys.stdout.write(f"{dt.datetime.now():%H:%M:%S} {what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
