"""Rows of the comparison of schemes."""

import dataclasses

UNIFORM, REAL = "uniform", "real"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lookup:
    """What one scheme takes at one size. None for what was not measured."""

    table: str
    kind: str
    scheme: str
    fingerprints: int
    # Fingerprints that an arrival reads to find those that are near it.
    candidates: float | None = None
    # Time of a look-up, and of storing a fingerprint as part of all of them.
    lookup_us: float | None = None
    store_us: float | None = None
    bytes_each: float | None = None

    def cells(self) -> dict[str, str]:
        return {
            "fingerprints": f"{self.fingerprints:,}",
            "kind": self.kind,
            "scheme": self.scheme,
            "candidates an arrival": figure(self.candidates),
            "µs an arrival": figure(self.lookup_us),
            "µs to store one": figure(self.store_us),
            "bytes a fingerprint": figure(self.bytes_each),
        }


def figure(value: float | None) -> str:
    """Return a number with some three digits that count."""
    if value is None:
        return ""
    if value >= 100:
        digits = len(str(int(value)))
        return f"{round(value, 3 - digits):,.0f}"
    return f"{value:.3g}" if value >= 0.001 or value == 0 else f"{value:.1e}"


def number(cell: str) -> float | None:
    """Return the number that `figure` has made a cell of."""
    return float(cell.replace(",", "")) if cell else None
