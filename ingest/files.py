"""Reads articles from files or standard input, in the formats of `records`."""

import array
import bisect
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from esdedup.ingest.actions import name_of
from esdedup.ingest.batches import BATCH_SIZE, batches
from esdedup.ingest.records import FileRecord, read_records

from esdedup.errors import ArticleRejected
from esdedup.fields import Fields, text_of, value_of
from esdedup.likely_fields import fields_not_found

_UNSORTED = 100_000
_GENERATION = 5_000_000
"""The number of ids (8 bytes each) in each of two generations; the latest 5 to 10 million ids are kept."""
# Limits on the number and total size of the articles that `check_fields` holds in memory.
_MOST_ARTICLES = 100
_MOST_BYTES = 40_000_000
_ID = "id"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileArticle(FileRecord):
    """An article with its id."""

    fields: dict[str, Any] = dataclasses.field(default_factory=dict, compare=False)
    id: str
    # The document. The id's field is removed, unless it is also one of the `Fields`, such as the link.
    article: dict[str, Any]

    @property
    def name(self) -> str:
        """The article's name for messages."""
        return f"{self.place} (id {self.id!r})"


ReadArticle = FileArticle | ArticleRejected
"""An article that was read, or the reason why it could not be read."""


def read_articles(
    paths: Iterable[Path],
    *,
    fields: Fields | None = None,
    id_field: str = "id",
    on_bytes: Callable[[int], None] = lambda _: None,
    all_columns: bool = True,
) -> Iterator[ReadArticle]:
    """Yield the articles of files as `articles_of` does; of Parquet files, perhaps only the named fields."""
    fields = fields or Fields()
    names = [id_field, fields.text, *filter(None, fields.names.values())]
    columns = None if all_columns else [each.partition(".")[0] for each in names] + names
    records = (each for path in paths for each in read_records(path, on_bytes=on_bytes, columns=columns))
    return articles_of(records, fields=fields, id_field=id_field)


def articles_of(
    records: Iterator[FileRecord | ArticleRejected], *, fields: Fields, id_field: str
) -> Iterator[ReadArticle]:
    """Yield the articles of records in order, and a rejection for each unreadable article or repeated id.

    Only the latest ids, at least 5 million, are compared. Raises `FieldsNotFound` as `check_fields` does.
    """
    is_only_id = id_field not in fields.names.values()
    seen = SeenIds()
    for record in check_fields(records, fields, id_field=id_field):
        if isinstance(record, ArticleRejected):
            yield record
            continue
        place, article = record.place, record.fields
        try:
            article_id = name_of(article.get(id_field), "", field=f"id in {id_field!r}")
        except ArticleRejected as rejected:
            yield ArticleRejected(place, rejected.reason)
            continue
        if not article_id:
            yield ArticleRejected(place, f"has no id in the field {id_field!r}")
        elif not seen.add(article_id):
            yield ArticleRejected(place, f"repeats the id {article_id!r} of an earlier article")
        else:
            if is_only_id:
                article = {name: value for name, value in article.items() if name != id_field}
            yield FileArticle(id=article_id, article=article, **vars(record))


def text_batches(
    articles: Iterable[ReadArticle], fields: Fields, on_rejected: Callable[[ArticleRejected], None]
) -> Iterator[list[tuple[FileArticle, str]]]:
    """Yield articles with their texts, in batches; call `on_rejected` for articles without a text."""

    def with_texts() -> Iterator[tuple[FileArticle, str]]:
        for article in articles:
            if isinstance(article, ArticleRejected):
                on_rejected(article)
                continue
            try:
                text = text_of(article.article, fields, name=article.name)
            except ArticleRejected as rejected:
                on_rejected(rejected.bare())
            else:
                yield article, text

    return batches(with_texts(), most=BATCH_SIZE, size_of=lambda each: each[0].size_bytes)


class SeenIds:
    """Remembers the latest ids: at least 5 million, in about 100 MB."""

    def __init__(self, *, generation: int = _GENERATION, unsorted: int = _UNSORTED) -> None:
        """Remember at least `generation` ids; the latest `unsorted` ids take about 70 bytes each."""
        self._generation = generation
        self._unsorted = unsorted
        self._latest: set[int] = set()
        self._sorted = self._older = array.array("q")

    def add(self, article_id: str) -> bool:
        """Remember an id; return whether it is new. Ids with the same 64-bit hash are not distinguished."""
        key = hash(article_id)
        if key in self._latest or _contains(self._sorted, key) or _contains(self._older, key):
            return False
        self._latest.add(key)
        if len(self._latest) >= self._unsorted:
            keys = (np.frombuffer(self._sorted, np.int64), np.fromiter(self._latest, np.int64))
            self._sorted = array.array("q", np.sort(np.concatenate(keys), kind="stable").tobytes())
            self._latest.clear()
            if len(self._sorted) >= self._generation:
                self._older, self._sorted = self._sorted, array.array("q")
        return True


# Bisects a plain array, because numpy takes ten times as long for a single number.
def _contains(keys: "array.array[int]", key: int) -> bool:
    at = bisect.bisect_left(keys, key)
    return at < len(keys) and keys[at] == key


def check_fields(
    records: Iterator[FileRecord | ArticleRejected], fields: Fields, *, id_field: str
) -> Iterator[FileRecord | ArticleRejected]:
    """Yield the records; raise `FieldsNotFound` if the first records all lack a text or an id."""
    head: list[FileRecord] = []
    size_bytes = 0
    missing = {"text": fields.text, _ID: id_field}
    for record in records:
        if isinstance(record, ArticleRejected):
            yield record
            continue
        head.append(record)
        size_bytes += record.size_bytes
        for role, name in list(missing.items()):
            # The id is always at the top level of the article.
            value = record.fields.get(name) if role == _ID else value_of(record.fields, name)
            if value is not None:
                del missing[role]
        if not missing or len(head) == _MOST_ARTICLES or size_bytes > _MOST_BYTES:
            break
    if missing and head:
        raise fields_not_found([record.fields for record in head], missing, fields, id_field)
    yield from head
    head.clear()
    yield from records
