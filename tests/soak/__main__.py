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


# Each node is killed at least once, since the killed node loses its role to another one.
_EVENTS_OF_CLUSTER = (
    (0.05, Stage.kill_master),
    (0.20, Stage.kill_primary),
    (0.35, Stage.kill_master),
    (0.50, Stage.kill_owner),
    (0.55, Stage.kill_primary),
    (0.70, Stage.kill_master),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=int, default=200_000)
    parser.add_argument("--minutes", type=float, default=10.0, help="time in which the articles are sent")
    parser.add_argument("--seed", type=int, default=1, help="seed of the articles")
    parser.add_argument(
        "--nodes", type=int, default=1, help="nodes of Elasticsearch; with 3, each may be killed"
    )
    parser.add_argument("--forest-shards", type=int, default=1, help="shards of the forest, if --nodes is 3")
    options = parser.parse_args()
    of_cluster = options.nodes > 1
    with tempfile.TemporaryDirectory(prefix="esdedup-soak-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        heap = "1g" if of_cluster else "512m"
        server = Server(folder / "node", free_port(), node_count=options.nodes, heap=heap)
        with server.running():
            plan = Plan(
                articles=options.articles,
                seconds=60 * options.minutes,
                # Two feeders of each kind in _FEEDERS, but only one `dedup` feeder.
                feeders=[*_FEEDERS, *_FEEDERS[:-1], *(() if of_cluster else _OTHERS)],
                events=_EVENTS_OF_CLUSTER if of_cluster else _EVENTS,
                lease_ttl_s=5.0,
                seed=options.seed,
                shards=3 if of_cluster else None,
                settled=1_000 if of_cluster else 0,
                options=("--forest-shards", str(options.forest_shards)),
            )
            outcome = run(plan, folder, server.url, server=server)
    for what, count in outcome.figures.items():
        sys.stdout.write(f"{count:>10,}  {what}\n")
    for fault in outcome.faults:
        sys.stdout.write(f"FAULT: {fault}\n")
    sys.stdout.write(f"soak of the sidecars: {'FAILED' if outcome.faults else 'passed'}\n")
    sys.exit(1 if outcome.faults else 0)


if __name__ == "__main__":
    main()
