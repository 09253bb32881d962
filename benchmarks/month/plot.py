"""The month, drawn from the file of results: `python -m benchmarks.month.plot` writes `docs/month.svg`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import results
from benchmarks.month.owner import RETENTION
from benchmarks.month.table import TABLE

PATH = results.ROOT / "docs/month.svg"
# Readable on white and on black.
_INK, _COLOURS = "#808080", ("#2f7ed8", "#e07b39", "#3a9d5d")
# Panels: a title, and the columns drawn in it.
_PANELS: Sequence[tuple[str, Sequence[str]]] = (
    ("nodes", ("nodes",)),
    ("disk of the forest, MB", ("forest, MB",)),
    ("memory, MB", ("memory of nodes, MB", "of boilerplate, MB", "resident, MB")),
    ("articles a second", ("articles/s",)),
    ("a batch of half an hour, ms", ("batch, p50, ms", "slowest, ms")),
    ("articles of the day, and nodes and pages that expired", ("articles", "expired")),
)


def draw(days: Sequence[Mapping[str, str]], path: Path) -> None:
    """Write a picture, of the kind that the name of its file says.

    Args:
        days: The rows of the table.
        path: The file.
    """
    numbers = [int(each["day"]) for each in days]
    figure = Figure(figsize=(10, 8), layout="constrained")
    figure.patch.set_alpha(0)
    for panel, (title, columns) in zip(figure.subplots(3, 2, sharex=True).flat, _PANELS, strict=True):
        for column, colour in zip(columns, _COLOURS, strict=False):
            values = [float(each[column].replace(",", "")) for each in days]
            panel.plot(numbers, values, color=colour, label=column, marker=".", markersize=4)
        _style(panel, title, has_legend=len(columns) > 1)
        panel.axvline(RETENTION.days, color=_INK, linestyle=":", linewidth=1)
        for each in days:
            if each[""]:
                panel.axvline(int(each["day"]), color=_INK, linestyle="-", linewidth=0.5, alpha=0.6)
    figure.supxlabel(
        "day; dotted: the end of the first retention; lines: the owner is killed, or a hot story", color=_INK
    )
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _style(panel: Axes, title: str, *, has_legend: bool) -> None:
    panel.set_title(title, color=_INK, fontsize=10)
    panel.set_ylim(bottom=0)
    panel.set_facecolor("none")
    panel.tick_params(colors=_INK)
    panel.grid(color=_INK, alpha=0.25)
    for spine in panel.spines.values():
        spine.set_color(_INK)
    if has_legend:
        panel.legend(labelcolor=_INK, framealpha=0, fontsize=8)


def main(path: Annotated[Path, typer.Argument(help="A PNG or SVG file.")] = PATH) -> None:
    """Draw the month as it was kept."""
    kept = results.load(results.QUOTED)
    if TABLE not in kept:
        raise typer.BadParameter("there is no month in the file of results: run it with --keep")
    draw(kept[TABLE].tables[TABLE], path)


if __name__ == "__main__":
    typer.run(main)
