"""The command `esdedup plan`, as a user runs it."""

import json
from pathlib import Path

import pytest

from esdedup.plan.costs import shipped
from tests.acceptance.conftest import Run


def test_a_plan_separates_calculated_from_measured_figures(run: Run) -> None:
    result = run("plan", "--articles-a-day", "1e7", "--retention-days", "30")
    assert result.code == 0
    calculated, measured = result.out.split("from unit costs measured on")
    assert "calculated" in calculated
    assert "nodes after the first retention period" in calculated
    assert "forests, each with an owner" in calculated
    assert shipped().measured.machine in measured.replace("\n", " ")


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
        (("--retention-days", "-5"), "retention_days is -5.0; it must be greater than 0"),
        (("--reprints", "30"), "reprints is 30.0; it must be from 0 to 1"),
        (("--costs", "none.json"), "cannot read the unit costs in none.json"),
        (("--costs", "broken.json"), "broken.json has no unit costs"),
        (("--owner-memory-gb", "0.01"), "allow the owner more"),
        (("--profile", "no such"), "no profile 'no such'"),
        (("--articles-a-day", "1e300"), "this workload is too large"),
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
