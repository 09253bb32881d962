"""Unit costs of all profiles, which the package ships for `esdedup plan`."""

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks import server
from benchmarks.results import ROOT, Cells, Result
from benchmarks.run import Run
from esdedup.elastic.client import connect
from esdedup.fingerprint.bands import NODES
from esdedup.fingerprint.profile import PROFILES
from esdedup.plan.costs import CostsFile, LearnedCosts, Measured, UnitCosts
from esdedup.plan.measure import Sizes, measure
from esdedup.plan.measure_server import measure_server
from esdedup.plan.shipped import NAME

PATH = ROOT / "esdedup/plan" / NAME
_TABLE = "unit-costs"
_MEGABYTE = 1e6
# More would not be true of another run.
_DIGITS = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cost:
    """One cost, by its path in `UnitCosts`."""

    table: str
    profile: str
    layout: str
    cost: str
    value: float

    def cells(self) -> dict[str, str]:
        value = f"{self.value:.{_DIGITS}g}"
        return {"profile": self.profile, "layout": self.layout, "cost": self.cost, "value": value}


def unit_costs(run: Run) -> Sequence[Cost]:
    """Measure each profile."""
    sizes = _scaled(Sizes(), run)
    found = []
    with server.client(run, lifetime_s=7_200) as client:
        connecting = functools.partial(connect, server.url_of(client))
        for profile in PROFILES.values():
            costs = measure(profile, sizes=sizes)
            stored = measure_server(profile, costs.deciding, connecting, sizes=sizes)
            costs = costs.model_copy(update={"server": stored})
            found += [
                Cost(table=_TABLE, profile=profile.name, layout=costs.layout, cost=cost, value=value)
                for cost, value in _flat(costs.model_dump(exclude={"profile", "layout"}))
            ]
    return found


def shipped_file(kept: Mapping[str, Result]) -> str | None:
    """Return the file of the package as the results have it; None if they do not have the costs."""
    if _TABLE not in kept or "boilerplate" not in kept:
        return None
    nested: dict[str, dict[str, Any]] = {}
    for row in kept[_TABLE].tables[_TABLE]:
        if row["layout"] != NODES.name:
            continue
        *parents, last = row["cost"].split(".")
        costs = nested.setdefault(row["profile"], {})
        for parent in parents:
            costs = costs.setdefault(parent, {})
        costs[last] = float(row["value"])
    learned, boilerplate = kept["boilerplate"], kept["boilerplate"].tables["boilerplate"]
    found = CostsFile(
        measured=_measured(kept[_TABLE]),
        costs=tuple(
            UnitCosts.model_validate({"profile": profile, "layout": NODES.name, **costs})
            for profile, costs in nested.items()
        ),
        learned=LearnedCosts(
            measured=_measured(learned),
            memory_bytes=_megabytes(boilerplate, "the tables"),
            disk_bytes=_megabytes(boilerplate, "on disk"),
        ),
    )
    return json.dumps(found.model_dump(), indent=1, ensure_ascii=False) + "\n"


def _flat(costs: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, float]]:
    for name, value in costs.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _measured(result: Result) -> Measured:
    names = ("Python", "numpy", "Elasticsearch")
    versions = {name: result.measured.versions[name] for name in names if name in result.measured.versions}
    return Measured(on=result.measured.on, machine=result.measured.machine, versions=versions)


def _megabytes(rows: Sequence[Cells], what: str) -> float:
    (cell,) = [row["ours"] for row in rows if row["case"].endswith(f", {what}") and row["unit"] == "MB"]
    return float(cell.replace(",", "")) * _MEGABYTE


def _scaled(sizes: Sizes, run: Run) -> Sizes:
    counts = {
        name: run.size(value) for name, value in dataclasses.asdict(sizes).items() if isinstance(value, int)
    }
    return dataclasses.replace(
        sizes,
        nodes=[run.size(each) for each in sizes.nodes],
        opened_nodes=(run.size(sizes.opened_nodes[0]), run.size(sizes.opened_nodes[1])),
        **counts,
    )
