"""Reading files of articles in several formats; invalid articles are rejected with their position."""

import bz2
import gzip
import io
import json
import lzma
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from esdedup.ingest import csv_rows, records
from esdedup.ingest.files import FileArticle, SeenIds, check_fields, read_articles
from esdedup.ingest.records import STANDARD_INPUT, FileRecord, check_readable, read_records, total_bytes
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from esdedup import ArticleRejected, Fields, FieldsNotFound, SettingError
from esdedup.cli.advice import advice
from esdedup.fields import text_of
from tests.support.exploring import examples

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# Most articles in these tests have an id but no text, so the id serves as the text.
FIELDS = Fields(text="id")


def read(path: Path) -> list[FileArticle | ArticleRejected]:
    return list(read_articles([path], fields=FIELDS))


def test_lines_are_read_with_their_positions(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": "1", "text": "x"}\n\n  \n{"id": 2, "text": "y"}')
    assert read(path) == [
        FileArticle(place=f"{path}:1", id="1", article={"id": "1", "text": "x"}, size_bytes=25),
        FileArticle(place=f"{path}:4", id="2", article={"id": 2, "text": "y"}, size_bytes=22),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{not json", "is not JSON"),
        (b"[1]", "not an object"),
        (b"{}", "has no id"),
        (b'{"id": ""}', "must be a non-empty string"),
        (b'{"id": true}', "must be a non-empty string"),
        (b'{"id": 1.5}', "must be a non-empty string"),
        (b'{"id": "' + b"x" * 513 + b'"}', "longer than 512"),
        (b'{"id": "a", "text": "\xff"}', "convert it: `iconv -f GB18030 -t UTF-8`"),
        (b'{"id": "a", "x": NaN}', "NaN is not a number"),
        (b'{"id": "a", "text": "\\ud83d x"}', "lone surrogate"),
        (b'{"id": "\\uDC00"}', "lone surrogate"),
        (b'{"id": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"id": "a", "x": ' + b"[" * 500 + b"]" * 500 + b"}", "nested too deeply"),
        (b'{"id": "a", "x": ' + b'{"x":' * 500 + b"1" + b"}" * 500 + b"}", "nested too deeply"),
    ],
)
def test_invalid_lines_do_not_stop_reading(tmp_path: Path, line: bytes, reason: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line + b'\n{"id": "good", "text": "\\ud83d\\ude00"}\n')
    bad, good = read(path)
    assert isinstance(bad, ArticleRejected)
    assert bad.article.startswith(f"{path}:1")
    assert reason in bad.reason
    assert isinstance(good, FileArticle)
    assert good.article["text"] == "😀"


def test_an_id_from_a_standard_field_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"url": "http://a.example/1", "nr": 7, "text": "x"}\n')
    (by_url,) = read_articles([path], id_field="url")
    (by_number,) = read_articles([path], id_field="nr")
    assert isinstance(by_url, FileArticle)
    assert isinstance(by_number, FileArticle)
    assert by_url.article == {"url": "http://a.example/1", "nr": 7, "text": "x"}
    assert by_number.article == {"url": "http://a.example/1", "text": "x"}


def test_rejected_articles_are_not_kept_in_memory(tmp_path: Path) -> None:
    """Neither a rejection nor the buffer that is used before the first article keeps the text."""
    path = tmp_path / "a.gz"
    bad = b'{"id": "a", "text": "' + b"x" * 1_000_000 + b"\n"
    bad += b'{"text": "' + b"x" * 1_000_000 + b'"}\n'
    path.write_bytes(gzip.compress(b'{"id": "a", "text": "x"}\n' + bad * 20))
    tracemalloc.start()
    try:
        read = list(read_articles([path]))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(isinstance(each, ArticleRejected) for each in read) == 40
    assert peak_bytes < 15_000_000


def test_repeated_ids_are_rejected(tmp_path: Path) -> None:
    one, two = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    one.write_text('{"id": "a"}\n{"id": "b"}\n')
    two.write_text('{"id": "c"}\n{"id": "a"}\n')
    lines = list(read_articles([one, two], fields=FIELDS))
    assert [getattr(line, "id", None) for line in lines] == ["a", "b", "c", None]
    assert str(lines[3]) == f"{two}:2: repeats the id 'a' of an earlier article"
    assert sum(isinstance(line, ArticleRejected) for line in read_articles([one, one], fields=FIELDS)) == 2


def test_gzip_and_standard_input_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b'{"id": "a"}\n{"id": "b"}\n'
    path = tmp_path / "without-an-ending"
    path.write_bytes(gzip.compress(content))
    assert [line.id for line in read(path) if isinstance(line, FileArticle)] == ["a", "b"]
    for stream in (content, gzip.compress(content)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stream)))
        assert [line.id for line in read(STANDARD_INPUT) if isinstance(line, FileArticle)] == ["a", "b"]


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_articles_before_damaged_gzip_data_are_read(tmp_path: Path, damage: str) -> None:
    import random

    noise = random.Random(1)
    content = b"".join(b'{"id": "%d", "x": "%x"}\n' % (n, noise.getrandbits(256)) for n in range(5_000))
    packed = bytearray(gzip.compress(content))
    if damage == "cut":
        del packed[len(packed) // 2 :]
    else:
        packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / "a.gz"
    path.write_bytes(packed)
    *good, bad = read(path)
    assert isinstance(bad, ArticleRejected)
    assert "cannot be read from here on" in bad.reason or "is not JSON" in bad.reason
    assert sum(isinstance(line, FileArticle) for line in good) > 1_000


def test_progress_is_reported_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "a"}\n' * 10_000))
    counts: list[int] = []
    assert len(list(read_articles([path], fields=FIELDS, on_bytes=counts.append))) == 10_000
    assert sum(counts) == path.stat().st_size == total_bytes([path])
    assert total_bytes([path, STANDARD_INPUT]) is None


def test_files_that_cannot_be_opened_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="No such file"):
        check_readable([tmp_path / "none"])
    with pytest.raises(SettingError, match="directory"):
        check_readable([tmp_path])
    with pytest.raises(SettingError, match="only once"):
        check_readable([STANDARD_INPUT, STANDARD_INPUT])


def found_in(path: Path, articles: list[dict[str, Any]], fields: Fields | None = None) -> FieldsNotFound:
    path.write_text("".join(json.dumps(article) + "\n" for article in articles))
    with pytest.raises(FieldsNotFound) as caught:
        list(read_articles([path], fields=fields))
    return caught.value


def test_likely_fields_are_suggested(tmp_path: Path) -> None:
    article = {"GUID": "g", "Headline": "h", "article_body": "b", "pubDate": "2026-01-01", "url": "u"}
    error = found_in(tmp_path / "a", [article | {"meta": {"site": "s"}}] * 200)
    assert error.missing == {"text": "text", "id": "id"}
    assert error.likely == {
        "text": "article_body",
        "id": "GUID",
        "title": "Headline",
        "time": "pubDate",
        "source": "meta.site",
    }
    assert error.articles == 100
    assert "no field 'id', judging by the first 100; their fields are 'GUID', 'Headline'" in str(error)
    assert list(advice(error)) == [
        "name the fields: --text-field article_body --id-field GUID",
        "if the command has these options, also: --title-field Headline --time-field pubDate "
        "--source-field meta.site",
    ]


def test_the_text_field_is_guessed_by_length(tmp_path: Path) -> None:
    error = found_in(tmp_path / "a", [{"link": "x", "a\x1bb": "long" * 20, "n": 1}])
    assert error.likely == {"text": "a\x1bb", "id": "link"}
    assert "\x1b" not in str(error)
    error = found_in(tmp_path / "b", [{"id": "1", "n": 1, "text": None}])
    assert (error.missing, error.likely) == ({"text": "text"}, {})
    # A list of objects cannot be the text field.
    error = found_in(tmp_path / "c", [{"id": "1", "content": [{"body": "long"}], "story": ["a", "b"]}])
    assert error.likely == {}
    error = found_in(tmp_path / "d", [{"id": "1", "content": [{"body": "long"}], "body": ["a", "b"]}])
    assert error.likely == {"text": "body"}
    error = found_in(
        tmp_path / "e", [{"id": "1", "content": [{"body": "long"}]}], Fields(text="content.body")
    )
    assert error.lists == ("content",)
    assert "'content.body', judging by the first 1, since 'content' is a list, not an object" in str(error)


def test_rejections_do_not_wait_for_the_first_article() -> None:
    def records() -> Iterator[FileRecord | ArticleRejected]:
        yield ArticleRejected("f:1", "is not JSON")
        pytest.fail("the first rejection is held back")

    first = next(check_fields(records(), Fields(), id_field="id"))
    assert str(first) == "f:1: is not JSON"


def test_the_first_article_with_the_fields_may_come_late(tmp_path: Path) -> None:
    path = tmp_path / "a"
    lines = ["nonsense", *['{"id": "1"}'] * 50, '{"id": "2", "text": "t"}']
    path.write_text("\n".join(lines))
    read = list(read_articles([path]))
    assert [each.id for each in read if isinstance(each, FileArticle)] == ["1", "2"]
    assert len(read) == len(lines)


def test_only_the_latest_ids_are_remembered() -> None:
    seen = SeenIds(generation=40, unsorted=7)
    for number in range(1_000):
        assert seen.add(str(number))
        assert not seen.add(str(max(0, number - 40)))
    assert seen.add("0")


def test_a_seen_id_takes_less_than_16_bytes() -> None:
    count = 20_000
    tracemalloc.start()
    try:
        seen = SeenIds(unsorted=2_000)
        before, _ = tracemalloc.get_traced_memory()
        for number in range(count):
            seen.add(f"https://example.com/articles/{number}")
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / count < 16


VALUES = st.recursive(
    st.none() | st.integers() | st.text('a"\\[]{},\n é😀', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('a"]}', max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def records_of(path: Path, content: bytes) -> list[FileRecord | ArticleRejected]:
    path.write_bytes(content)
    return list(read_records(path, on_bytes=lambda _: None))


def fields(found: list[FileRecord | ArticleRejected]) -> list[object]:
    return [each.fields if isinstance(each, FileRecord) else each.reason for each in found]


def places(found: list[FileRecord | ArticleRejected]) -> list[int]:
    names = (each.place if isinstance(each, FileRecord) else each.article for each in found)
    return [int(name.rpartition(":")[2]) for name in names]


ENVELOPED = {"status": "ok", "totalResults": 2, "articles": [{"id": "a[1]"}, {"id": "b"}]}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("last", [{}, {"next": "a }, {"}])
def test_articles_in_an_object_are_read(tmp_path: Path, indent: int | None, last: dict[str, str]) -> None:
    content = json.dumps(ENVELOPED | last, indent=indent).encode()
    for end in (b"", b"\n"):
        assert fields(records_of(tmp_path / "news.json", content + end)) == ENVELOPED["articles"]
    (truncated,) = fields(records_of(tmp_path / "news.json", content[: content.index(b"b")]))[1:2]
    assert "not JSON" in str(truncated)


def test_objects_over_several_lines_are_no_articles(tmp_path: Path) -> None:
    article = json.dumps({"id": "a", "articles": 3}, indent=2).encode()
    found = fields(records_of(tmp_path / "news.json", article))
    assert len(found) == article.count(b"\n") + 1
    assert all("not JSON" in str(each) for each in found)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PAR1" + bytes(100), "cannot be read from here on: Parquet magic bytes not found in footer"),
        (gzip.compress(b"PAR1" + bytes(100)), "is a Parquet file, but compressed or from a pipe"),
        (b"PK\x03\x04" + bytes(100), "is a ZIP archive or a workbook: unpack it"),
        (lzma.compress(lzma.compress(b'{"id": 1}')), "is compressed twice: unpack it"),
        (lzma.compress(b'{"id": 1}')[:-4], "cannot be read from here on"),
        (b"\x28\xb5\x2f\xfd" + bytes(100), "cannot be read from here on"),
        (zstd.compress(b'{"id": 1}')[:-4], "cannot be read from here on"),
        (bz2.compress(gzip.compress(b'{"id": 1}')), "is compressed twice: unpack it"),
        (gzip.compress(gzip.compress(b'{"id": 1}')), "is compressed twice: unpack it"),
        (bz2.compress(b'{"id": 1}')[:-4], "cannot be read from here on"),
        (b"BZh9 is no header", "cannot be read from here on: Invalid data stream"),
        ('{"id": 1}'.encode("utf-16"), "is UTF-16, like the rest of the file"),
        (b"\0" * 50, "is not JSON"),
    ],
    ids=[
        *("parquet", "gzip of parquet", "zip", "xz of xz", "cut xz", "zstd", "cut zstd"),
        *("bzip2 of gzip", "gzip of gzip", "cut", "wrong", "UTF-16", "NUL"),
    ],
)
def test_other_formats_are_refused_with_the_remedy(tmp_path: Path, content: bytes, reason: str) -> None:
    *_, refused = records_of(tmp_path / "news", content)
    assert isinstance(refused, ArticleRejected)
    assert reason in str(refused)


@pytest.mark.parametrize("compress", [bz2.compress, lzma.compress, zstd.compress])
def test_compression_is_recognised_by_its_content(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    packed = compress(b'{"id": "a"}\n') + compress(b"\n" * 1_000_000 + b'{"id": "b"}')
    assert fields(records_of(tmp_path / "news", packed)) == [{"id": "a"}, {"id": "b"}]
    assert records_of(tmp_path / "news", b"") == []


@pytest.mark.parametrize("compress", [bz2.compress, lzma.compress, zstd.compress])
def test_a_bomb_is_refused_after_its_articles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(records, "_PLAUSIBLE_BYTES", 1 << 20)
    bomb = compress(b'{"id": "a"}\n' + b" " * 4_000_000)
    first, refused = fields(records_of(tmp_path / "news", bomb))
    assert first == {"id": "a"}
    assert refused == "cannot be read from here on: it unpacks to more than 1,000 times its size"


def test_a_csv_file_with_a_million_columns_is_refused(tmp_path: Path) -> None:
    names = ",".join(f"column {number}" for number in range(1_000_000))
    found = records_of(tmp_path / "a.csv", f"{names}\n1,2\n3,4\n".encode())
    assert fields(found) == ["is a CSV header longer than 100,000 bytes"]
    names = ",".join(["a"] * 40_000)
    (row,) = fields(records_of(tmp_path / "b.csv", f"id,{names}\n{names},x\n".encode()))
    assert len(row) == 40_001  # type: ignore[arg-type]


def test_a_text_in_a_list_of_objects_is_rejected() -> None:
    with pytest.raises(
        ArticleRejected, match=r"no field 'body\.text', since 'body' is a list, not an object"
    ):
        text_of({"body": [{"text": "a"}]}, Fields(text="body.text"), name="a")


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    ("before", "between", "after"),
    [
        (b'{"id": "a"}', b'{"id": "b"}', b""),
        (b"id,x\na,1", b'"b","1\n\n\n2"', b""),
        (b'[{"id": "a"},', b'{"id": "b"}', b"]"),
    ],
    ids=["lines", "csv", "array"],
)
def test_a_million_empty_lines_are_skipped_in_few_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes, between: bytes, after: bytes, end: bytes
) -> None:
    read, read_one_by_one = records.NumberedLines.read, 0

    def counted(lines: records.NumberedLines, *most: int) -> bytes:
        nonlocal read_one_by_one
        read_one_by_one += 1
        return read(lines, *most)

    monkeypatch.setattr(records.NumberedLines, "read", counted)
    many = end * 1_000_000
    found = records_of(tmp_path / "a", gzip.compress(many + before + many + between + many + after, 1))
    assert [each["id"] for each in fields(found)] == ["a", "b"]  # type: ignore[index]
    extra = before.count(b"\n")
    assert places(found) == [1_000_001 + extra, 2_000_001 + extra]
    assert fields(found)[1].get("x") in (None, "1\n\n\n2")  # type: ignore[attr-defined]
    assert read_one_by_one < 3_000


@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    articles=st.lists(st.dictionaries(st.text('a"]}', max_size=3), VALUES, max_size=3), max_size=5),
    indent=st.sampled_from([None, 0, 2]),
    piece_bytes=st.integers(1, 40),
)
def test_an_array_is_split_into_its_elements(
    tmp_path: Path, articles: list[object], indent: int | None, piece_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("esdedup.ingest.records.NumberedLines.read.__defaults__", (piece_bytes,))
        content = json.dumps(articles, indent=indent, ensure_ascii=False).encode()
        assert fields(records_of(tmp_path / "a.json", content)) == articles


def test_errors_in_an_array_reject_single_elements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"""\xef\xbb\xbf
    [
      {"id": 1}, 5,
      {"id": 2, "x": NaN},

      {"id":
        3}, ] tail
    {"id": 4}
    """
    found = records_of(tmp_path / "a.json", content)
    assert places(found) == [3, 3, 4, 6, 7, 8]
    assert fields(found) == [
        {"id": 1},
        "is JSON, but not an object",
        "is not JSON: NaN is not a number",
        {"id": 3},
        "is not JSON: Expecting value at character 1",
        {"id": 4},
    ]
    found = records_of(tmp_path / "b.json", b'[{"id": 1},\n{"id": 2}')
    assert fields(found) == [{"id": 1}, {"id": 2}, "cannot be read from here on: the JSON array has no end"]
    # This line is longer than an article may be, but its article is not.
    monkeypatch.setattr("esdedup.ingest.records.MAX_ARTICLE_BYTES", 20)
    assert fields(records_of(tmp_path / "c.json", b" " * 20 + b'[{"id": 1}]')) == [{"id": 1}]


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
def test_a_file_in_another_encoding_is_one_rejection(
    tmp_path: Path, content: str, encoding: str, named: str, pack: Callable[[bytes], bytes]
) -> None:
    found = records_of(tmp_path / "a", pack(content.encode(encoding)))
    assert places(found) == [1]
    assert f"is {named}, like the rest of the file: convert it to UTF-8" in str(fields(found)[0])


def test_csv_rows_are_read_or_rejected(tmp_path: Path) -> None:
    content = 'id;"body text";date\r\n1;"two\r\nlines; ""quoted""";\r\n\r\n2;x\r\n3;é;2026-01-01\r\n'
    found = records_of(tmp_path / "a.csv", content.encode("utf-8-sig"))
    assert places(found) == [2, 5, 6]
    assert fields(found) == [
        {"id": "1", "body text": 'two\r\nlines; "quoted"'},
        "has 2 cells, but the first line names 3 fields",
        {"id": "3", "body text": "é", "date": "2026-01-01"},
    ]
    found = records_of(tmp_path / "b.csv", b"id\ttext\n1\t\xff\n2\tx")
    assert fields(found) == [
        "is not UTF-8; if the file is in GBK, convert it: `iconv -f GB18030 -t UTF-8`",
        {"id": "2", "text": "x"},
    ]


@pytest.mark.parametrize("line", [b"nonsense", b"1,2,3", b'{"id": 1, "x"', b"a,a", b"a,", b'"a,b', b"[x, y]"])
def test_a_damaged_first_line_is_not_a_header(tmp_path: Path, line: bytes) -> None:
    bad, good = fields(records_of(tmp_path / "a", line + b'\n{"id": 2}\n'))
    assert "is not JSON" in str(bad)
    assert good == {"id": 2}


def test_unnamed_columns_are_dropped_and_duplicates_numbered(tmp_path: Path) -> None:
    found = records_of(tmp_path / "a.csv", b",id,text,source,source,\n0,a,t,x,y,\n")
    assert fields(found) == [{"id": "a", "text": "t", "source": "x", "source_2": "y"}]
    found = records_of(tmp_path / "b.csv", b"id,a,a,a_2\n1,x,y,z\n")
    assert fields(found) == [{"id": "1", "a": "x", "a_3": "y", "a_2": "z"}]


@pytest.mark.parametrize("form", ["lines", "array", "csv"])
def test_an_article_that_is_too_long_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """The whole article is never in memory, whether compressed or decompressed."""
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


def test_stray_quotes_affect_only_their_own_rows(tmp_path: Path) -> None:
    for name, delimiter in (("a.csv", ","), ("b.tsv", "\t")):
        lines = ["id,text,source"] + [f"{n},A story,wire" for n in range(40)]
        lines[3] = '2,"We will win,wire'
        lines[9] = '8,Called "Swan,wire'
        lines[19] = '18,"Never" again,wire'
        lines[29] = '28,"Never again,wire'
        lines[30] = '29,"A story, well told",wire'
        content = "\n".join(lines).replace(",", delimiter).encode()
        found = records_of(tmp_path / name, content)
        bad = [each.article for each in found if isinstance(each, ArticleRejected)]
        assert bad == [f"{tmp_path / name}:{number}" for number in (4, 20, 30)]
        assert len(found) == 40


def test_an_unterminated_text_of_several_lines_is_rejected(tmp_path: Path) -> None:
    begun = b'"id","text"\n"1","x"\n"2","Two lines,\nof text"\n'
    found = records_of(tmp_path / "a.csv", begun + b'"3","One line.\n\nAnother, of\nwhich the e')
    assert fields(found)[2:] == ["is not CSV (to line 8): a quote is not closed"]
    assert places(found) == [2, 3, 5]
    found = records_of(tmp_path / "b.csv", begun + b'"3","One line.\nNo quote\n"4","x"\n')
    assert fields(found)[2:] == [
        "is not CSV (to line 6): a quote is closed in the middle of a cell",
        {"id": "4", "text": "x"},
    ]


def test_a_quote_closed_in_another_row_is_rejected(tmp_path: Path) -> None:
    rows = b'1\t"Never.\tx\n2\tt\tx\n3\tSwan"\tx\n4\tt\tx\n'
    found = records_of(tmp_path / "a.tsv", b"id\ttext\tsource\n" + rows)
    assert fields(found)[0] == "is not CSV: has a quote that is closed in another row"
    assert fields(found)[2:] == [
        {"id": f"{n}", "text": t, "source": "x"} for n, t in ((3, 'Swan"'), (4, "t"))
    ]


def test_no_line_is_reread_more_than_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number_read, read_line = 0, csv_rows._Row.__next__

    def counted(row: csv_rows._Row) -> str:
        nonlocal number_read
        number_read += 1
        return read_line(row)

    monkeypatch.setattr(csv_rows._Row, "__next__", counted)
    found = records_of(tmp_path / "a.csv", b"id,text\n" + b'1,"x\n2,y\n3,y\n""\n' * 500)
    assert sum(isinstance(each, FileRecord) for each in found) == 1_000
    assert number_read < 2 * 4 * 500 + 10


def test_an_unclosed_quote_does_not_swallow_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_ARTICLE_BYTES", 1_000)
    rows = "".join(f"{n},text\n" for n in range(1_000))
    bad, *good = records_of(tmp_path / "a.csv", f'id,text\nx,"text\n{rows}'.encode())
    assert isinstance(bad, ArticleRejected)
    assert "is a quote missing?" in bad.reason
    assert len(good) > 800
