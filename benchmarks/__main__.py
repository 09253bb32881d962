"""Run benchmarks by name, print their tables, and with `--keep` store the tables in the file of results."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import (
    angle,
    boilerplate,
    decisions,
    elastic,
    excerpts,
    fingerprint,
    in_memory,
    ingest,
    language,
    list_page,
    online,
    plan,
    profile,
    quality,
    reading,
    render,
    results,
    rows,
    scripts,
    start,
    unit_costs,
)
from benchmarks.day import table
from benchmarks.detection import Detection
from benchmarks.lookup import in_elastic as lookup_in_elastic
from benchmarks.lookup import in_memory as lookup_in_memory
from benchmarks.lookup import in_stores as lookup_in_stores
from benchmarks.month import table as month_table
from benchmarks.server import Run

_BENCHMARKS: Mapping[str, Callable[[Run], Sequence[rows.Shown]]] = {
    # Benchmarks that need real articles come first, so that a missing folder is noticed immediately.
    "sets": quality.sets,
    "excerpts": excerpts.excerpts,
    "quality": quality.quality,
    "as-they-come": quality.as_they_come,
    "resemblance": quality.resemblance,
    "quality-peers": quality.quality_peers,
    "fingerprint": fingerprint.fingerprint,
    "online": online.online,
    "scripts": scripts.scripts,
    "keywords": decisions.keywords,
    "saturated": decisions.saturated,
    "hot": decisions.hot,
    "layouts": lookup_in_memory.layouts,
    "layouts-elastic": lookup_in_elastic.layouts_elastic,
    "layouts-elastic-million": lookup_in_elastic.layouts_elastic_million,
    "layouts-elastic-large": lookup_in_elastic.layouts_elastic_large,
    "layouts-stores": lookup_in_stores.layouts_stores,
    "postings": elastic.postings,
    "forest": in_memory.forest,
    "forest-classic": in_memory.forest_classic,
    "forest-large": in_memory.forest_large,
    "memory": in_memory.memory,
    "memory-classic": in_memory.memory_classic,
    "elastic": elastic.elastic,
    "elastic-classic": elastic.elastic_classic,
    "ingest": ingest.ingest,
    "sidecar": ingest.sidecar,
    "profile": profile.profile,
    "takeover": start.takeover,
    "start": start.start,
    "reading": reading.reading,
    "list-page": list_page.list_page,
    "search-language": language.search_language,
    "boilerplate": boilerplate.boilerplate,
    "day": table.day,
    "month": month_table.month,
    "plan": plan.plan,
    "plan-large": plan.plan_large,
    "unit-costs": unit_costs.unit_costs,
    "thresholds": quality.thresholds,
    "angle": angle.angle,
}
_ALL = "all"
# The settings of the results that documents quote.
_SCALE, _SEEDS = 1.0, 5
# Benchmarks that only draw pictures.
_NOT_KEPT = {"thresholds", "angle"}


def main(
    names: Annotated[
        list[str],
        typer.Argument(
            help=f"Any of {', '.join(_BENCHMARKS)}; or {_ALL}, to run those without a result for this "
            "code and machine, and store each result as soon as it is measured."
        ),
    ],
    keep: Annotated[bool, typer.Option("--keep", help="Store the tables in the file of results.")] = False,
    scale: Annotated[
        float,
        typer.Option(min=0.0001, max=1.0, help="Factor by which usual sizes are multiplied, for trials."),
    ] = _SCALE,
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of hash functions for measuring detection.")
    ] = _SEEDS,
    json: Annotated[
        Path | None, typer.Option("--json", help="Write the rows as numbers to this file.")
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option("--costs", help="Write unit costs to this file, for `esdedup plan --costs`."),
    ] = None,
    plot_file: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw the results of thresholds or angle to this PNG or SVG file."),
    ] = None,
) -> None:
    """Compare esdedup with similar packages."""
    keep = keep or names == [_ALL]
    if names != [_ALL]:
        chosen = names
    else:
        kept = results.load(results.MEASURED)
        chosen = [
            name
            for name in _BENCHMARKS
            if name not in _NOT_KEPT and not (name in kept and results.is_current(kept[name]))
        ]
    for name in chosen:
        if name not in _BENCHMARKS:
            raise typer.BadParameter(f"no benchmark {name!r}; the benchmarks are {', '.join(_BENCHMARKS)}")
    if keep and (scale, seeds) != (_SCALE, _SEEDS):
        raise typer.BadParameter("--keep stores results of the usual size only: omit --scale and --seeds")
    measured: list[rows.Shown] = []
    for name in chosen:
        run, started = Run(scale=scale, seeds=seeds), time.monotonic()
        found = _BENCHMARKS[name](run)
        rows.show(found)
        measured += found
        result = _result(run, found, took_s=time.monotonic() - started)
        if costs is not None and name in unit_costs.MEASURE:
            unit_costs.write({name: result}, costs)
        if keep and name not in _NOT_KEPT:
            if name in unit_costs.MEASURE:
                unit_costs.write({name: result}, unit_costs.PATH)
            kept = results.load(results.MEASURED) | {name: result}
            results.save(kept, results.MEASURED)
            render.write_documents(kept)
    if json is not None:
        rows.write(measured, json)
    curves = [row for row in measured if isinstance(row, Detection) and row.table == quality.THRESHOLDS]
    if curves and plot_file is not None:
        quality.draw(curves, plot_file)
    angles = [row for row in measured if isinstance(row, angle.Angle)]
    if angles and plot_file is not None:
        angle.draw(angles, plot_file)


def _result(run: Run, found: Sequence[rows.Shown], *, took_s: float) -> results.Result:
    tables = {
        table: [row.cells() for row in found if row.table == table]
        for table in dict.fromkeys(row.table for row in found)
    }
    return results.Result(
        measured=results.Measured.now(versions=run.versions, took_s=took_s, seeds=run.seeds), tables=tables
    )


if __name__ == "__main__":
    typer.run(main)
