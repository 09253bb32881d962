"""Files of results: the tables of each benchmark, with where, when and with what they were measured.

`make benchmarks` writes all of them (`ALL`), which are an artefact of a release. `PATH`, in the repository,
has the rows that documents quote: a new measurement replaces these, and adds none.
"""

import dataclasses
import datetime as dt
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import machine

ROOT = Path(__file__).parents[1]
PATH = ROOT / "benchmarks/results.json"
ALL = ROOT / "build/benchmarks/results.json"
# The columns that say what a row is of; the others have what was measured.
_NAMES = ("case", "unit", "against", "set", "method", "fingerprints", "kind", "scheme", "day", "pages")
# What decides a measurement.
_CODE = (
    "core/src/**/*.rs",
    "core/Cargo.toml",
    "esdedup/**/*.py",
    "ingest/**/*.py",
    "benchmarks/**/*.py",
    "pyproject.toml",
)
_PACKAGES = (
    "datasketch",
    "elasticsearch",
    "faiss-cpu",
    "gaoya",
    "jieba",
    "mmh3",
    "numpy",
    "opencc",
    "rensa",
    "rjieba",
    "simhash",
)

Cells = Mapping[str, str]
"""A row of a table, as it is shown: the text of each column."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """Where, when and with what a benchmark was run."""

    # The day, as ISO 8601 has it.
    on: str
    machine: str
    system: str
    # By name: Python, packages, servers.
    versions: Mapping[str, str]
    # A digest of all that decides a measurement.
    code: str
    took_s: int
    # The number of hash functions.
    seeds: int

    @classmethod
    def now(cls, *, versions: Mapping[str, str], took_s: float, seeds: int) -> "Measured":
        packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
        return cls(
            on=dt.datetime.now(tz=dt.UTC).date().isoformat(),
            machine=machine(),
            system=f"{platform.system()} {platform.release()}",
            versions={"Python": platform.python_version()} | packages | dict(versions),
            code=code(),
            took_s=round(took_s),
            seeds=seeds,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """What one benchmark has measured."""

    measured: Measured
    tables: Mapping[str, Sequence[Cells]]


def load(path: Path) -> dict[str, Result]:
    """Return the results by the names of benchmarks; nothing if there is no file yet."""
    if not path.exists():
        return {}
    held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Result(measured=Measured(**each["measured"]), tables=each["tables"])
        for name, each in held.items()
    }


def save(results: Mapping[str, Result], path: Path) -> None:
    """Write results, a row a line."""
    parts = []
    for name, each in results.items():
        tables = [
            f"   {_json(table)}: [\n" + ",\n".join(f"    {_json(row)}" for row in rows) + "\n   ]"
            for table, rows in each.tables.items()
        ]
        measured = _json(dataclasses.asdict(each.measured))
        parts.append(
            f' {_json(name)}: {{\n  "measured": {measured},\n  "tables": {{\n'
            + ",\n".join(tables)
            + "\n  }\n }"
        )
    text = "{\n" + ",\n".join(parts) + "\n}"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(path)


def renewed(quoted: Mapping[str, Result], measured: Mapping[str, Result]) -> dict[str, Result]:
    """Return the rows that are quoted as they are now measured."""

    def again(name: str) -> Result:
        rows = {table: {_name(row): row for row in found} for table, found in measured[name].tables.items()}
        tables = {
            table: [rows[table][_name(row)] for row in of_table]
            for table, of_table in quoted[name].tables.items()
        }
        return Result(measured=measured[name].measured, tables=tables)

    return {name: again(name) if name in measured else each for name, each in quoted.items()}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _name(row: Cells) -> tuple[str | None, ...]:
    return tuple(row.get(column) for column in _NAMES)


def is_current(result: Result) -> bool:
    """Return whether a benchmark would be run again with the same code on the same kind of machine."""
    return (result.measured.code, result.measured.machine) == (code(), machine())


def code() -> str:
    """Return a digest of the code that decides a measurement."""
    digest = hashlib.blake2b(digest_size=6)
    for pattern in _CODE:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
