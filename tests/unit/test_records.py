"""JSON Lines, JSON arrays and CSV are recognised, and read an article at a time."""

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from esdedup.ingest import records
from esdedup.ingest.records import Record, read_records
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esdedup import ArticleRejected

VALUES = st.recursive(
    st.none() | st.integers() | st.text('a"\\[]{},\n é😀', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('a"]}', max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def read(path: Path, content: bytes) -> list[Record | ArticleRejected]:
    path.write_bytes(content)
    return list(read_records(path, on_bytes=lambda _: None))


def fields(found: list[Record | ArticleRejected]) -> list[object]:
    return [each.fields if isinstance(each, Record) else each.reason for each in found]


def places(found: list[Record | ArticleRejected]) -> list[int]:
    names = (each.place if isinstance(each, Record) else each.article for each in found)
    return [int(name.rpartition(":")[2]) for name in names]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    articles=st.lists(st.dictionaries(st.text('a"]}', max_size=3), VALUES, max_size=3), max_size=5),
    indent=st.sampled_from([None, 0, 2]),
    piece_bytes=st.integers(1, 40),
)
def test_an_array_is_cut_into_its_elements(
    tmp_path: Path, articles: list[object], indent: int | None, piece_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("esdedup.ingest.numbered_lines.NumberedLines.read.__defaults__", (piece_bytes,))
        content = json.dumps(articles, indent=indent, ensure_ascii=False).encode()
        assert fields(read(tmp_path / "a.json", content)) == articles


def test_an_array_with_all_that_can_be_wrong(tmp_path: Path) -> None:
    content = b"""\xef\xbb\xbf
    [
      {"id": 1}, 5,
      {"id": 2, "x": NaN},

      {"id":
        3}, ] tail
    {"id": 4}
    """
    found = read(tmp_path / "a.json", content)
    assert places(found) == [3, 3, 4, 6, 7, 8]
    assert fields(found) == [
        {"id": 1},
        "is JSON, but not an object",
        "is not JSON: NaN is not a number",
        {"id": 3},
        "is not JSON: Expecting value at character 1",
        {"id": 4},
    ]
    found = read(tmp_path / "b.json", b'[{"id": 1},\n{"id": 2}')
    assert fields(found) == [{"id": 1}, {"id": 2}, "cannot be read from here on: the JSON array has no end"]


def test_csv(tmp_path: Path) -> None:
    content = 'id;"body text";date\r\n1;"two\r\nlines; ""quoted""";\r\n\r\n2;x\r\n3;é;2026-01-01\r\n'
    found = read(tmp_path / "a.csv", content.encode("utf-8-sig"))
    assert places(found) == [2, 5, 6]
    assert fields(found) == [
        {"id": "1", "body text": 'two\r\nlines; "quoted"'},
        "has 2 cells, but the first line names 3 fields",
        {"id": "3", "body text": "é", "date": "2026-01-01"},
    ]
    found = read(tmp_path / "b.csv", b"id\ttext\n1\t\xff\n2\tx")
    assert fields(found) == ["is not UTF-8", {"id": "2", "text": "x"}]


@pytest.mark.parametrize(
    "line", [b"nonsense", b"1,2,3", b'{"id": 1, "x"', b"a,a", b"a,,b", b'"a,b', b"[x, y]"]
)
def test_a_first_line_that_is_damaged_is_no_header(tmp_path: Path, line: bytes) -> None:
    bad, good = fields(read(tmp_path / "a", line + b'\n{"id": 2}\n'))
    assert "is not JSON" in str(bad)
    assert good == {"id": 2}


@pytest.mark.parametrize("form", ["lines", "array", "csv"])
def test_an_article_that_is_too_long_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """It is never in memory: neither here, nor decompressed."""
    monkeypatch.setattr(records, "MAX_ARTICLE_BYTES", 20_000)
    long = "x" * 4_000_000
    contents = {
        "lines": f'{{"id": "{long}"}}\n{{"id": "good", "text": "t"}}\n',
        "array": f'[{{"id": "{long}"}},\n{{"id": "good", "text": "t"}}]\n',
        "csv": f"id,text\n{long},{long}\ngood,t\n",
    }
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(contents[form].encode()))
    del contents, long
    tracemalloc.start()
    try:
        bad, good = fields(list(read_records(path, on_bytes=lambda _: None)))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "is longer than 20,000 bytes" in str(bad)
    assert good == {"id": "good", "text": "t"}
    assert peak_bytes < 1_000_000


def test_a_quote_that_is_not_closed_does_not_swallow_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_ARTICLE_BYTES", 1_000)
    rows = "".join(f"{n},text\n" for n in range(1_000))
    bad, *good = read(tmp_path / "a.csv", f'id,text\nx,"text\n{rows}'.encode())
    assert isinstance(bad, ArticleRejected)
    assert "is a quote missing?" in bad.reason
    assert len(good) > 800
