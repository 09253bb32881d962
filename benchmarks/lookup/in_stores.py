"""Measures the space and the reads of the literature's layouts: in Redis, HBase and sorted tables.

In Redis, the key of a set is a segment (some blocks of a fingerprint) with the table's number as a flag, and
the set's members are the fingerprints with this segment. In HBase, the key of a row is segment, flag and
fingerprint, and a search scans the rows that begin with a segment and its flag. LevelDB stands in for HBase,
which needs a cluster: both follow Bigtable, and store sorted keys in files of blocks, in which a key omits
the beginning that it has in common with the key before; each block is compressed with Snappy or not at all.

Redis (the program `redis-server`) and LevelDB (the package `plyvel`) are optional: without them, their rows
are left out.
"""

import contextlib
import importlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.lookup import fingerprints
from benchmarks.lookup.rows import REAL, STORES, Lookup
from benchmarks.lookup.schemes import BLOCKS, TWO_OF_FIVE, Fingerprints, Scheme
from benchmarks.server import Run
from esdedup.fingerprint.bands import WIDTH_BITS

_SIZES = (100_000,)
_ARRIVALS = 5_000
_AT_ONCE = 10_000
_START_S = 10.0
_SEGMENT_BYTES = 4


class _Store(Protocol):
    """A store of fingerprints under the keys of a scheme."""

    def add(self, table: int, keys: Fingerprints, values: Fingerprints) -> None:
        """Store fingerprints under their keys in a table; both are in the order of the keys."""

    def finish(self) -> int:
        """Make the store ready for searches; return its size in bytes."""

    def search(self, keys: list[Fingerprints]) -> Fingerprints:
        """Return the fingerprints under the keys of a batch, in each table, with repetitions."""


_Opened = Callable[[Scheme], AbstractContextManager[_Store]]


def layouts_stores(run: Run) -> list[Lookup]:
    """Measure each layout in each store, with real fingerprints."""
    draw = fingerprints.kinds()[REAL]
    return [
        _measured(f"{scheme.name}, {name}", scheme, opened, draw, run.size(size))
        for size in _SIZES
        for name, opened in _stores(run).items()
        for scheme in (BLOCKS, TWO_OF_FIVE)
    ]


def _stores(run: Run) -> dict[str, _Opened]:
    found: dict[str, _Opened] = {"sorted tables": _SortedTables.opened}
    if program := shutil.which("redis-server"):
        run.versions["Redis"] = _version_of(program)
        found["sets in Redis"] = _Redis.opened
    if importlib.util.find_spec("plyvel") is not None:
        run.versions["LevelDB (plyvel)"] = importlib.metadata.version("plyvel")
        found["rows in LevelDB, no compression"] = lambda scheme: _LevelDb.opened(scheme, None)
        found["rows in LevelDB, Snappy"] = lambda scheme: _LevelDb.opened(scheme, "snappy")
    return found


def _version_of(program: str) -> str:
    printed = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    return next(part[2:] for part in printed.split() if part.startswith("v="))


def _measured(name: str, scheme: Scheme, opened: _Opened, draw: fingerprints.Draw, count: int) -> Lookup:
    assert scheme.layout is not None
    tables = range(len(scheme.layout.tables))
    held = draw(count, np.random.default_rng(count))
    with opened(scheme) as store:
        for table in tables:
            keys = scheme.own(held, table)
            order = np.lexsort((held, keys))
            store.add(table, keys[order], held[order])
        size_bytes = store.finish()
        batch = fingerprints.arriving(held, draw, min(_ARRIVALS, count), np.random.default_rng(3))
        values = store.search([scheme.own(batch, table) for table in tables])
        # The first arrival is near a stored fingerprint.
        assert np.bitwise_count(batch[0] ^ values).min() <= 3
    return Lookup(
        table=STORES,
        kind=REAL,
        scheme=name,
        fingerprints=count,
        candidates=len(values) / len(batch),
        bytes_each=size_bytes / count,
    )


class _SortedTables:
    """A sorted array for each table: fingerprints whose bits are reordered, so that the key comes first."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._tables: list[Fingerprints] = []

    @classmethod
    @contextlib.contextmanager
    def opened(cls, scheme: Scheme) -> Iterator["_SortedTables"]:
        yield cls(scheme)

    def add(self, table: int, keys: Fingerprints, values: Fingerprints) -> None:  # noqa: ARG002
        self._tables.append(np.sort(self._reordered(table, values)))

    def finish(self) -> int:
        return sum(table.nbytes for table in self._tables)

    def search(self, keys: list[Fingerprints]) -> Fingerprints:
        parts = []
        for table, (own, held) in enumerate(zip(keys, self._tables, strict=True)):
            spare = np.uint64(WIDTH_BITS - self._scheme.width(table))
            starts = np.searchsorted(held, own << spare)
            stops = np.searchsorted(held, own << spare | (np.uint64(1) << spare) - np.uint64(1), "right")
            counts = stops - starts
            at = np.arange(counts.sum()) + np.repeat(starts - np.cumsum(counts) + counts, counts)
            parts.append(self._restored(table, held[at]))
        return np.concatenate(parts)

    def _ranges(self, table: int) -> list[tuple[int, int]]:
        assert self._scheme.layout is not None
        chosen = list(self._scheme.layout.tables[table])
        ends = [0, *(bit for each in sorted(chosen) for bit in each), WIDTH_BITS]
        return chosen + [
            (one, other) for one, other in zip(ends[::2], ends[1::2], strict=True) if one < other
        ]

    def _reordered(self, table: int, values: Fingerprints) -> Fingerprints:
        found = np.zeros(len(values), np.uint64)
        for start, stop in self._ranges(table):
            bits = values >> np.uint64(WIDTH_BITS - stop) & np.uint64((1 << stop - start) - 1)
            found = found << np.uint64(stop - start) | bits
        return found

    def _restored(self, table: int, values: Fingerprints) -> Fingerprints:
        found, left = np.zeros(len(values), np.uint64), WIDTH_BITS
        for start, stop in self._ranges(table):
            left -= stop - start
            bits = values >> np.uint64(left) & np.uint64((1 << stop - start) - 1)
            found |= bits << np.uint64(WIDTH_BITS - stop)
        return found


class _Redis:
    """Sets in a Redis server. Members are decimal numbers, which Redis stores in 8 bytes in small sets."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = connection.makefile("rb")
        self._empty_bytes = self._used_bytes()

    @classmethod
    @contextlib.contextmanager
    def opened(cls, scheme: Scheme) -> Iterator["_Redis"]:  # noqa: ARG003
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "socket")
            options = ["--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no"]
            with (
                subprocess.Popen(
                    ["redis-server", *options], cwd=folder, stdout=subprocess.DEVNULL
                ) as process,
                socket.socket(socket.AF_UNIX) as connection,
            ):
                try:
                    end_s = time.monotonic() + _START_S
                    while connection.connect_ex(path) and time.monotonic() < end_s:
                        time.sleep(0.05)
                    yield cls(connection)
                finally:
                    process.terminate()

    def add(self, table: int, keys: Fingerprints, values: Fingerprints) -> None:
        members = [b"%d" % member for member in values.view(np.int64).tolist()]
        found, starts = np.unique(keys, return_index=True)
        stops = [*starts[1:].tolist(), len(members)]
        sets = list(zip(found.tolist(), starts.tolist(), stops, strict=True))
        for at in range(0, len(sets), _AT_ONCE):
            some = sets[at : at + _AT_ONCE]
            commands = [
                _command(b"SADD", _set_key(table, key), *members[start:stop]) for key, start, stop in some
            ]
            self._connection.sendall(b"".join(commands))
            for _ in commands:
                self._answers.readline()

    def finish(self) -> int:
        return self._used_bytes() - self._empty_bytes

    def search(self, keys: list[Fingerprints]) -> Fingerprints:
        found: list[bytes] = []
        for table, own in enumerate(keys):
            commands = [_command(b"SMEMBERS", _set_key(table, key)) for key in own.tolist()]
            self._connection.sendall(b"".join(commands))
            for _ in commands:
                for _ in range(int(self._answers.readline()[1:])):
                    self._answers.readline()
                    found.append(self._answers.readline())
        return np.array(found, np.int64).view(np.uint64)

    def _used_bytes(self) -> int:
        self._connection.sendall(_command(b"INFO", b"memory"))
        answer = self._answers.read(int(self._answers.readline()[1:]) + 2)
        return int(next(line[12:] for line in answer.splitlines() if line.startswith(b"used_memory:")))


def _set_key(table: int, key: int) -> bytes:
    return key.to_bytes(_SEGMENT_BYTES) + bytes([table])


def _command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


class _LevelDb:
    """Rows without values: the key is segment, flag and fingerprint."""

    def __init__(self, database: Any, folder: Path) -> None:
        self._database = database
        self._folder = folder

    @classmethod
    @contextlib.contextmanager
    def opened(cls, scheme: Scheme, compression: str | None) -> Iterator["_LevelDb"]:  # noqa: ARG003
        plyvel: Any = importlib.import_module("plyvel")
        with tempfile.TemporaryDirectory() as folder:
            database = plyvel.DB(folder, create_if_missing=True, compression=compression)
            with contextlib.closing(database):
                yield cls(database, Path(folder))

    def add(self, table: int, keys: Fingerprints, values: Fingerprints) -> None:
        rows = zip(keys.tolist(), values.tolist(), strict=True)
        with self._database.write_batch() as batch:
            for key, value in rows:
                batch.put(_set_key(table, key) + value.to_bytes(8), b"")

    def finish(self) -> int:
        self._database.compact_range()
        return sum(path.stat().st_size for path in self._folder.glob("*.ldb"))

    def search(self, keys: list[Fingerprints]) -> Fingerprints:
        rows = [
            row
            for table, own in enumerate(keys)
            for key in own.tolist()
            for row in self._database.iterator(prefix=_set_key(table, key), include_value=False)
        ]
        return np.frombuffer(b"".join(row[-8:] for row in rows), ">u8").astype(np.uint64)
