"""Measures expiry and ownership changes in a large forest: `python -m benchmarks.large_forest`.

Run this once for each release. The benchmark `takeover` measures a forest of a million nodes.
"""

import argparse
import datetime as dt
import signal
import sys
import time

from benchmarks import server
from benchmarks.ingest import FOREST
from benchmarks.start import OPTIONS, fill, handed_over_s, opened_s
from esdedup import Maintenance
from tests.support.sidecar_process import running

# Nodes arrive evenly over ten days, so an eleventh of them expires.
_RETENTION = dt.timedelta(days=10) * 10 / 11


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=11_000_000)
    count: int = parser.parse_args().nodes
    with server.client(lifetime_s=6 * 3_600, heap="3g") as es:
        started_s = time.monotonic()
        fill(es, count, retention=_RETENTION)
        _log(f"{count:,} nodes, {count / (time.monotonic() - started_s):,.0f} arrivals per second")
        maintenance = Maintenance(es, forest=FOREST)
        _log(f"{maintenance.stats().size_bytes / 1e9:,.2f} GB on disk")
        started_s = time.monotonic()
        expired = maintenance.expire()
        took_s = time.monotonic() - started_s
        _log(f"expired in {took_s:,.1f} s: {expired}")
        left = maintenance.stats()
        _log(f"{left.nodes:,} nodes, {left.size_bytes / 1e9:,.2f} GB on disk")
        url = server.url_of(es)
        started_s = time.monotonic()
        with running(url, *OPTIONS, forest=FOREST):
            _log(f"a new process owns the forest after {time.monotonic() - started_s:,.1f} s")
        held_s, loaded_s = opened_s(es, left.nodes)
        _log(f"{held_s:,.1f} s without process start-up; all nodes in memory after {loaded_s:,.1f} s")
        for how in (signal.SIGTERM, signal.SIGKILL):
            taken_s = handed_over_s(url, OPTIONS, how)
            _log(f"a standby owns the forest {taken_s:,.1f} s after its owner got {how.name}")


def _log(what: str) -> None:
    sys.stdout.write(f"{dt.datetime.now():%H:%M:%S} {what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
