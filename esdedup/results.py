"""What queries answer."""

from typing import Any

import pydantic


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

    interval_ms: int
    # Without gaps, from the first article's on; none where no article has a time.
    moments: list[Moment]
