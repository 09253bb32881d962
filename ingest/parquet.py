"""Reads and writes Parquet files, with pyarrow from the extra `parquet`.

A file is read by a process of its own, ``python -m esdedup.ingest.parquet``, which writes its rows as JSON
Lines. So a damaged or malicious file can neither crash the caller nor take more than a fixed memory.
"""

import collections
import contextlib
import importlib.util
import itertools
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from esdedup.errors import SettingError

MAGIC = b"PAR1"
"""The beginning of every Parquet file."""
# Limits for reading a file. The limit on memory refuses large pages and rows; macOS ignores it.
_MOST_BYTES = 2_000_000_000
_MOST_COLUMNS = 100_000
# The numbers of rows that are read and written at once.
_READ_ROWS = 256
_WRITTEN_ROWS = 10_000


def require_pyarrow() -> None:
    """Raise `SettingError` unless pyarrow is installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise SettingError("Parquet files require pyarrow, not installed: pip install 'esdedup[parquet]'")


@contextlib.contextmanager
def json_lines(
    path: Path, columns: Sequence[str] | None, on_share: Callable[[float], None]
) -> Iterator[Callable[[int], bytes]]:
    """Yield a function that reads a file's rows as JSON Lines, as much as is available, and raises `OSError`.

    `columns` are the fields to read, unless one of the first two is missing; None reads all. `on_share` is
    called with the share of the rows read so far.
    """
    command = [sys.executable, "-P", "-m", __name__, str(path), *(columns or ())]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, bufsize=0, stdout=pipe, stderr=pipe) as process:  # noqa: S603
        output, errors = process.stdout, process.stderr
        assert output is not None
        assert errors is not None
        total, count = int(output.readline() or 0), 0

        def read(most: int) -> bytes:
            nonlocal count
            data = output.read(most)
            count += data.count(b"\n")
            on_share(count / max(total, 1))
            if not data and process.wait():
                reason = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
                raise OSError(reason or f"pyarrow ended with exit code {process.returncode}")
            return data

        try:
            yield read
        finally:
            process.kill()


def write(lines: IO[str], path: Path) -> None:
    """Write the objects in JSON Lines as the rows of a Parquet file; `lines` is read twice.

    A column has the type of its values. If they have several types or none, it has strings, in which other
    values are JSON. Raises `SettingError` if pyarrow cannot write the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def parts() -> Iterator[list[dict[str, Any]]]:
        lines.seek(0)
        while part := list(map(json.loads, itertools.islice(lines, _WRITTEN_ROWS))):
            yield part

    def column(rows: list[dict[str, Any]], field: Any) -> Any:
        values = [row.get(field.name) for row in rows]
        if field.type == pa.string():
            values = [each if each is None or isinstance(each, str) else json.dumps(each) for each in values]
        return pa.array(values, field.type)

    types: dict[str, Any] = collections.defaultdict(pa.null)
    for rows in parts():
        for name in dict.fromkeys(itertools.chain.from_iterable(rows)):
            try:
                kinds = types[name], pa.array([row.get(name) for row in rows]).type
                both = [pa.schema([(name, kind)]) for kind in kinds]
                types[name] = pa.unify_schemas(both, promote_options="permissive").types[0]
            except (pa.ArrowException, OverflowError):
                types[name] = pa.string()
    schema = pa.schema([(name, pa.string() if each == pa.null() else each) for name, each in types.items()])
    try:
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for rows in parts():
                writer.write_batch(pa.record_batch([column(rows, each) for each in schema], schema))
    except pa.ArrowException as error:
        raise SettingError(f"cannot write {path}: {error}; write .jsonl instead") from error


def _rows(path: str, columns: Sequence[str]) -> Iterator[bytes]:
    """Yield the number of rows, and each row as a line of JSON."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def plain(column: Any) -> Any:
        # Python's times lack nanoseconds and years above 9999, and JSON lacks NaN.
        if pa.types.is_timestamp(column.type):
            return pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1)
        return pc.if_else(pc.is_finite(column), column, None) if pa.types.is_floating(column.type) else column

    limits = {"thrift_container_size_limit": _MOST_COLUMNS}
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16, **limits) as file:
        names = [each for each in file.schema_arrow.names if each in columns]
        chosen = names if columns and {*columns[:2]} <= {*names} else None
        yield b"%d\n" % file.metadata.num_rows
        for batch in file.iter_batches(_READ_ROWS, columns=chosen, use_threads=False):
            arrays = map(plain, batch.columns)
            rows = pa.RecordBatch.from_arrays([*arrays], names=batch.schema.names)
            for row in rows.to_pylist(maps_as_pydicts="lossy"):
                yield json.dumps(row, default=_plain, ensure_ascii=False).encode() + b"\n"


def _plain(value: Any) -> str:
    """Convert a value that JSON does not have; bytes that are not UTF-8 are escaped."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def _main(path: str, *columns: str) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    try:
        sys.stdout.buffer.writelines(_rows(path, columns))
    except MemoryError:
        sys.exit(f"it takes more than {_MOST_BYTES:,} bytes of memory: write smaller row groups and pages")
    # pyarrow raises various exceptions for damaged files.
    except Exception as error:
        reason = str(error).partition("\n")[0]
        limit = f"more than {_MOST_COLUMNS:,} columns or row groups"
        sys.exit(limit if "Exceeded size limit" in reason else reason)


if __name__ == "__main__":
    _main(*sys.argv[1:])
