"""A comparison, and how it is shown."""

import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

FAISS = "faiss IndexBinaryMultiHash(64, 4, 16)"
"""The peer that looks up within a distance, in memory."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A ratio above 1 is to our advantage."""

    table: str
    case: str
    ours: float
    # What `theirs` is; "–" where there is no peer.
    against: str = "–"
    theirs: float | None = None
    ratio: float | None = None
    unit: str


def more_is_better(table: str, case: str, ours: float, against: str, theirs: float, unit: str) -> Row:
    return Row(
        table=table, case=case, ours=ours, against=against, theirs=theirs, ratio=ours / theirs, unit=unit
    )


def less_is_better(table: str, case: str, ours: float, against: str, theirs: float, unit: str) -> Row:
    return Row(
        table=table, case=case, ours=ours, against=against, theirs=theirs, ratio=theirs / ours, unit=unit
    )


def duration_s(work: Callable[[], object]) -> float:
    """Do the work; return how long it took."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def rate(batch_size: int, durations_s: Iterable[float]) -> float:
    """Return how many a second, from the median duration of a batch."""
    return batch_size / statistics.median(durations_s)


def show(rows: list[Row]) -> None:
    for name in dict.fromkeys(row.table for row in rows):
        table = Table("case", "ours", "theirs", "ratio", "unit", "against", title=name, title_justify="left")
        for row in rows:
            if row.table == name:
                theirs = "" if row.theirs is None else f"{row.theirs:,.4g}"
                ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
                table.add_row(row.case, f"{row.ours:,.4g}", theirs, ratio, row.unit, row.against)
        Console(width=150).print(table)


def write(rows: list[Row], path: Path) -> None:
    path.write_text(
        json.dumps([dataclasses.asdict(row) for row in rows], indent=1, ensure_ascii=False) + "\n"
    )
