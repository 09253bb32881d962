"""The command `esdedup plan`, as a user runs it."""

import json
from pathlib import Path

import pytest

from esdedup.plan.costs import shipped
from tests.acceptance.conftest import Run


def test_a_plan_separates_calculated_from_measured_figures(run: Run) -> None:
    result = run("plan", "--articles-a-day", "1e7", "--retention-days", "30")
    assert result.code == 0
    calculated, measured = result.out.split("≈ extrapolated")
    answer = " ".join(calculated.split())
    assert "One forest of 274 million nodes, searched for in" in answer
    assert "with a retention of 17.3 days, 64 GB are enough" in answer
    assert "data nodes" in calculated
    assert "articles it can process" in calculated
    assert shipped().measured.machine in measured.replace("\n", " ")


def test_json_has_exact_figures_and_says_which_are_extrapolated(run: Run) -> None:
    result = run("plan", "--articles-a-day", "1e8", "--owner-memory-gb", "512", "--json")
    found = json.loads(result.out)
    assert found["lookup"] == "search"
    assert found["answer"][0].startswith("One forest of 2.74 billion nodes")
    assert found["calculated"]["nodes"] == 2_737_583_334
    assert "owner_articles_a_second" in found["extrapolated"]
    assert "nodes" not in found["extrapolated"]


def test_unit_costs_are_read_from_a_file(run: Run, tmp_path: Path) -> None:
    costs = shipped().model_dump()
    for each in costs["costs"]:
        each["server"]["node_bytes"] *= 2
    (tmp_path / "costs.json").write_text(json.dumps(costs))
    disk = []
    for given in ((), ("--costs", "costs.json")):
        result = run("plan", "--keep-boilerplate", "--reprints", "0", "--json", *given)
        assert result.code == 0
        disk.append(json.loads(result.out)["calculated"]["forest_gb"])
    assert disk[1] == pytest.approx(2 * disk[0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--articles-a-day", "-5"), "Invalid value for '--articles-a-day'"),
        (("--articles-a-day", "nan"), "Invalid value for '--articles-a-day'"),
        (("--retention-days", "-5"), "Invalid value for '--retention-days'"),
        (("--reprints", "30"), "Invalid value for '--reprints'"),
        (("--costs", "none.json"), "cannot read none.json"),
        (("--costs", "broken.json"), "broken.json has no unit costs"),
        (("--owner-memory-gb", "0.01"), "without any node; allow it more memory"),
        (("--profile", "no such"), "no profile 'no such'"),
        (("--articles-a-day", "1e300"), "Invalid value for '--articles-a-day'"),
        (("--articles-a-day", "1e12"), "this workload is too large"),
    ],
)
def test_bad_input_is_refused_without_a_traceback(
    run: Run, tmp_path: Path, given: tuple[str, ...], message: str
) -> None:
    (tmp_path / "broken.json").write_text('{"format": 1}')
    result = run("plan", *given)
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err
