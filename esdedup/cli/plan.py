"""`esdedup plan`: calculates the forest, the cluster and the owner that a stream of articles needs."""

from pathlib import Path
from typing import Any

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.ingest.word_files import text_of_file
from esdedup.plan.costs import CostsFile, Measured, shipped
from esdedup.plan.model import CapacityPlan, Workload


@command("plan", example="esdedup plan --articles-a-day 1e6 --retention-days 30")
def plan(
    *,
    stream: Workload,
    costs: Path | None = None,
    json: options.Json = False,
    fingerprinting: options.Fingerprinting,
) -> None:
    """Calculate how large a cluster, a forest and its owner must be for a stream of articles.

    All figures are calculated from unit costs, which were measured on the machine named below the figures. If
    they were measured with fewer nodes or articles, the figures are marked as extrapolated, with ≈.

    Options:
        costs: File with unit costs, as written by `python -m benchmarks unit-costs --costs FILE` in a
            checkout of esdedup. Default: the unit costs in the package, from which files of earlier versions
            are completed.
    """
    profile = fingerprinting.read_profile()
    costs_file = shipped() if costs is None else CostsFile.read(text_of_file(costs), name=str(costs))
    planned = CapacityPlan(stream, profile, costs_file)
    if json:
        output.print_json(_as_json(planned))
    else:
        _print_plan(planned)


def _as_json(plan: CapacityPlan) -> dict[str, Any]:
    figures = plan.figures.values()
    return {
        "workload": plan.workload.model_dump(),
        "profile": plan.profile.label,
        "lookup": "search" if plan.searching else "memory",
        "answer": list(plan.sentences()),
        "calculated": {each.name: each.value for each in figures},
        "extrapolated": [each.name for each in figures if each.is_extrapolated],
        "unit_costs": plan.costs.model_dump() | plan.costs_file.model_dump(include={"measured", "learned"}),
    }


def _print_plan(plan: CapacityPlan) -> None:
    workload, costs_file = plan.workload, plan.costs_file
    output.show(
        f"{workload.articles_a_day:,.0f} articles a day, {workload.reprints:.0%} reprints "
        f"({workload.edited:.0%} of these edited), {workload.mean_length:,.0f} characters, "
        f"kept {workload.retention_days:g} days; {plan.profile.label}\n"
    )
    output.print_lines(plan.sentences())
    rows = [(each.part, each.title, each.number + each.unit, each.basis) for each in plan.figures.values()]
    output.print_table(None, ("", "", "", "from"), rows, numbers=(2,))
    work, searching = plan.costs.server.work, plan.costs.server.searching
    output.show(
        f"≈ extrapolated. Measured were {plan.costs.deciding.measured_nodes:,} nodes in memory, "
        f"{searching.shard.measured_nodes:,} nodes searched for in up to {searching.measured_shards} shards, "
        f"{work.measured_articles:,} articles and {work.measured_roots:,} roots, on "
        f"{_measurement(costs_file.measured)} ({costs_file.name})",
        markup=False,
    )
    if searching.measured is not None:
        output.show(f"searches measured on {_measurement(searching.measured)}", markup=False)


def _measurement(measured: Measured) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in measured.versions.items())
    return f"{measured.on}: {measured.machine}; {versions}"
