"""Stores the results of benchmarks: tables, and where, when and with which versions they were measured.

The results of this machine are kept in `build`, and are an artefact of a release. The rows that documents
quote are in `results.json`; see `render`.
"""

import dataclasses
import datetime as dt
import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import machine

ROOT = Path(__file__).parents[1]
QUOTED = ROOT / "benchmarks/results.json"
MEASURED = ROOT / "build/benchmarks.json"
# The code that affects measurements.
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
    """Where, when and with which versions and settings a benchmark was run."""

    # The date in ISO 8601 format.
    on: str
    machine: str
    system: str
    # The versions of Python, packages and servers, by name.
    versions: Mapping[str, str]
    # A digest of the code that affects measurements.
    code: str
    took_s: int
    # The number of hash functions with which detection was measured.
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
    """The result of one benchmark."""

    measured: Measured
    tables: Mapping[str, Sequence[Cells]]


def load(path: Path) -> dict[str, Result]:
    """Return the results by the names of their benchmarks; empty if there is no file yet."""
    if not path.exists():
        return {}
    held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Result(measured=Measured(**each["measured"]), tables=each["tables"])
        for name, each in held.items()
    }


def save(results: Mapping[str, Result], path: Path) -> None:
    """Write results, with each row on one line."""
    held = {name: dataclasses.asdict(each) for name, each in results.items()}
    text = json.dumps(held, indent=1, ensure_ascii=False) + "\n"
    text = re.sub(r"\{[^{}]*\}", lambda row: re.sub(r"\n\s*", " ", row[0]), text)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def is_current(result: Result) -> bool:
    """Return whether a result was measured with the current code on this kind of machine."""
    return (result.measured.code, result.measured.machine) == (code(), machine())


def code() -> str:
    """Return a digest of the code that affects measurements."""
    digest = hashlib.blake2b(digest_size=6)
    for pattern in _CODE:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
