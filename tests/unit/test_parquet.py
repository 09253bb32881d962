"""Reading Parquet files in a process of its own, within limits, and writing them."""

import decimal
import io
import json
import random
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from esdedup.ingest import parquet
from esdedup.ingest.files import FileArticle, read_articles
from esdedup.ingest.records import FileRecord, check_readable, read_records

from esdedup import ArticleRejected, Fields, FieldsNotFound, SettingError

TEXT = "The ferry to the outer islands runs again from Monday."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "news"


def read(path: Path) -> list[FileRecord | ArticleRejected]:
    return list(read_records(path, on_bytes=lambda _: None))


def reason_of(path: Path) -> str:
    (rejected,) = read(path)
    assert isinstance(rejected, ArticleRejected)
    assert rejected.article == f"{path}:1"
    return rejected.reason


def test_values_become_those_of_json(path: Path) -> None:
    noon = datetime(2026, 1, 1, 12)
    columns = {
        "id": pa.array([7]),
        "text": pa.array([TEXT.encode()]),
        "list": pa.array([["a", None]]),
        "object": pa.array([{"a": {"b": 1.5}}]),
        "map": pa.array([[("k", True)]], pa.map_(pa.string(), pa.bool_())),
        "local": pa.array([noon]),
        "zoned": pa.array([noon], pa.timestamp("ms", "Asia/Shanghai")),
        "precise": pa.array([1], pa.timestamp("ns")),
        "far": pa.array([10**18], pa.timestamp("ms")),
        "day": pa.array([date(2026, 1, 2)]),
        "price": pa.array([decimal.Decimal("12.50")]),
        "nan": pa.array([float("nan")]),
        "missing": pa.array([None], pa.string()),
        "image": pa.array([b"\xff\x00"]),
    }
    pq.write_table(pa.table(columns), path)
    (found,) = read(path)
    assert isinstance(found, FileRecord)
    far = found.fields.pop("far")
    assert "out of range" in far
    assert found.fields == {
        "id": 7,
        "text": TEXT,
        "list": ["a", None],
        "object": {"a": {"b": 1.5}},
        "map": {"k": True},
        "local": "2026-01-01T12:00:00.000000",
        "zoned": "2026-01-01T20:00:00.000+0800",
        "precise": "1970-01-01T00:00:00.000000001",
        "day": "2026-01-02",
        "price": "12.50",
        "nan": None,
        "missing": None,
        "image": "\\xff\0",
    }


def test_rows_are_numbered_and_progress_is_in_bytes(path: Path) -> None:
    pq.write_table(pa.table({"id": [*map(str, range(1_000))], "text": [TEXT] * 1_000}), path)
    counts: list[int] = []
    found = list(read_records(path, on_bytes=counts.append))
    assert [each.place for each in found if isinstance(each, FileRecord)] == [
        f"{path}:{number}" for number in range(1, 1_001)
    ]
    assert sum(counts) == path.stat().st_size


def test_only_named_columns_are_read(path: Path) -> None:
    row = {"nr": 1, "body": {"text": TEXT, "html": "<p>"}, "meta.site": "a.example", "vector": [0.5]}
    pq.write_table(pa.Table.from_pylist([row]), path)
    fields = Fields(text="body.text", site="meta.site")
    for all_columns, left_out in ((True, {"nr"}), (False, {"nr", "vector"})):
        (found,) = read_articles([path], fields=fields, id_field="nr", all_columns=all_columns)
        assert isinstance(found, FileArticle)
        assert found.article == {name: value for name, value in row.items() if name not in left_out}
    # Without the text, all columns are read to suggest one.
    with pytest.raises(FieldsNotFound) as caught:
        list(read_articles([path], id_field="nr", all_columns=False))
    assert "'vector'" in str(caught.value)


@pytest.mark.slow
def test_a_file_cannot_take_unlimited_memory(path: Path) -> None:
    """A file of 10 kB has a page of 20 MB, to which each of its 500 rows refers."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 500, pa.int32()), pa.array(["ab " * 7_000_000]))
    pq.write_table(pa.table({"id": range(500), "text": text}), path, dictionary_pagesize_limit=1 << 30)
    assert path.stat().st_size < 2_000_000
    assert "it takes more than 2,000,000,000 bytes of memory" in reason_of(path)


@pytest.mark.slow
def test_a_file_with_too_many_columns_is_refused(path: Path) -> None:
    pq.write_table(pa.table({str(number): [1] for number in range(100_001)}), path)
    assert reason_of(path) == "cannot be read from here on: more than 100,000 columns or row groups"


def test_a_deeply_nested_file_is_refused(path: Path) -> None:
    kind = pa.string()
    for _ in range(200):
        kind = pa.struct([("a", kind)])
    pq.write_table(pa.table({"id": ["a"], "deep": pa.nulls(1, kind)}), path)
    assert "too deeply nested" in reason_of(path)


def test_damaged_files_are_rejected_without_a_traceback(path: Path) -> None:
    pq.write_table(pa.table({"id": [*map(str, range(500))], "text": [TEXT] * 500}), path)
    good, noise = path.read_bytes(), random.Random(1)
    for number in range(8):
        damaged = bytearray(good)
        if number % 2:
            del damaged[noise.randrange(4, len(good)) :]
        else:
            for at in noise.sample(range(4, len(good)), 20):
                damaged[at] ^= 1 << noise.randrange(8)
        path.write_bytes(damaged)
        bad = [each for each in read(path) if isinstance(each, ArticleRejected)]
        assert all(each.reason.startswith(("cannot be read", "is nested")) for each in bad)
        assert bad or not number % 2


def test_pyarrow_is_required_before_anything_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"id": ["a"]}), path)
    check_readable([path])
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(SettingError, match=r"pip install 'esdedup\[parquet\]'"):
        check_readable([path])


@pytest.mark.parametrize(
    ("values", "kind", "written"),
    [
        ([1, None, 2], pa.int64(), [1, None, 2]),
        ([1, 0.5], pa.float64(), [1.0, 0.5]),
        ([True, False], pa.bool_(), [True, False]),
        ([None, None], pa.string(), [None, None]),
        ([1, "a", ["b"]], pa.string(), ["1", "a", '["b"]']),
        ([2**70, 1], pa.string(), [str(2**70), "1"]),
        ([[], ["a"]], pa.list_(pa.string()), [[], ["a"]]),
        ([{"a": 1}, {"b": "c"}], None, [{"a": 1, "b": None}, {"a": None, "b": "c"}]),
    ],
)
@pytest.mark.parametrize("rows_at_once", [1, 10])
def test_a_column_gets_the_type_of_its_values(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows_at_once: int,
    values: list[Any],
    kind: Any,
    written: list[Any],
) -> None:
    monkeypatch.setattr(parquet, "_WRITTEN_ROWS", rows_at_once)
    rows: list[dict[str, Any]] = [{"first": "x"}, *({"x": value} for value in values)]
    parquet.write(io.StringIO("".join(json.dumps(each) + "\n" for each in rows)), path)
    table = pq.read_table(path)
    assert table["first"].to_pylist() == ["x"] + [None] * len(values)
    assert table["x"].to_pylist() == [None, *written]
    assert kind is None or table["x"].type == kind


def test_rows_that_cannot_be_written_name_the_remedy(path: Path) -> None:
    with pytest.raises(SettingError, match=r"cannot write .*; write \.jsonl instead"):
        parquet.write(io.StringIO('{"x": {}}\n'), path)
