"""Defines the rows of results, and prints and writes them."""

import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.table import Table


class Shown(Protocol):
    """A row of a table; a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def table(self) -> str: ...

    def cells(self) -> dict[str, str]:
        """Return the text of each column."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A comparison with a peer; a ratio above 1 is in our favour."""

    table: str
    case: str
    # None for work that only a peer does.
    ours: float | None = None
    # The peer that `theirs` belongs to; "–" if there is none.
    against: str = "–"
    theirs: float | None = None
    ratio: float | None = None
    unit: str

    def cells(self) -> dict[str, str]:
        return {
            "case": self.case,
            "ours": _figure(self.ours),
            "theirs": _figure(self.theirs),
            "ratio": "" if self.ratio is None else f"{self.ratio:.2f}",
            "unit": self.unit,
            "against": self.against,
        }


def _figure(value: float | None) -> str:
    """Format a number with three significant digits."""
    if value is None:
        return ""
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{round(value, 3 - len(str(int(abs(value))))):,.{decimals}f}"


def more_is_better(table: str, case: str, ours: float, against: str, theirs: float, unit: str) -> Row:
    return Row(
        table=table, case=case, ours=ours, against=against, theirs=theirs, ratio=ours / theirs, unit=unit
    )


def less_is_better(table: str, case: str, ours: float, against: str, theirs: float, unit: str) -> Row:
    return Row(
        table=table, case=case, ours=ours, against=against, theirs=theirs, ratio=theirs / ours, unit=unit
    )


def duration_s(work: Callable[[], object]) -> float:
    """Do the work; return the seconds that it took."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def processor_s(work: Callable[[], object]) -> float:
    """Do the work; return the processor time it took, which other processes disturb less than wall time."""
    started = time.process_time()
    work()
    return time.process_time() - started


def rate(batch_size: int, durations_s: Iterable[float]) -> float:
    """Return items per second, from the median duration of a batch."""
    return batch_size / statistics.median(durations_s)


def show(rows: Sequence[Shown]) -> None:
    for name in dict.fromkeys(row.table for row in rows):
        cells = [row.cells() for row in rows if row.table == name]
        table = Table(*cells[0], title=name, title_justify="left")
        for each in cells:
            table.add_row(*each.values())
        Console(width=190).print(table)


def write(rows: Sequence[Shown], path: Path) -> None:
    numbers = to_jsonable_python([dataclasses.asdict(row) for row in rows])
    path.write_text(json.dumps(numbers, indent=1, ensure_ascii=False) + "\n")
