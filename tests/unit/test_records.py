"""JSON Lines, JSON arrays and CSV are recognised, and read an article at a time."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from esdedup.ingest import csv_rows, records
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
        patch.setattr("esdedup.ingest.records.NumberedLines.read.__defaults__", (piece_bytes,))
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


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("encoding", "named"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16LE"),
        ("utf-16-be", "UTF-16BE"),
        ("utf-32", "UTF-32"),
    ],
)
@pytest.mark.parametrize(
    "content", ['{"id": 1}\n' * 3, '[\n{"id": 1},\n{"id": 2}]', "编号,标题\n1,一二\n2,渡轮\n"]
)
def test_a_file_in_another_encoding_is_one_rejection_that_says_so(
    tmp_path: Path, content: str, encoding: str, named: str, pack: Callable[[bytes], bytes]
) -> None:
    found = read(tmp_path / "a", pack(content.encode(encoding)))
    assert places(found) == [1]
    assert f"is {named}, as is all that follows: convert the file to UTF-8" in str(fields(found)[0])


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


@pytest.mark.parametrize("line", [b"nonsense", b"1,2,3", b'{"id": 1, "x"', b"a,a", b"a,", b'"a,b', b"[x, y]"])
def test_a_first_line_that_is_damaged_is_no_header(tmp_path: Path, line: bytes) -> None:
    bad, good = fields(read(tmp_path / "a", line + b'\n{"id": 2}\n'))
    assert "is not JSON" in str(bad)
    assert good == {"id": 2}


def test_columns_that_have_no_name_or_the_same(tmp_path: Path) -> None:
    found = read(tmp_path / "a.csv", b",id,text,source,source,\n0,a,t,x,y,\n")
    assert fields(found) == [{"id": "a", "text": "t", "source": "x", "source_2": "y"}]
    found = read(tmp_path / "b.csv", b"id,a,a,a_2\n1,x,y,z\n")
    assert fields(found) == [{"id": "1", "a": "x", "a_3": "y", "a_2": "z"}]


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


def test_stray_quotes_take_no_other_rows_with_them(tmp_path: Path) -> None:
    for name, delimiter in (("a.csv", ","), ("b.tsv", "\t")):
        lines = ["id,text,source"] + [f"{n},A story,wire" for n in range(40)]
        lines[3] = '2,"We will win,wire'
        lines[9] = '8,Called "Swan,wire'
        lines[19] = '18,"Never" again,wire'
        lines[29] = '28,"Never again,wire'
        lines[30] = '29,"A story, well told",wire'
        content = "\n".join(lines).replace(",", delimiter).encode()
        found = read(tmp_path / name, content)
        bad = [each.article for each in found if isinstance(each, ArticleRejected)]
        assert bad == [f"{tmp_path / name}:{number}" for number in (4, 20, 30)]
        assert len(found) == 40


def test_a_text_of_several_lines_without_an_end_is_no_article(tmp_path: Path) -> None:
    begun = b'"id","text"\n"1","x"\n"2","Two lines,\nof text"\n'
    found = read(tmp_path / "a.csv", begun + b'"3","One line.\n\nAnother, of\nwhich the e')
    assert fields(found)[2:] == ["is not CSV (to line 8): a quote is not closed"]
    assert places(found) == [2, 3, 5]
    found = read(tmp_path / "b.csv", begun + b'"3","One line.\nNo quote\n"4","x"\n')
    assert fields(found)[2:] == [
        "is not CSV (to line 6): a quote is closed in the middle of a cell",
        {"id": "4", "text": "x"},
    ]


def test_a_quote_that_is_closed_in_another_row_of_tabs(tmp_path: Path) -> None:
    rows = b'1\t"Never.\tx\n2\tt\tx\n3\tSwan"\tx\n4\tt\tx\n'
    found = read(tmp_path / "a.tsv", b"id\ttext\tsource\n" + rows)
    assert fields(found)[0] == "is not CSV: has a quote that is closed in another row"
    assert fields(found)[2:] == [
        {"id": f"{n}", "text": t, "source": "x"} for n, t in ((3, 'Swan"'), (4, "t"))
    ]


def test_a_line_is_read_again_once_and_not_for_each_row_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number_read, read_line = 0, csv_rows._Row.__next__

    def counted(row: csv_rows._Row) -> str:
        nonlocal number_read
        number_read += 1
        return read_line(row)

    monkeypatch.setattr(csv_rows._Row, "__next__", counted)
    found = read(tmp_path / "a.csv", b"id,text\n" + b'1,"x\n2,y\n3,y\n""\n' * 500)
    assert sum(isinstance(each, Record) for each in found) == 1_000
    assert number_read < 2 * 4 * 500 + 10


def test_a_quote_that_is_not_closed_does_not_swallow_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_ARTICLE_BYTES", 1_000)
    rows = "".join(f"{n},text\n" for n in range(1_000))
    bad, *good = read(tmp_path / "a.csv", f'id,text\nx,"text\n{rows}'.encode())
    assert isinstance(bad, ArticleRejected)
    assert "is a quote missing?" in bad.reason
    assert len(good) > 800
