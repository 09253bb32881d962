"""Run benchmarks by name, print their tables, write their rows as JSON."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import decisions, elastic, fingerprint, in_memory, memory, plot, quality, reading, rows

_TABLES: Mapping[str, Callable[[], Sequence[rows.Shown]]] = {
    # Those that need real articles come first, so that a missing folder shows at once.
    "fingerprint": fingerprint.fingerprint,
    "quality": quality.quality,
    "scripts": decisions.scripts,
    "keywords": decisions.keywords,
    "saturated": decisions.saturated,
    "hot": decisions.hot,
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
        list[str] | None, typer.Argument(help=f"Any of {', '.join(_TABLES)}; by default all.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the rows to this file.")] = None,
    plot_file: Annotated[
        Path | None,
        typer.Option(
            "--plot", help="Draw precision and recall to this PNG or SVG file; by default beside the JSON."
        ),
    ] = None,
) -> None:
    """Compare esdedup with its peers, in one run."""
    chosen = names or list(_TABLES)
    for name in chosen:
        if name not in _TABLES:
            raise typer.BadParameter(f"no benchmark {name!r}; there are {', '.join(_TABLES)}")
    measured = [row for name in chosen for row in _TABLES[name]()]
    curves = [row for row in measured if isinstance(row, quality.Detection) and row.table == quality.CURVES]
    # The curves are drawn, not printed.
    rows.show([row for row in measured if row.table != quality.CURVES])
    if json is not None:
        rows.write(measured, json)
        plot_file = plot_file or json.with_suffix(".svg")
    if curves and plot_file is not None:
        plot.draw(curves, plot_file)


if __name__ == "__main__":
    typer.run(main)
