"""Unit costs of all profiles, which the package ships for `esdedup plan`."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch

from benchmarks import server
from benchmarks.measure import Sizes, measure_memory
from benchmarks.measure_server import measure_server
from benchmarks.results import ROOT, Cells, Result
from benchmarks.run import Run
from esdedup.elastic.client import connect
from esdedup.fingerprint.bands import NODES
from esdedup.fingerprint.profile import PROFILES, Profile
from esdedup.plan.costs import SHIPPED, CostsFile, LearnedCosts, Measured, UnitCosts, costs_key, shipped

PATH = ROOT / "esdedup/plan" / SHIPPED
MEASURE = ("unit-costs", "boilerplate")
"""The benchmarks that measure them."""

_TABLE = "unit-costs"
_MEGABYTE = 1e6
# More would not be true of another run.
_DIGITS = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cost:
    """One cost, by its path in `UnitCosts`."""

    table: str
    profile: str
    cost: str
    value: float

    def cells(self) -> dict[str, str]:
        return {"profile": self.profile, "cost": self.cost, "value": f"{self.value:.{_DIGITS}g}"}


def unit_costs(run: Run) -> Sequence[Cost]:
    """Measure each profile."""
    sizes = _scaled(Sizes(), run)
    found = []
    with server.client(run, lifetime_s=7_200) as client:
        connecting = functools.partial(connect, server.url_of(client))
        for profile in PROFILES.values():
            costs = measure(profile, connecting, sizes)
            found += [
                Cost(table=_TABLE, profile=profile.name, cost=cost, value=value)
                for cost, value in _flat(costs.model_dump(exclude={"profile", "layout"}))
            ]
    return found


def measure(profile: Profile, connecting: Callable[[], Elasticsearch], sizes: Sizes) -> UnitCosts:
    """Measure the costs of a profile in a minute or two, in indices of its own, which are deleted."""
    in_memory = measure_memory(profile, sizes)
    stored = measure_server(profile, in_memory["deciding"], connecting, sizes)
    return UnitCosts(profile=costs_key(profile), layout=NODES.name, **in_memory, server=stored)


def write(results: Mapping[str, Result], path: Path) -> None:
    """Write a file of costs: those that it has, or else the package, but for what was measured."""
    found = CostsFile.read(path.read_text(encoding="utf-8"), name=str(path)) if path.exists() else shipped()
    if _TABLE in results:
        costs = tuple(_costs(results[_TABLE].tables[_TABLE]))
        found = found.model_copy(update={"measured": _measured(results[_TABLE]), "costs": costs})
    if "boilerplate" in results:
        rows = results["boilerplate"].tables["boilerplate"]
        learned = LearnedCosts(
            measured=_measured(results["boilerplate"]),
            memory_bytes=_megabytes(rows, "the tables"),
            disk_bytes=_megabytes(rows, "on disk"),
        )
        found = found.model_copy(update={"learned": learned})
    path.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")


def _costs(rows: Sequence[Cells]) -> Iterator[UnitCosts]:
    by_profile: dict[str, dict[str, Any]] = {}
    for row in rows:
        *parents, last = row["cost"].split(".")
        costs = by_profile.setdefault(row["profile"], {})
        for parent in parents:
            costs = costs.setdefault(parent, {})
        costs[last] = float(row["value"])
    for profile, costs in by_profile.items():
        yield UnitCosts.model_validate({"profile": profile, "layout": NODES.name, **costs})


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
