"""Run benchmarks by name, print their tables, write their rows as JSON."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import elastic, fingerprint, in_memory, memory, plot, quality, reading, rows

_TABLES: Mapping[str, Callable[[], Sequence[rows.Shown]]] = {
    # First those that need real articles: where there are none, that shows at once.
    "fingerprint": fingerprint.fingerprint,
    "quality": quality.quality,
    "forest": in_memory.forest,
    "forest-verified": in_memory.forest_verified,
    "memory": memory.memory,
    "memory-verified": memory.memory_verified,
    "growth": in_memory.growth,
    "elastic": elastic.elastic,
    "elastic-verified": elastic.elastic_verified,
    "reading": reading.reading,
}


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Of {', '.join(_TABLES)}; all if none is given.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Where to write the rows.")] = None,
    plot_file: Annotated[
        Path | None,
        typer.Option("--plot", help="Where to draw quality, PNG or SVG; else beside the JSON."),
    ] = None,
) -> None:
    """Compare esdedup with its peers, in one run."""
    wanted = names or list(_TABLES)
    for name in wanted:
        if name not in _TABLES:
            raise typer.BadParameter(f"no benchmark {name!r}; there are {', '.join(_TABLES)}")
    found = [row for name in wanted for row in _TABLES[name]()]
    curves = [row for row in found if isinstance(row, quality.Detection) and row.table == quality.CURVES]
    # Curves are for the picture.
    rows.show([row for row in found if row.table != quality.CURVES])
    if json is not None:
        rows.write(found, json)
        plot_file = plot_file or json.with_suffix(".svg")
    if curves and plot_file is not None:
        plot.draw(curves, plot_file)


if __name__ == "__main__":
    typer.run(main)
