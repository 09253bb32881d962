"""Files of articles: each is read, or rejected with its place; other names of fields, repeated ids."""

import gzip
import io
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from esdedup.ingest.files import FileArticle, SeenIds, check_fields, read_articles
from esdedup.ingest.records import STANDARD_INPUT, Record, check_readable, total_bytes

from esdedup import ArticleRejected, Fields, FieldsNotFound, SettingError
from esdedup.cli.advice import advice

# Most articles here have an id and no text.
FIELDS = Fields(text="id")


def read(path: Path) -> list[FileArticle | ArticleRejected]:
    return list(read_articles([path], fields=FIELDS))


def test_lines_and_places(tmp_path: Path) -> None:
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
        (b'{"id": "a", "text": "\xff"}', "not UTF-8"),
        (b'{"id": "a", "x": NaN}', "NaN is not a number"),
        (b'{"id": "a", "text": "\\ud83d x"}', "lone surrogate"),
        (b'{"id": "\\uDC00"}', "lone surrogate"),
        (b'{"id": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"id": "a", "x": ' + b"[" * 500 + b"]" * 500 + b"}", "nested too deeply"),
        (b'{"id": "a", "x": ' + b'{"x":' * 500 + b"1" + b"}" * 500 + b"}", "nested too deeply"),
    ],
)
def test_bad_lines_do_not_stop_the_rest(tmp_path: Path, line: bytes, reason: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line + b'\n{"id": "good", "text": "\\ud83d\\ude00"}\n')
    bad, good = read(path)
    assert isinstance(bad, ArticleRejected)
    assert bad.article.startswith(f"{path}:1")
    assert reason in bad.reason
    assert isinstance(good, FileArticle)
    assert good.article["text"] == "😀"


def test_an_id_stays_in_the_article_if_it_is_another_field_too(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"url": "http://a.example/1", "nr": 7, "text": "x"}\n')
    (by_url,) = read_articles([path], id_field="url")
    (by_number,) = read_articles([path], id_field="nr")
    assert isinstance(by_url, FileArticle)
    assert isinstance(by_number, FileArticle)
    assert by_url.article == {"url": "http://a.example/1", "nr": 7, "text": "x"}
    assert by_number.article == {"url": "http://a.example/1", "text": "x"}


def test_what_is_rejected_does_not_stay_in_memory(tmp_path: Path) -> None:
    """Neither by the rejections, nor while the first article is awaited."""
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


def test_an_id_that_comes_again(tmp_path: Path) -> None:
    one, two = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    one.write_text('{"id": "a"}\n{"id": "b"}\n')
    two.write_text('{"id": "c"}\n{"id": "a"}\n')
    lines = list(read_articles([one, two], fields=FIELDS))
    assert [getattr(line, "id", None) for line in lines] == ["a", "b", "c", None]
    assert str(lines[3]) == f"{two}:2: repeats the id 'a' of an earlier article"
    assert sum(isinstance(line, ArticleRejected) for line in read_articles([one, one], fields=FIELDS)) == 2


def test_gzip_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b'{"id": "a"}\n{"id": "b"}\n'
    path = tmp_path / "without-an-ending"
    path.write_bytes(gzip.compress(content))
    assert [line.id for line in read(path) if isinstance(line, FileArticle)] == ["a", "b"]
    for stream in (content, gzip.compress(content)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stream)))
        assert [line.id for line in read(STANDARD_INPUT) if isinstance(line, FileArticle)] == ["a", "b"]


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_damaged_gzip_keeps_what_came_before(tmp_path: Path, damage: str) -> None:
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


def test_bytes_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "a"}\n' * 10_000))
    counts: list[int] = []
    assert len(list(read_articles([path], fields=FIELDS, on_bytes=counts.append))) == 10_000
    assert sum(counts) == path.stat().st_size == total_bytes([path])
    assert total_bytes([path, STANDARD_INPUT]) is None


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="No such file"):
        check_readable([tmp_path / "none"])
    with pytest.raises(SettingError, match="directory"):
        check_readable([tmp_path])
    with pytest.raises(SettingError, match="only once"):
        check_readable([STANDARD_INPUT, STANDARD_INPUT])


def found_in(path: Path, articles: list[dict[str, Any]]) -> FieldsNotFound:
    path.write_text("".join(json.dumps(article) + "\n" for article in articles))
    with pytest.raises(FieldsNotFound) as caught:
        list(read_articles([path]))
    return caught.value


def test_likely_fields_are_named(tmp_path: Path) -> None:
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
    assert "no field 'id', as far as the first 100 show; they have 'GUID', 'Headline'" in str(error)
    assert list(advice(error)) == [
        "name the fields: --text-field article_body --id-field GUID",
        "where a command takes them, also: --title-field Headline --time-field pubDate "
        "--source-field meta.site",
    ]


def test_a_text_is_guessed_by_its_length_and_no_field_twice(tmp_path: Path) -> None:
    error = found_in(tmp_path / "a", [{"link": "x", "a\x1bb": "long" * 20, "n": 1}])
    assert error.likely == {"text": "a\x1bb", "id": "link"}
    assert "\x1b" not in str(error)
    error = found_in(tmp_path / "b", [{"id": "1", "n": 1, "text": None}])
    assert (error.missing, error.likely) == ({"text": "text"}, {})


def test_rejections_do_not_wait_for_the_first_article() -> None:
    def records() -> Iterator[Record | ArticleRejected]:
        yield ArticleRejected("f:1", "is not JSON")
        pytest.fail("the first rejection is held back")

    first = next(check_fields(records(), Fields(), id_field="id"))
    assert str(first) == "f:1: is not JSON"


def test_one_article_with_the_fields_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "a"
    lines = ["nonsense", *['{"id": "1"}'] * 50, '{"id": "2", "text": "t"}']
    path.write_text("\n".join(lines))
    read = list(read_articles([path]))
    assert [each.id for each in read if isinstance(each, FileArticle)] == ["1", "2"]
    assert len(read) == len(lines)


def test_the_latest_ids_are_known() -> None:
    seen = SeenIds(generation=40, unsorted=7)
    for number in range(1_000):
        assert seen.add(str(number))
        assert not seen.add(str(max(0, number - 40)))
    assert seen.add("0")


def test_an_id_takes_some_bytes_only() -> None:
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
