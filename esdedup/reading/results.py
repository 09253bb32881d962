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


class Answer(pydantic.BaseModel, frozen=True):
    """What is said of a field tells users of the API, too."""

    model_config = pydantic.ConfigDict(use_attribute_docstrings=True)


class Article(Answer, frozen=True):
    """An article as lists show it: without its text."""

    id: str
    index: str
    root: str | None
    """None where it was indexed without esdedup."""
    title: str | None
    published_at: Any = None
    source: Any = None
    url: str | None = None


class Row(Article, frozen=True):
    """A row of the list: the article that stands for its cluster."""

    model_config = _example(**_ROW)

    similar: int
    """How many other articles have the same root, whether they match or not."""
    matching: int
    """How many articles of the cluster match the query, this one among them."""
    sources: int | None = None
    """How many sources the whole cluster has, 1,000 at the most; None where they cannot be counted."""
    first: str | None = None
    """When the first article of the whole cluster was published, ISO 8601, UTC."""
    last: str | None = None
    """When the last one was."""


class Page(Answer, frozen=True):
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
    total_rows: int
    """Rows on all pages."""
    total_rows_exact: bool
    """Whether `total_rows` is exact, or an estimate."""
    total_articles: int
    """Articles that match, whatever `only` leaves out."""
    order_exact: bool
    """Whether rows stand in exactly the order asked for."""
    page: int
    """From 1."""
    size: int
    sort: str
    next: str | None = None
    """The cursor of the next page; None on the last one."""


class SimilarArticle(Article, frozen=True):
    """An article of the same cluster as another one."""

    resemblance: float | None = None
    """How much of the wording both share, 0 to 1, as estimated (profile `verified`)."""
    distance_bits: int | None = None
    """In how many of 64 bits their simhashes differ (other profiles)."""


class SimilarPage(Answer, frozen=True):
    """The other articles of a cluster, newest first."""

    model_config = _example(
        root=_ARTICLE["root"],
        total=45,
        articles=[_ARTICLE | {"resemblance": 0.93, "distance_bits": None}],
        page=1,
        size=1,
        next="WyI5ZTJhZDM5ZDk2YzYiLCAyLCAxLCBbMTc4ODc1MzMwMDAwMCwgOTIsICJuZXdzIl1d",
    )

    root: str | None
    """None where a text belongs to no cluster yet."""
    total: int
    """How many there are, on this page or not."""
    articles: list[SimilarArticle]
    page: int
    """From 1."""
    size: int
    next: str | None = None
    """The cursor of the next page; None on the last one."""


class Source(Answer, frozen=True):
    """What one source published of a cluster."""

    source: Any
    """None: articles without a source."""
    articles: int
    first: str | None
    """When its first and last one were published, ISO 8601, UTC."""
    last: str | None
    earliest: SimilarArticle
    """The earliest of them."""


class SourcesPage(Answer, frozen=True):
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
    total: int
    """Articles and sources on all pages."""
    total_sources: int
    sources: list[Source]
    page: int
    """From 1."""
    size: int


class FullArticle(Article, frozen=True):
    """An article with its text."""

    text: str


class TimelineStep(Answer, frozen=True):
    """A step of time."""

    start: str
    """Its beginning, ISO 8601, UTC."""
    articles: int
    """Articles published in it, and about how many sources they had; None where that cannot be counted."""
    sources: int | None


class Timeline(Answer, frozen=True):
    """How a story spread."""

    model_config = _example(
        interval_ms=7_200_000,
        steps=[
            {"start": "2026-09-06T16:24:00+00:00", "articles": 10, "sources": 7},
            {"start": "2026-09-06T18:24:00+00:00", "articles": 5, "sources": 4},
        ],
    )

    interval_ms: int
    steps: list[TimelineStep]
    """Without gaps, from the first article's on; none where no article has a time."""
