"""Measured and calculated rows that compare lookup schemes, and the tables of docs/lookup.md.

Calculated values follow from the formulas of `schemes` and two unit costs: the time for an arrival's keys,
measured at the largest size, and the time per candidate, measured where there are many candidates.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from benchmarks.lookup.schemes import ALL_VARIANTS, BLOCKS, SCHEMES, Scheme
from benchmarks.results import Cells, Result

UNIFORM, REAL = "uniform", "real"
CANDIDATES, LOOKUP = "candidates an arrival", "µs an arrival"
STORE, BYTES = "µs to store one", "bytes a fingerprint"
MEMORY, ELASTIC, STORES = "layouts", "layouts-elastic", "layouts-stores"
_BENCHMARKS = {
    MEMORY: (MEMORY,),
    ELASTIC: (ELASTIC, "layouts-elastic-million", "layouts-elastic-large"),
    STORES: (STORES,),
}
_CALCULATED = "layouts-calculated"
_SIZES = tuple(10**power for power in range(5, 11))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lookup:
    """The costs of one scheme at one size. None stands for a cost that was not measured."""

    table: str
    kind: str
    scheme: str
    fingerprints: int
    # The number of fingerprints that are read to find those near an arrival.
    candidates: float | None = None
    # The time per looked-up arrival, and per stored fingerprint.
    lookup_us: float | None = None
    store_us: float | None = None
    bytes_each: float | None = None

    @classmethod
    def of(cls, cells: Cells, *, table: str) -> Self:
        """Parse a row that `cells` returned."""
        return cls(
            table=table,
            kind=cells["kind"],
            scheme=cells["scheme"],
            fingerprints=int(cells["fingerprints"].replace(",", "")),
            candidates=number(cells[CANDIDATES]),
            lookup_us=number(cells[LOOKUP]),
            store_us=number(cells[STORE]),
            bytes_each=number(cells[BYTES]),
        )

    def cells(self) -> dict[str, str]:
        return {
            "fingerprints": f"{self.fingerprints:,}",
            "kind": self.kind,
            "scheme": self.scheme,
            CANDIDATES: figure(self.candidates),
            LOOKUP: figure(self.lookup_us),
            STORE: figure(self.store_us),
            BYTES: figure(self.bytes_each),
        }


def figure(value: float | None) -> str:
    """Format a number with about three significant digits."""
    if value is None:
        return ""
    if value >= 100:
        digits = len(str(int(value)))
        return f"{round(value, 3 - digits):,.0f}"
    return f"{value:.3g}" if value >= 0.001 or value == 0 else f"{value:.1e}"


def number(cell: str) -> float | None:
    """Parse a cell that `figure` returned."""
    return float(cell.replace(",", "")) if cell else None


def calculated(measured: Sequence[Lookup]) -> list[Lookup]:
    """Calculate the costs of each scheme for uniform fingerprints, none of which is near the arrival."""
    uniform = [row for row in measured if row.kind == UNIFORM]
    by_scheme = {scheme.name: [row for row in uniform if row.scheme == scheme.name] for scheme in SCHEMES}
    candidate_us = _candidate_us(by_scheme[BLOCKS.name])
    return [
        Lookup(
            table=_CALCULATED,
            kind=UNIFORM,
            scheme=scheme.name,
            fingerprints=size,
            candidates=scheme.candidates(size),
            # With all variants, only sizes that fit into the processor's cache could be measured.
            lookup_us=None if scheme == ALL_VARIANTS else _lookup_us(scheme, size, by_scheme, candidate_us),
            bytes_each=scheme.memory_bytes(size),
        )
        for size in _SIZES
        for scheme in SCHEMES
    ]


def _candidate_us(rows: Sequence[Lookup]) -> float:
    """Return the time per candidate, from the difference between the two largest sizes."""
    smaller, larger = sorted(rows, key=lambda row: row.fingerprints)[-2:]
    assert larger.lookup_us is not None
    assert smaller.lookup_us is not None
    assert larger.candidates is not None
    assert smaller.candidates is not None
    return (larger.lookup_us - smaller.lookup_us) / (larger.candidates - smaller.candidates)


def _lookup_us(
    scheme: Scheme, size: int, by_scheme: Mapping[str, Sequence[Lookup]], candidate_us: float
) -> float:
    largest = max(by_scheme[scheme.name], key=lambda row: row.fingerprints)
    assert largest.lookup_us is not None
    assert largest.candidates is not None
    if scheme.layout is None:
        return largest.lookup_us / largest.fingerprints * size
    keys_us = max(0.0, largest.lookup_us - largest.candidates * candidate_us)
    return keys_us + scheme.candidates(size) * candidate_us


def rows_of(kept: Mapping[str, Result], table: str) -> list[Cells]:
    """Return the rows of a table for all sizes."""
    return [row for name in _BENCHMARKS[table] if name in kept for row in kept[name].tables.get(table, [])]


def table_of(kept: Mapping[str, Result], table: str) -> Iterator[str]:
    """Yield a table with a row for each scheme: look-ups at each size, storage at the largest that has it."""
    chosen = [row for row in rows_of(kept, table) if row["kind"] == REAL]
    schemes = list(dict.fromkeys(row["scheme"] for row in chosen))
    # Leave out a size that was used only for one scheme, which could not be measured at the other sizes.
    sizes = [
        size
        for size in dict.fromkeys(row["fingerprints"] for row in chosen)
        if sum(row["fingerprints"] == size for row in chosen) > 1
    ]
    measures = [f"{column} of {size}" for column in (CANDIDATES, LOOKUP) for size in sizes]
    yield _line(["scheme", *measures, STORE, BYTES])
    yield "|" + "---|" * (3 + len(measures))
    for scheme in schemes:
        of_scheme = {row["fingerprints"]: row for row in chosen if row["scheme"] == scheme}
        largest = [row for row in of_scheme.values() if row[BYTES]][-1]
        if of_scheme.keys() & sizes:
            cells = [
                of_scheme[size][column] if size in of_scheme else ""
                for column in (CANDIDATES, LOOKUP)
                for size in sizes
            ]
            yield _line([scheme, *cells, largest[STORE], largest[BYTES]])
        else:
            places = [f"{largest[column]} at {largest['fingerprints']}" for column in (CANDIDATES, LOOKUP)]
            cells = [cell for place in places for cell in (place, *[""] * (len(sizes) - 1))]
            yield _line([scheme, *cells, largest[STORE], largest[BYTES]])


def sizes_of(kept: Mapping[str, Result], table: str) -> Iterator[str]:
    """Yield a table of the candidates and the bytes of each scheme, without times."""
    yield _line(["scheme", CANDIDATES, BYTES])
    yield "|---|---|---|"
    yield from (_line([row["scheme"], row[CANDIDATES], row[BYTES]]) for row in rows_of(kept, table))


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
