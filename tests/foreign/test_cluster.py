"""Articles are fed through two sidecars and read, while nodes of a cluster are killed and restarted."""

from pathlib import Path

from tests.soak.run import Plan, run
from tests.soak.stage import Server, Stage, free_port


def test_killed_nodes_neither_lose_articles_nor_hide_them(data_directory: Path, tmp_path: Path) -> None:
    """A small version of `make soak-cluster`."""
    server = Server(data_directory, free_port(), node_count=3, heap="256m")
    plan = Plan(
        articles=1_500,
        seconds=30.0,
        feeders=("python", "enrich", "dedup"),
        events=((0.1, Stage.kill_primary), (0.5, Stage.kill_master)),
        lease_ttl_s=5.0,
        shards=3,
        away_s=3.0,
        settled=200,
    )
    with server.running():
        outcome = run(plan, tmp_path, server.url, server=server)
    assert outcome.faults == []
    assert outcome.figures["articles indexed"] == plan.articles
    assert outcome.figures["reads"] > plan.seconds
