"""`cluster`: clusters articles in memory, without Elasticsearch."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import Any

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.errors import ArticleRejected, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint import WORKERS
from esdedup.fingerprint.profile import DEFAULT, Profile, get_profile
from esdedup.ingest.cluster import ClusteredArticle, Clustering
from esdedup.ingest.enricher import OnRejected, log_rejected
from esdedup.ingest.files import ReadArticle, articles_of
from esdedup.ingest.json_values import size_of
from esdedup.ingest.records import FileRecord


def cluster(
    articles: Iterable[Mapping[str, Any]],
    *,
    profile: Profile | str = DEFAULT,
    fields: Fields | None = None,
    id_field: str = "id",
    retention: timedelta | None = None,
    state: str | PathLike[str] | None = None,
    overrides: Overrides = NO_OVERRIDES,
    on_rejected: OnRejected = log_rejected,
    workers: int = WORKERS,
) -> Iterator[ClusteredArticle]:
    """Yield each article's cluster, in the order of the articles, lazily, in batches of 1,000.

    Args:
        articles: The articles. A frame of pandas or polars, a table or dataset of pyarrow, or a data set of
            Hugging Face is read row by row.
        profile: How texts are fingerprinted, or the name of a standard profile.
        fields: The names of the articles' fields; None uses the default names.
        id_field: The field with an article's id, a string or a whole number. An article without an id is
            named by its position: #1, #2 and so on.
        retention: How long a cluster accepts articles after its latest one, by the articles' times. None
            ignores their times, and nothing expires.
        state: A file from which earlier clusters are continued, and which is replaced once all articles have
            been yielded. If it does not exist, it is created.
        overrides: Passages declared boilerplate or text.
        on_rejected: Called for each article that is left out because it has no text or an invalid or
            repeated id; the default logs a warning.
        workers: How many threads fingerprint texts, with the same results.

    Raises:
        FieldsNotFound: The first articles all lack the text.
        SettingError: An argument is out of range, or `articles` is not an iterable of mappings.
        StateUnusable: The file is damaged, was made by another version, profile or retention, or cannot be
            written.
    """
    _refuse_others(articles)
    fields = fields or Fields()
    clustering = Clustering(
        profile=get_profile(profile),
        fields=fields,
        use_time=retention is not None,
        retention=retention,
        state=None if state is None else Path(state),
        overrides=overrides,
        on_rejected=on_rejected,
        workers=workers,
    )
    return _saving(clustering, articles_of(_records(articles, id_field), fields=fields, id_field=id_field))


def _saving(clustering: Clustering, articles: Iterator[ReadArticle]) -> Iterator[ClusteredArticle]:
    yield from clustering.cluster(articles)
    clustering.save()


# How many rows of a frame are converted at a time.
_ROWS = 10_000
_REMEDY = "`esdedup cluster FILE` reads files; in Python, pass a frame, or `json.loads` of each line"


def _refuse_others(articles: Any) -> None:
    """Raise `SettingError` for arguments that are often passed instead of articles."""
    if isinstance(articles, str | bytes | PathLike):
        remedy = _REMEDY
    elif isinstance(articles, Mapping):
        remedy = "pass a list of articles, or one split of a data set, such as `dataset['train']`"
    elif hasattr(type(articles), "collect") and not hasattr(articles, "iter_rows"):  # polars, lazily
        remedy = "pass the result of `.collect()`"
    elif not {"__iter__", "__getitem__", "iter_rows", "to_batches"} & {*dir(type(articles))}:
        remedy = "pass a list of articles, or a frame"
    else:
        return
    kind = type(articles).__name__
    raise SettingError(f"the articles must be an iterable of mappings, not {kind}: {remedy}")


def _records(articles: Any, id_field: str) -> Iterator[FileRecord | ArticleRejected]:
    """Yield the rows of a frame or another iterable as articles; rows without an id get their position."""
    if hasattr(articles, "iter_rows"):  # polars
        rows = articles.iter_rows(named=True)
    elif hasattr(articles, "iterrows"):  # pandas; a single column is read as any other iterable
        parts = (articles.iloc[start : start + _ROWS] for start in range(0, len(articles), _ROWS))
        nulls = (part.astype(object).where(part.notna(), None) for part in parts)
        rows = (row for part in nulls for row in part.to_dict("records"))
    elif hasattr(articles, "to_batches"):  # pyarrow
        rows = (row for batch in articles.to_batches() for row in batch.to_pylist())
    else:
        rows = articles
    for number, row in enumerate(rows, 1):
        place = f"article {number}"
        if isinstance(row, Mapping):
            named = {**row, id_field: _id_of(row.get(id_field), number)}
            yield FileRecord(place=place, fields=named, size_bytes=size_of(row))
        elif number == 1 and isinstance(row, str | bytes | PathLike):
            raise SettingError(f"{place} must be a mapping of fields, not {type(row).__name__}: {_REMEDY}")
        else:
            yield ArticleRejected(place, f"must be a mapping of fields, not {type(row).__name__}")


def _id_of(value: Any, number: int) -> Any:
    # Frames turn missing ids into NaN, and then the others into floating-point numbers.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return f"#{number}" if value is None or value != value else value
