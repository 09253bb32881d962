"""Articles read from files or standard input: JSON Lines, a JSON array or CSV, plain or gzip."""

import array
import bisect
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from esdedup.ingest.field_check import check_fields
from esdedup.ingest.records import Record, read_records

from esdedup.elastic.limits import MAX_ID_BYTES
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields, text_of

_UNSORTED = 100_000
_GENERATION = 5_000_000
"""Ids in one of two generations, with 8 bytes each; so the latest 5 to 10 million ids are known."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileArticle:
    """An article and where it was read."""

    # As ``FILE:LINE``.
    place: str
    id: str
    # Without its id, unless that is also its address or another of its fields.
    article: dict[str, Any]
    # As it stood in the file.
    size_bytes: int

    @property
    def name(self) -> str:
        """The article's name in messages."""
        return f"{self.place} (id {self.id!r})"


def read_articles(
    paths: Iterable[Path],
    *,
    fields: Fields | None = None,
    id_field: str = "id",
    on_bytes: Callable[[int], None] = lambda _: None,
) -> Iterator[FileArticle | ArticleRejected]:
    """Yield the articles of files in order, and a rejection for each that cannot be read.

    A repeated id is rejected, because one of its two articles would overwrite the other; some millions of
    ids are remembered for this, see `SeenIds`. Empty lines are skipped. If a file fails, or its compressed
    data is cut off, the rest of it is one rejection.

    Args:
        paths: ``-`` is standard input. The format and gzip are recognised by content.
        fields: The names of the articles' fields. Default: those of `Fields`.
        id_field: The field with an article's id, a string or a whole number.
        on_bytes: Called with the number of bytes read from disk since the last call.

    Raises:
        FieldsNotFound: None of the first articles has a text, or none has an id.
    """
    fields = fields or Fields()
    is_only_id = id_field not in dataclasses.asdict(fields).values()
    seen = SeenIds()
    records = (record for path in paths for record in read_records(path, on_bytes=on_bytes))
    for record in check_fields(records, fields, id_field=id_field):
        if isinstance(record, ArticleRejected):
            yield record
            continue
        try:
            article_id = _id_of(record, id_field)
        except ArticleRejected as rejected:
            yield rejected.bare()
            continue
        if seen.add(article_id):
            article = record.fields
            if is_only_id:
                article = {name: value for name, value in article.items() if name != id_field}
            yield FileArticle(
                place=record.place, id=article_id, article=article, size_bytes=record.size_bytes
            )
        else:
            yield ArticleRejected(record.place, f"repeats the id {article_id!r} of an earlier article")


def with_texts(
    articles: Iterable[FileArticle | ArticleRejected],
    fields: Fields,
    on_rejected: Callable[[ArticleRejected], None],
) -> Iterator[tuple[FileArticle, str]]:
    """Yield the articles that have a text, each with it; the others are passed to `on_rejected`."""
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


def _id_of(record: Record, id_field: str) -> str:
    article_id = record.fields.get(id_field)
    if isinstance(article_id, int) and not isinstance(article_id, bool):
        article_id = str(article_id)
    if article_id is None:
        raise ArticleRejected(record.place, f"has no id in the field {id_field!r}")
    if not isinstance(article_id, str) or not article_id:
        raise ArticleRejected(
            record.place, f"its id in {id_field!r} must be a non-empty string or a whole number"
        )
    if len(article_id.encode()) > MAX_ID_BYTES:
        raise ArticleRejected(record.place, f"its id is longer than {MAX_ID_BYTES} bytes")
    return article_id


class SeenIds:
    """Remembers the latest ids: at least 5 million, in some 100 MB."""

    def __init__(self, *, generation: int = _GENERATION, unsorted: int = _UNSORTED) -> None:
        """Remember no id yet.

        Args:
            generation: How many ids are known at least, once so many have come.
            unsorted: So many are kept with some 70 bytes each, before they are sorted in.
        """
        self._generation = generation
        self._unsorted = unsorted
        self._latest: set[int] = set()
        self._sorted = self._older = array.array("q")

    def add(self, article_id: str) -> bool:
        """Remember an id, and return whether it is new. Two ids with one hash of 64 bits count as one."""
        key = hash(article_id)
        if key in self._latest or _contains(self._sorted, key) or _contains(self._older, key):
            return False
        self._latest.add(key)
        if len(self._latest) >= self._unsorted:
            self._sorted = _merged(self._sorted, self._latest)
            self._latest.clear()
            if len(self._sorted) >= self._generation:
                self._older, self._sorted = self._sorted, array.array("q")
        return True


def _merged(keys: "array.array[int]", others: Iterable[int]) -> "array.array[int]":
    both = np.concatenate((np.frombuffer(keys, np.int64), np.fromiter(others, np.int64)))
    both.sort(kind="stable")
    return array.array("q", both.tobytes())


# By bisection of a plain array: numpy takes ten times as long for a single number.
def _contains(keys: "array.array[int]", key: int) -> bool:
    at = bisect.bisect_left(keys, key)
    return at < len(keys) and keys[at] == key
