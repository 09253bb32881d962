"""Articles whose fields have other names are told once, with the names that they have."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from esdedup.ingest.files import FileArticle, check_fields, read_articles
from esdedup.ingest.records import Record

from esdedup import ArticleRejected, Fields, FieldsNotFound
from esdedup.cli.advice import advice


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
