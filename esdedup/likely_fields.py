"""Guesses field names for articles without the given fields."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from esdedup.errors import FieldsNotFound
from esdedup.fields import Fields, as_text, list_above, value_of

_MOST_NAMES = 200
# Field names in other systems, the most specific first, in lower case without separators.
_USUAL_NAMES = {
    "text": "text body content fulltext articlebody maintext bodytext articletext rawtext 正文 内容",
    "id": "id uuid guid docid documentid articleid newsid itemid key no link url",
    "title": "title headline heading name subject 标题",
    "time": "publishedat published publishdate publishedon datepublished pubdate publicationdate date "
    "datetime time timestamp createdat created 时间 日期",
    "source": "source publisher sourcename outlet site website domain feed media medium 来源",
    "link": "url link href permalink weburl sourceurl canonicalurl articleurl web",
}
_NO_LETTER = re.compile(r"[\W_]+")


def fields_not_found(
    articles: list[Mapping[str, Any]], missing: dict[str, str], fields: Fields, id_field: str
) -> FieldsNotFound:
    """Return the error for fields that no article has; `missing` are their names by role."""
    found = list(dict.fromkeys(name for article in articles for name in _names(article)))[:_MOST_NAMES]
    given = {"id": id_field, "text": fields.text, "title": fields.title, "time": fields.time}
    given |= {"source": fields.source, "link": fields.link}
    taken = {name for name in given.values() if name in found}
    bare = {name: _NO_LETTER.sub("", name.rpartition(".")[2]).casefold() for name in found}
    likely: dict[str, str] = {}
    for role, usual in _USUAL_NAMES.items():
        if given[role] in found and role not in missing:
            continue
        # Names are compared without case and separators.
        candidates = [name for each in usual.split() for name in found if bare[name] == each]
        if role == "text":
            texts = {name for name in found if any(as_text(value_of(each, name)) for each in articles)}
            candidates = [name for name in candidates if name in texts] + _longest(articles, found)
        name = next((name for name in candidates if name not in taken), None)
        if name is not None:
            taken.add(name)
            likely[role] = name
    above = {list_above(article, name) for article in articles for name in missing.values()}
    return FieldsNotFound(
        missing=missing, found=found, likely=likely, articles=len(articles), lists=sorted(filter(None, above))
    )


def _names(article: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the names of fields, including fields inside top-level objects."""
    for name, value in article.items():
        if isinstance(value, Mapping) and not prefix:
            yield from _names(value, f"{name}.")
        elif value is not None:
            yield f"{prefix}{name}"


def _longest(articles: list[Mapping[str, Any]], found: list[str]) -> list[str]:
    lengths = {
        name: sum(len(text) for article in articles if isinstance(text := value_of(article, name), str))
        for name in found
    }
    longest = max(lengths, key=lengths.__getitem__, default=None)
    return [longest] if longest is not None and lengths[longest] else []
