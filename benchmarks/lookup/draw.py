"""Draw the figures of docs/lookup.md from the file of results: ``python -m benchmarks.lookup.draw``.

Optional arguments are a folder, by default docs, and a format, by default SVG.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import results
from benchmarks.lookup import in_memory
from benchmarks.lookup.rows import (
    BYTES,
    CANDIDATES,
    ELASTIC,
    LOOKUP,
    MEMORY,
    REAL,
    UNIFORM,
    Lookup,
    number,
    rows_of,
)
from benchmarks.lookup.rows import calculated as calculate
from benchmarks.lookup.schemes import ALL_VARIANTS, SCHEMES
from benchmarks.results import ROOT, Cells

_COLOURS = dict(
    zip(
        [*(scheme.name for scheme in SCHEMES), in_memory.OURS],
        [
            *("black", "tab:red", "tab:pink", "tab:orange", "tab:blue", "tab:cyan"),
            *("tab:purple", "tab:green", "tab:brown"),
        ],
        strict=True,
    )
)
_SIZE = (9, 4.5)
# Charts of a single size use one of these.
_SIZES = ("1,000,000", "100,000")


def draw(folder: Path, kind: str = "svg") -> None:
    """Write the figures to a folder, as files in a format such as SVG."""
    kept = results.load(results.QUOTED)
    measured, elastic = rows_of(kept, MEMORY), rows_of(kept, ELASTIC)
    calculated = [row.cells() for row in calculate([Lookup.of(row, table=MEMORY) for row in measured])]
    figures = {
        "lookup-where-to-pay": _where_to_pay(measured, elastic),
        "lookup-candidates": _by_size(measured, calculated, CANDIDATES, "candidates an arrival"),
        "lookup-time": _by_size(measured, calculated, LOOKUP, "µs an arrival, in memory"),
        "lookup-elasticsearch": _by_size(elastic, [], LOOKUP, "µs an arrival, in Elasticsearch"),
    }
    # Write the same bytes in every run.
    with rc_context({"svg.hashsalt": "lookup"}):
        for name, figure in figures.items():
            metadata = {"Date": None} if kind == "svg" else None
            figure.savefig(folder / f"{name}.{kind}", metadata=metadata)


def _where_to_pay(memory: Sequence[Cells], elastic: Sequence[Cells]) -> Figure:
    """Draw look-up time against space per fingerprint, at the size up to a million with most schemes."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    for panel, rows, place in zip(
        figure.subplots(1, 2), (memory, elastic), ("in memory", "in Elasticsearch"), strict=True
    ):
        size = max(_SIZES, key=[row["fingerprints"] for row in rows].count)
        for row in rows:
            if row["kind"] == REAL and (row["fingerprints"] == size or row["scheme"] == ALL_VARIANTS.name):
                scheme = row["scheme"]
                panel.plot(
                    *_point(row, BYTES, LOOKUP), "o", color=_COLOURS[scheme], markersize=8, label=scheme
                )
        panel.set(xscale="log", yscale="log", xlabel="pay when storing: bytes a fingerprint")
        panel.set_title(f"{place}, {size} real fingerprints", fontsize="medium")
        panel.grid(alpha=0.3)
    figure.axes[0].set_ylabel("pay when asking: µs an arrival")
    _legend(figure)
    return figure


def _by_size(measured: Sequence[Cells], calculated: Sequence[Cells], column: str, label: str) -> Figure:
    """Draw a column against the number of fingerprints, with measured points and calculated lines."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    for panel, kind in zip(figure.subplots(1, 2, sharex=True, sharey=True), (UNIFORM, REAL), strict=True):
        for scheme, colour in _COLOURS.items():
            _line(panel, measured, scheme, kind, column, colour=colour, marker="o", label=scheme)
            _line(panel, calculated, scheme, UNIFORM, column, colour=colour, marker="", label=None)
        panel.set(xscale="log", yscale="log", xlabel="fingerprints")
        panel.set_title(f"{kind} fingerprints", fontsize="medium")
        panel.grid(alpha=0.3)
    if column == CANDIDATES:
        figure.axes[0].set_ylim(bottom=1e-3)
    figure.axes[0].set_ylabel(label)
    _legend(figure)
    return figure


def _line(
    panel: Axes,
    rows: Sequence[Cells],
    scheme: str,
    kind: str,
    column: str,
    *,
    colour: str,
    marker: str,
    label: str | None,
) -> None:
    points = [
        _point(row, "fingerprints", column)
        for row in rows
        if row["scheme"] == scheme and row["kind"] == kind and row[column]
    ]
    if points:
        across, up = zip(*points, strict=True)
        panel.plot(across, up, color=colour, marker=marker, label=label, linestyle="-" if marker else ":")


def _point(row: Cells, across: str, up: str) -> tuple[float, float]:
    x, y = number(row[across]), number(row[up])
    assert x is not None
    assert y is not None
    return x, y


def _legend(figure: Figure) -> None:
    shown = {
        label: handle
        for panel in figure.axes
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=3, fontsize="small")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs", *sys.argv[2:3])
