"""A short form of the soak: feeders of three kinds while a sidecar is killed."""

import dataclasses
from pathlib import Path

from tests.soak.outcome import Indices
from tests.soak.run import Plan, run
from tests.soak.stage import Stage
from tests.support.names import Names


def test_nothing_is_lost_doubled_or_different(
    elasticsearch_url: str, index_name: Names, tmp_path: Path
) -> None:
    plan = Plan(
        articles=400,
        seconds=4.0,
        feeders=("curl", "enrich", "dedup"),
        events=((0.3, Stage.kill_owner),),
        lease_ttl_s=2.0,
        indices=Indices(**{each.name: index_name(each.name) for each in dataclasses.fields(Indices)}),
    )
    outcome = run(plan, tmp_path, elasticsearch_url)
    assert outcome.faults == []
    assert outcome.figures["articles indexed"] == outcome.figures["articles replayed"] == 400
