"""Latencies of single requests, ours and the peers' in turn, in one loop."""

import dataclasses
import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.rows import Row, duration_s, less_is_better

OURS = "ours"
_WARM_UP, _MEASURED = 10, 100
_PERCENTILES = (50, 95)

Round = Callable[[], Mapping[str, Callable[[], Any]]]
"""Chooses the next request; returns a call for each competitor, `OURS` among them. A call returns how many
articles match if that must be the same for all, else None."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One loop of measurements."""

    table: str
    name: str
    choose: Round


@dataclasses.dataclass(frozen=True, kw_only=True)
class Latencies:
    """The p50 and p95 of each competitor in a case, in ms."""

    case: Case
    values: Mapping[str, tuple[float, ...]]

    def rows(self, collection: str) -> list[Row]:
        return [
            _row(self.case.table, f"{self.case.name}, {collection}, p{percentile}", one, "ms")
            for at, percentile in enumerate(_PERCENTILES)
            for one in _compared({name: each[at] for name, each in self.values.items()})
        ]

    def growth_from(self, small: "Latencies", table: str, collections: str) -> list[Row]:
        """Compare by how much each becomes slower than in a smaller collection, p50."""
        times = {name: each[0] / small.values[name][0] for name, each in self.values.items()}
        return [
            _row(table, f"{self.case.name}, {collections}, p50", one, "times") for one in _compared(times)
        ]


def measured(case: Case) -> Latencies:
    durations_s: dict[str, list[float]] = {}
    answers: dict[str, Any] = {}
    gc.collect()
    gc.disable()
    try:
        for number in range(_WARM_UP + _MEASURED):
            calls = list(case.choose().items())
            # The first one warms caches for the others, so all take turns in being first.
            first = number % len(calls)
            for name, call in calls[first:] + calls[:first]:
                taken_s = duration_s(lambda name=name, call=call: answers.update({name: call()}))
                if number >= _WARM_UP:
                    durations_s.setdefault(name, []).append(taken_s)
            counts = {count for count in answers.values() if count is not None}
            if len(counts) > 1:
                raise RuntimeError(f"{case.name}: the numbers of articles differ: {answers}")
    finally:
        gc.enable()
    values = {
        name: tuple(float(each) for each in np.percentile(each_s, _PERCENTILES) * 1_000)
        for name, each_s in durations_s.items()
    }
    return Latencies(case=case, values=values)


def _compared(values: Mapping[str, float]) -> Sequence[tuple[float, str | None, float | None]]:
    """Pair ours with each peer; without peers, return ours alone."""
    peers = [name for name in values if name != OURS]
    return [(values[OURS], peer, values[peer]) for peer in peers] or [(values[OURS], None, None)]


def _row(table: str, case: str, one: tuple[float, str | None, float | None], unit: str) -> Row:
    ours, against, theirs = one
    if against is None or theirs is None:
        return Row(table=table, case=case, ours=ours, unit=unit)
    return less_is_better(table, case, ours, against, theirs, unit)
