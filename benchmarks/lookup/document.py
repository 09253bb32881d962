"""The tables of docs/lookup.md, made from the file of results."""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.results import Cells, Result

_MEMORY = ("layouts",)
_ELASTIC = ("layouts-elastic", "layouts-elastic-million", "layouts-elastic-large")
_CANDIDATES, _LOOKUP = "candidates an arrival", "µs an arrival"
_STORE, _BYTES = "µs to store one", "bytes a fingerprint"


def memory(kept: Mapping[str, Result], kind: str) -> Iterator[str]:
    """Yield the table of the schemes in memory, for one kind of fingerprints."""
    return _by_scheme(_rows(kept, _MEMORY, "layouts"), kind)


def elastic(kept: Mapping[str, Result], kind: str) -> Iterator[str]:
    """Yield the table of the schemes in Elasticsearch, for one kind of fingerprints."""
    return _by_scheme(_rows(kept, _ELASTIC, "layouts-elastic"), kind)


def calculated(kept: Mapping[str, Result]) -> Iterator[str]:
    """Yield what is calculated: a row for each scheme and figure, a column for each size."""
    rows = _rows(kept, _MEMORY, "layouts-calculated")
    sizes = list(dict.fromkeys(row["fingerprints"] for row in rows))
    yield _line(["scheme", "", *sizes])
    yield "|" + "---|" * (2 + len(sizes))
    for scheme in dict.fromkeys(row["scheme"] for row in rows):
        of_scheme = {row["fingerprints"]: row for row in rows if row["scheme"] == scheme}
        for column in (_CANDIDATES, _LOOKUP, _BYTES):
            label = scheme if column == _CANDIDATES else ""
            yield _line([label, column, *(of_scheme[size][column] for size in sizes)])


def _by_scheme(rows: Sequence[Cells], kind: str) -> Iterator[str]:
    """Yield a row for each scheme: candidates and times at each size; what storing costs at the largest."""
    chosen = [row for row in rows if row["kind"] == kind]
    schemes = list(dict.fromkeys(row["scheme"] for row in chosen))
    # Not those at which one scheme alone was measured, since it could not be at others.
    sizes = [
        size
        for size in dict.fromkeys(row["fingerprints"] for row in chosen)
        if sum(row["fingerprints"] == size for row in chosen) > 1
    ]
    measures = [f"{column} of {size}" for column in (_CANDIDATES, _LOOKUP) for size in sizes]
    yield _line(["scheme", *measures, _STORE, _BYTES])
    yield "|" + "---|" * (3 + len(measures))
    for scheme in schemes:
        of_scheme = {row["fingerprints"]: row for row in chosen if row["scheme"] == scheme}
        largest = list(of_scheme.values())[-1]
        if of_scheme.keys() & sizes:
            cells = [
                of_scheme[size][column] if size in of_scheme else ""
                for column in (_CANDIDATES, _LOOKUP)
                for size in sizes
            ]
            yield _line([scheme, *cells, largest[_STORE], largest[_BYTES]])
        else:
            places = [f"{largest[column]} at {largest['fingerprints']}" for column in (_CANDIDATES, _LOOKUP)]
            cells = [cell for place in places for cell in (place, *[""] * (len(sizes) - 1))]
            yield _line([scheme, *cells, largest[_STORE], largest[_BYTES]])


def _rows(kept: Mapping[str, Result], benchmarks: Sequence[str], table: str) -> list[Cells]:
    return [row for name in benchmarks if name in kept for row in kept[name].tables.get(table, [])]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
