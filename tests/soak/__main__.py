"""Soak test of two sidecars with many feeders: `python -m tests.soak`, or `make soak-sidecars`.

Exits with status 1 if an article was lost, duplicated or changed, if the memory of a sidecar grew, or if a
sidecar sent a response that is not documented.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.soak.run import Plan, run
from tests.soak.stage import Server, Stage, free_port

_FEEDERS = ("python", "enrich", "dedup")
# A "huge" feeder sends thousands of articles per request, a "small" feeder one article per request.
_OTHERS = ("huge", "small", "small", "small")
_EVENTS = (
    (0.10, Stage.kill_owner),
    (0.20, Stage.pause_standby),
    (0.28, Stage.restart_elasticsearch),
    (0.50, Stage.pause_owner),
    (0.60, Stage.kill_owner),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=int, default=200_000)
    parser.add_argument("--minutes", type=float, default=10.0, help="time in which the articles are sent")
    parser.add_argument("--seed", type=int, default=1, help="seed of the articles")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="esdedup-soak-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        server = Server(folder / "node", free_port())
        server.start()
        try:
            plan = Plan(
                articles=options.articles,
                seconds=60 * options.minutes,
                # Two feeders of each kind in _FEEDERS, but only one `dedup` feeder.
                feeders=[*_FEEDERS, *_FEEDERS[:-1], *_OTHERS],
                events=_EVENTS,
                lease_ttl_s=5.0,
                seed=options.seed,
            )
            outcome = run(plan, folder, server.url, server=server)
        finally:
            server.stop()
    for what, count in outcome.figures.items():
        sys.stdout.write(f"{count:>10,}  {what}\n")
    for fault in outcome.faults:
        sys.stdout.write(f"FAULT: {fault}\n")
    sys.stdout.write(f"soak of the sidecars: {'FAILED' if outcome.faults else 'passed'}\n")
    sys.exit(1 if outcome.faults else 0)


if __name__ == "__main__":
    main()
