"""What queries answer."""

from typing import Any

import pydantic


class Article(pydantic.BaseModel, frozen=True):
    """An article as lists show it: without its text."""

    id: str
    index: str
    root: str
    title: str | None
    published_at: Any = None
    source: Any = None
    url: str | None = None


class Row(Article, frozen=True):
    """A row of the list: the article that stands for its cluster."""

    # How many other articles have the same root.
    similar: int
    # How many articles of the cluster match the query.
    matching: int


class Page(pydantic.BaseModel, frozen=True):
    """A page of the list with dedup."""

    rows: list[Row]
    # Clusters with at least one article that matches.
    total_rows: int
    # Whether `total_rows` is exact, or an estimate.
    total_rows_exact: bool
    # Articles that match.
    total_articles: int
    # Whether rows stand in exactly the order asked for: always on one shard.
    order_exact: bool
    # From 1.
    page: int
    size: int
    sort: str


class SimilarPage(pydantic.BaseModel, frozen=True):
    """The other articles of an article's cluster, newest first."""

    root: str
    # How many there are, on this page or not.
    total: int
    articles: list[Article]
    # From 1.
    page: int
    size: int
