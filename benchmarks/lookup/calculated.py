"""What follows for sizes that are not measured: from the formulas of `schemes`, and two unit costs.

An arrival costs the time of its keys, as measured at the largest size, and time for each candidate, as
measured where these are many.
"""

from collections.abc import Mapping, Sequence

from benchmarks.lookup.rows import UNIFORM, Lookup
from benchmarks.lookup.schemes import ALL_VARIANTS, BLOCKS, SCHEMES, Scheme

TABLE = "layouts-calculated"
SIZES = tuple(10**power for power in range(5, 11))


def calculated(measured: Sequence[Lookup]) -> list[Lookup]:
    """Return what each scheme takes of uniform fingerprints that are not near the arrival."""
    uniform = [row for row in measured if row.kind == UNIFORM]
    by_scheme = {scheme.name: [row for row in uniform if row.scheme == scheme.name] for scheme in SCHEMES}
    candidate_us = _candidate_us(by_scheme[BLOCKS.name])
    return [
        Lookup(
            table=TABLE,
            kind=UNIFORM,
            scheme=scheme.name,
            fingerprints=size,
            candidates=scheme.candidates(size),
            # With all variants, only so few could be measured that they fit into the processor's cache.
            lookup_us=None if scheme == ALL_VARIANTS else _lookup_us(scheme, size, by_scheme, candidate_us),
            bytes_each=scheme.memory_bytes(size),
        )
        for size in SIZES
        for scheme in SCHEMES
    ]


def _candidate_us(rows: Sequence[Lookup]) -> float:
    """Return the time of a candidate: what more of them cost from the second largest size to the largest."""
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
