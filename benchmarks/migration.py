"""Migrates daily indices from `classic` to the default profile: `python -m benchmarks.migration`.

Articles are fed and read during the migration, which is killed several times. Run this once for each release,
not with the other benchmarks. The benchmark prints its measurements and the roots that readers saw, and
compares the articles with a replay.
"""

import argparse
import subprocess
import sys
import threading
import time
from collections import Counter

from elasticsearch import Elasticsearch

from benchmarks.adoption import Feeding, archive, bulk, command_of, killed_s, log
from benchmarks.server import client, url_of
from esdedup import CLASSIC, Dedup, EsdedupError, Fields, Reader
from tests.soak.outcome import Articles, Indices, outcome_of
from tests.support.sidecar_process import running

_ALIAS, _LIVE = "migration", "migration-live"
_OLD_FOREST, _FOREST = "migration-old", "migration-forest"
_MIGRATE = ("migrate", _ALIAS, "--forest", _OLD_FOREST, "--to", _FOREST)
_DEDUP = "dedup_2"
_HELD_S = 11.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=3)
    options = parser.parse_args()
    with client(lifetime_s=4 * 3600, heap="4g") as es:
        given = dict(archive(options.articles))
        _feed(es, given)
        readers = [_Reading(es, is_new=is_new) for is_new in (True, False)]
        with running(url_of(es), "--profile", "classic", forest=_OLD_FOREST) as sidecar:
            feeding = Feeding(sidecar, index=_LIVE)
            for each in (feeding, *readers):
                each.start()
            filled = {"kills": options.kills, "total": len(given), "done": lambda: _filled(es)}
            took_s = killed_s(*_MIGRATE, "--wait", "60", es=es, **filled)
            log(f"filled in {took_s:,.0f} s, {len(given) / took_s:,.0f} per second")
            swap = subprocess.Popen(command_of(*_MIGRATE, "--swap", "--wait", "60", es=es))
            time.sleep(5.0)
            feeding.stop()
            stopped_s = time.monotonic()
        code = swap.wait()
        pause_s = time.monotonic() - stopped_s
        log(f"swapped {pause_s:,.1f} s after the feeder was stopped, exit code {code}")
        time.sleep(_HELD_S)
        for reader in readers:
            reader.stop()
            seen = ", ".join(f"{count:,} {what}" for what, count in reader.seen.most_common())
            log(f"pages seen by {'a new reader each time' if reader.is_new else 'one reader'}: {seen}")
        log(f"{len(feeding.fed):,} articles were fed during the migration")
        own = Fields(dedup=_DEDUP)
        page = Reader(es).list(_ALIAS, sort="similar-desc")
        log(f"the list: {page.total_articles:,} articles, {page.not_enriched} without a root")
        wrong = page != Reader(es, fields=own).list(_ALIAS, sort="similar-desc")
        outcome = outcome_of(
            es,
            given | feeding.fed,
            Indices(articles=_ALIAS, forest=_FOREST),
            report=log,
            name=_DEDUP,
        )
    for what, count in outcome.figures.items():
        log(f"{count:>10,}  {what}")
    for fault in outcome.faults:
        log(f"FAULT: {fault}")
    is_mixed = any(reader.seen.keys() - {"old", "new"} for reader in readers)
    sys.exit(1 if outcome.faults or wrong or is_mixed or code else 0)


def _feed(es: Elasticsearch, given: Articles) -> None:
    """Feed daily indices through the old forest, with roots in the usual object."""
    with Dedup(es, forest=_OLD_FOREST, profile=CLASSIC) as dedup:
        days = sorted({_index(each["published_at"]) for each in given.values()})
        for day in [*days, _LIVE]:
            dedup.setup(day, forest=_OLD_FOREST)
            es.indices.put_alias(index=day, name=_ALIAS)
        actions = ({"_index": _index(each["published_at"]), **each} for each in given.values())
        bulk(es, dedup.enrich(actions, backfill=True))
    log(f"{len(given):,} articles in {len(days)} indices, fed with the profile classic")


def _index(published_at: str) -> str:
    return f"{_ALIAS}-{published_at[:10]}"


def _filled(es: Elasticsearch) -> int:
    return int(es.count(index=_ALIAS, query={"exists": {"field": f"{_DEDUP}.root"}})["count"])


class _Reading(threading.Thread):
    """Reads the first page of the list repeatedly. A page must have only old or only new roots."""

    def __init__(self, es: Elasticsearch, *, is_new: bool) -> None:
        super().__init__()
        self.is_new = is_new
        self.seen: Counter[str] = Counter()
        self._es = es
        self._stopped = threading.Event()

    def run(self) -> None:
        reader = Reader(self._es)
        while not self._stopped.wait(0.05):
            try:
                page = (Reader(self._es) if self.is_new else reader).list(_ALIAS, sort="newest", size=20)
            except EsdedupError as error:
                self.seen[f"refused ({error})"] += 1
                continue
            ids = [row.id for row in page.rows]
            roots = [row.root for row in page.rows]
            self.seen[_which(self._es, ids, roots) if not page.not_enriched else "without roots"] += 1

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def _which(es: Elasticsearch, ids: list[str], roots: list[str | None]) -> str:
    """Return which dedup object of the articles, old or new, has all of the roots, or "neither"."""
    found = es.search(index=_ALIAS, query={"ids": {"values": ids}}, size=len(ids), source=["*.root"])
    by_id = {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}
    for which, name in (("old", "dedup"), ("new", _DEDUP)):
        if all(
            by_id.get(each, {}).get(name, {}).get("root") == root
            for each, root in zip(ids, roots, strict=True)
        ):
            return which
    return "neither"


if __name__ == "__main__":
    main()
