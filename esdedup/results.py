"""What queries answer."""

from typing import Any

import pydantic

_ARTICLE: dict[str, Any] = {
    "id": "en-17-3",
    "index": "news",
    "root": "122c0d63bb65dc118aafa28e66b57fce",
    "title": "Harbour council votes for a second ferry",
    "published_at": "2026-09-07T21:32:00Z",
    "source": "Morning Wire",
    "url": "https://morningwire.example/second-ferry",
}
_ROW = _ARTICLE | {
    "similar": 45,
    "matching": 46,
    "sources": 10,
    "first": "2026-09-06T16:24:00+00:00",
    "last": "2026-09-07T21:32:00+00:00",
}


def _example(**values: Any) -> pydantic.ConfigDict:
    """Show an answer in the description of the API."""
    return pydantic.ConfigDict(json_schema_extra={"examples": [values]})


class Article(pydantic.BaseModel, frozen=True):
    """An article as lists show it: without its text."""

    id: str
    index: str
    # None where it was indexed without esdedup.
    root: str | None
    title: str | None
    published_at: Any = None
    source: Any = None
    url: str | None = None


class Row(Article, frozen=True):
    """A row of the list: the article that stands for its cluster."""

    model_config = _example(**_ROW)

    # How many other articles have the same root, whether they match or not.
    similar: int
    # How many articles of the cluster match the query, this one among them.
    matching: int
    # How many sources the whole cluster has, 1,000 at the most; None where they cannot be counted.
    sources: int | None = None
    # When the first and the last article of the whole cluster were published, ISO 8601, UTC.
    first: str | None = None
    last: str | None = None


class Page(pydantic.BaseModel, frozen=True):
    """A page of the list with dedup."""

    model_config = _example(
        rows=[_ROW],
        total_rows=27,
        total_rows_exact=True,
        total_articles=331,
        order_exact=True,
        page=1,
        size=1,
        sort="similar-desc",
        next="WyJkNDhkOWIyMzA4MWQiLCAyLCAxLCBudWxsXQ",
    )

    rows: list[Row]
    # Rows on all pages.
    total_rows: int
    # Whether `total_rows` is exact, or an estimate.
    total_rows_exact: bool
    # Articles that match, whatever `only` leaves out.
    total_articles: int
    # Whether rows stand in exactly the order asked for.
    order_exact: bool
    # From 1.
    page: int
    size: int
    sort: str
    # The cursor of the next page; None on the last one.
    next: str | None = None


class SimilarArticle(Article, frozen=True):
    """An article of the same cluster as another one."""

    # How much of the wording both share, 0 to 1, as estimated when they were indexed (profile `verified`).
    resemblance: float | None = None
    # In how many of 64 bits their simhashes differ (other profiles).
    distance_bits: int | None = None


class SimilarPage(pydantic.BaseModel, frozen=True):
    """The other articles of a cluster, newest first."""

    model_config = _example(
        root=_ARTICLE["root"],
        total=45,
        articles=[_ARTICLE | {"resemblance": 0.93, "distance_bits": None}],
        page=1,
        size=1,
        next="WyI5ZTJhZDM5ZDk2YzYiLCAyLCAxLCBbMTc4ODc1MzMwMDAwMCwgOTIsICJuZXdzIl1d",
    )

    # None where a text belongs to no cluster yet.
    root: str | None
    # How many there are, on this page or not.
    total: int
    articles: list[SimilarArticle]
    # From 1.
    page: int
    size: int
    # The cursor of the next page; None on the last one.
    next: str | None = None


class Source(pydantic.BaseModel, frozen=True):
    """What one source published of a cluster."""

    # None: articles without a source.
    source: Any
    articles: int
    # When its first and last one were published, ISO 8601, UTC.
    first: str | None
    last: str | None
    # The earliest of them.
    earliest: SimilarArticle


class SourcesPage(pydantic.BaseModel, frozen=True):
    """Which other sources published an article, those with the most articles first."""

    model_config = _example(
        root=_ARTICLE["root"],
        total=45,
        total_sources=10,
        sources=[
            {
                "source": "Morning Wire",
                "articles": 8,
                "first": "2026-09-06T16:30:00+00:00",
                "last": "2026-09-07T21:32:00+00:00",
                "earliest": _ARTICLE | {"resemblance": 0.97, "distance_bits": None},
            }
        ],
        page=1,
        size=1,
    )

    root: str | None
    # Articles and sources on all pages.
    total: int
    total_sources: int
    sources: list[Source]
    # From 1.
    page: int
    size: int


class FullArticle(Article, frozen=True):
    """An article with its text."""

    text: str


class Moment(pydantic.BaseModel, frozen=True):
    """A step of time."""

    # Its beginning, ISO 8601, UTC.
    start: str
    # Articles published in it, and about how many sources they had; None where that cannot be counted.
    articles: int
    sources: int | None


class Spread(pydantic.BaseModel, frozen=True):
    """How a story spread."""

    model_config = _example(
        interval_ms=7_200_000,
        moments=[
            {"start": "2026-09-06T16:24:00+00:00", "articles": 10, "sources": 7},
            {"start": "2026-09-06T18:24:00+00:00", "articles": 5, "sources": 4},
        ],
    )

    interval_ms: int
    # Without gaps, from the first article's on; none where no article has a time.
    moments: list[Moment]
