"""Measures how much larger a forest's index is than its nodes: `python -m benchmarks.churn`.

Nodes arrive for ten days; a node is live for three days. After each half day, expired nodes are deleted and
the index is measured; at the end, the index is also measured after merges. Run this once for each release.
"""

import argparse
import datetime as dt
import sys
import time

import numpy as np
from elasticsearch import Elasticsearch

from benchmarks import server
from benchmarks.ingest import FOREST
from benchmarks.signatures import Held
from esdedup import Maintenance
from esdedup.elastic.forest.store import ElasticStore
from esdedup.fingerprint.profile import VERIFIED
from esdedup.forest import Aging

_RETENTION = dt.timedelta(days=3)
_HALF_DAYS = 20
# Longer than the 30 seconds after which Elasticsearch checks whether a replica still needs the source of new
# documents.
_KEPT_S = 35.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--pause-s", type=float, default=35.0, help="pause after each half day")
    parser.add_argument("--deletes-pct", type=int, help="maximum share of deleted documents, in percent")
    options = parser.parse_args()
    count: int = options.nodes
    with server.client(lifetime_s=3_600, heap="2g") as es:
        # The nodes of all ten days.
        held = Held.random(VERIFIED, count, np.random.default_rng(6))
        aging = Aging.of(retention=_RETENTION)
        for half in range(_HALF_DAYS):
            first, end = (count * each // _HALF_DAYS for each in (half, half + 1))
            with ElasticStore(es, forest=FOREST, profile=VERIFIED, aging=aging, memory_bytes=2**33) as store:
                held.fill(store, first, end)
            if options.deletes_pct is not None:
                allowed = {"index.merge.policy.deletes_pct_allowed": options.deletes_pct}
                es.indices.put_settings(index=FOREST, settings=allowed)
            time.sleep(options.pause_s)
            Maintenance(es, forest=FOREST).expire()
            _log(es, f"after {(half + 1) / 2:g} days")
        time.sleep(_KEPT_S)
        es.options(request_timeout=600).indices.forcemerge(index=FOREST, only_expunge_deletes=True)
        _log(es, "without deleted documents")
        es.options(request_timeout=600).indices.forcemerge(index=FOREST, max_num_segments=1)
        _log(es, "in one segment")


def _log(es: Elasticsearch, what: str) -> None:
    es.indices.flush(index=FOREST)
    es.indices.refresh(index=FOREST)
    stats = es.indices.stats(index=FOREST, metric=["docs", "store", "segments"])["_all"]["primaries"]
    docs, deleted = stats["docs"]["count"], stats["docs"]["deleted"]
    size = stats["store"]["size_in_bytes"]
    sys.stdout.write(
        f"{what}: {size / 1e6:,.0f} MB, {docs:,} documents and {deleted:,} deleted ones, "
        f"{size / (docs + deleted):,.0f} bytes each, {stats['segments']['count']} segments\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
