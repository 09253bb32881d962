"""Looks at the first articles: if none has a text or an id, its fields have other names."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from esdedup.ingest.records import Record

from esdedup.errors import ArticleRejected, FieldsNotFound
from esdedup.fields import Fields, value_of

# Articles that are looked at until one has a text and an id; they are in memory together.
_MOST_ARTICLES = 100
_MOST_BYTES = 40_000_000
_MOST_NAMES = 200
_ID = "id"
# What fields are called elsewhere, the most telling names first, without what is not a letter.
_USUAL_NAMES = {
    "text": "text body content fulltext articlebody maintext bodytext articletext rawtext 正文 内容",
    _ID: "id uuid guid docid documentid articleid newsid itemid key no link url",
    "title": "title headline heading name subject 标题",
    "time": "publishedat published publishdate publishedon datepublished pubdate publicationdate date "
    "datetime time timestamp createdat created 时间 日期",
    "source": "source publisher sourcename outlet site website domain feed media 来源",
    "link": "url link href permalink weburl sourceurl canonicalurl articleurl",
}
_NO_LETTER = re.compile(r"[\W_]+")


def check_fields(
    records: Iterator[Record | ArticleRejected], fields: Fields, *, id_field: str
) -> Iterator[Record | ArticleRejected]:
    """Yield what is given, after a look at the first articles; rejections do not wait for it.

    Raises:
        FieldsNotFound: None of them has a text, or none has an id.
    """
    head: list[Record] = []
    size_bytes = 0
    missing = {"text": fields.text, _ID: id_field}
    for record in records:
        if isinstance(record, ArticleRejected):
            yield record
            continue
        head.append(record)
        size_bytes += record.size_bytes
        missing = {role: name for role, name in missing.items() if not _has(record.fields, role, name)}
        if not missing or len(head) == _MOST_ARTICLES or size_bytes > _MOST_BYTES:
            break
    if missing and head:
        raise _not_found([record.fields for record in head], missing, fields, id_field)
    yield from head
    head.clear()
    yield from records


def _has(article: Mapping[str, Any], role: str, name: str) -> bool:
    # An id is at the top level, since it is taken out of the article.
    return (article.get(name) if role == _ID else value_of(article, name)) is not None


def _not_found(
    articles: list[Mapping[str, Any]], missing: dict[str, str], fields: Fields, id_field: str
) -> FieldsNotFound:
    found = list(dict.fromkeys(name for article in articles for name in _names(article)))[:_MOST_NAMES]
    given = {_ID: id_field, "text": fields.text, "title": fields.title, "time": fields.time}
    given |= {"source": fields.source, "link": fields.link}
    taken = {name for name in given.values() if name in found}
    likely: dict[str, str] = {}
    for role, usual in _USUAL_NAMES.items():
        if given[role] in found and role not in missing:
            continue
        candidates = _called(usual.split(), found)
        if role == "text":
            candidates += _longest(articles, found)
        name = next((name for name in candidates if name not in taken), None)
        if name is not None:
            taken.add(name)
            likely[role] = name
    return FieldsNotFound(missing=missing, found=found, likely=likely, articles=len(articles))


def _names(article: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the names of fields; of objects at the top level, those of their fields."""
    for name, value in article.items():
        if isinstance(value, Mapping) and not prefix:
            yield from _names(value, f"{name}.")
        elif value is not None:
            yield f"{prefix}{name}"


def _called(usual: Iterable[str], found: list[str]) -> list[str]:
    """Return the fields with these names, compared without case and separators."""
    bare = {name: _NO_LETTER.sub("", name.rpartition(".")[2]).casefold() for name in found}
    return [name for each in usual for name in found if bare[name] == each]


def _longest(articles: list[Mapping[str, Any]], found: list[str]) -> list[str]:
    """Return the field with the longest strings, if there is one."""
    lengths = {
        name: sum(len(text) for article in articles if isinstance(text := value_of(article, name), str))
        for name in found
    }
    longest = max(lengths, key=lengths.__getitem__, default=None)
    return [longest] if longest is not None and lengths[longest] else []
