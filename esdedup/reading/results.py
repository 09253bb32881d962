"""The results of a reader: frozen pydantic models, which also describe the JSON API."""

import functools
import json
from importlib import resources
from typing import Any

import pydantic

from esdedup.text.left_out import LeftOut


@functools.cache
def examples() -> Any:
    """Return the examples in the description of the API, by the names of their models."""
    return json.loads((resources.files("esdedup.reading") / "examples.json").read_text("utf-8"))


def _add_example(schema: dict[str, Any], model: type[pydantic.BaseModel]) -> None:
    if model.__name__ in examples():
        schema["examples"] = [examples()[model.__name__]]


class Result(pydantic.BaseModel, frozen=True):
    """Base class of all results. The docstrings of fields appear in the description of the API."""

    model_config = pydantic.ConfigDict(use_attribute_docstrings=True, json_schema_extra=_add_example)


class Article(Result, frozen=True):
    """An article without its text."""

    id: str
    index: str
    root: str | None
    """The root that names its cluster; None if the article was not indexed through esdedup."""
    title: str | None
    """The title, or the titles joined by commas if it has several; None if it is blank."""
    published_at: Any = None
    """As stored in the article, or ISO 8601 if only the index's mapping can parse the stored form."""
    arrived_at: str | None = None
    """When it arrived, ISO 8601, if this replaces a missing or implausible `published_at` in sorts."""
    source: Any = None
    """As stored in the article; a list if it has several sources."""
    url: str | None = None
    included: dict[str, Any] | None = None
    """The fields requested by `source_includes`, by name, as stored; None if none were requested."""


class TextPart(Result, frozen=True):
    """A part of a text."""

    text: str
    is_match: bool
    """Whether this part is a search term."""


class Snippet(Result, frozen=True):
    """An article's title and a part of its text, with the search terms marked."""

    title: tuple[TextPart, ...]
    text: tuple[TextPart, ...]
    """About 180 characters around search terms, without markup, or the beginning of a text without search
    terms. An ellipsis shows where a sentence is cut off."""


class SimilarArticle(Article, frozen=True):
    """An article of a cluster, compared with another article or text."""

    resemblance: float | None = None
    """Estimated share of common wording, 0 to 1 (profile `verified`)."""
    distance_bits: int | None = None
    """Differing bits between the 64-bit simhashes (other profiles)."""


class SourceCount(Result, frozen=True):
    """A source, and how many articles of a cluster it published."""

    source: str
    articles: int


class SameHeadline(Result, frozen=True):
    """Other stories with a row's headline: other accounts of the event, or issues of a regular column."""

    stories: int = 0
    """How many stories, up to 100; 0 if the title has fewer than five words or ten East Asian characters."""
    rows: tuple[Article, ...] = ()
    """The newest article of each story with that headline, newest first; at most 3."""


class RowDetails(Result, frozen=True):
    """The details of a row: a snippet of its text, and a summary of its cluster."""

    snippet: Snippet
    earliest: Article | None
    """The earliest article of the cluster, matching or not. Here and below, None if the cluster has just been
    deleted."""
    latest: Article | None
    """The newest article of the cluster, matching or not."""
    most_different: SimilarArticle | None
    """The article whose text differs most from the row's text, among at most 24 versions in the cluster; None
    if there is no other text, or if texts cannot be compared."""
    largest_sources: tuple[SourceCount, ...]
    """The sources with the most articles of the cluster, at most 5; empty if the cluster has one article, or
    if sources cannot be counted."""
    spread: tuple[int, ...]
    """How many articles were published in each of 24 equal spans of time from `first` to `last`; empty if
    these two times are equal."""
    same_headline: SameHeadline = SameHeadline()
    """Other stories with the same headline, matching or not."""
    excerpts: int = 0
    """How many articles of other clusters quote a part of the story; `similar` returns some of them."""
    excerpt_of: Article | None = None
    """The earliest article of the story that this story quotes a part of; None if it quotes no story."""


class Row(Article, frozen=True):
    """A row of the list: a cluster, shown by one of its matching articles."""

    similar: int
    """How many other articles the cluster has, matching or not."""
    matching: int
    """How many articles of the cluster match the query, including this article."""
    sources: int | None = None
    """How many sources the cluster has, at most 1,000; None if the source field cannot be counted."""
    first: str | None = None
    """When the first article of the cluster was published (or arrived, see `arrived_at`), ISO 8601, UTC."""
    last: str | None = None
    """When the last article of the cluster was published."""
    new_articles: int | None = None
    """How many articles of the cluster have arrived since the requested time; None if none was requested."""
    details: RowDetails | None = None
    """None unless details were requested."""


class Page(Result, frozen=True):
    """A page of the deduplicated list."""

    rows: tuple[Row, ...]
    total_rows: int
    """Rows on all pages."""
    total_rows_exact: bool
    """True if `total_rows` is a count, false if it is an estimate."""
    total_articles: int
    """All matching articles with a root, including articles of clusters that filters leave out."""
    not_set_up: tuple[str, ...] = ()
    """Indices that the name covers but that are not set up; their articles are left out."""
    not_enriched: int
    """Further matching articles that are in no row, because esdedup has not enriched them yet."""
    new_articles: int | None = None
    """How many of `total_articles` have arrived since the requested time; None if none was requested."""
    order_exact: bool
    """False if the order by count is approximate, which can happen on several shards."""
    cut_short: bool
    """True if the page is not full because most of the articles read are not rows of this list; `next`
    continues after the articles read."""
    page: int
    """The number of the page, from 1."""
    size: int
    sort: str
    """The sort that was used: the requested or the default sort."""
    next: str | None = None
    """The cursor of the next page; None on the last page. Sorts by relevance and by count end at row 10,000,
    as numbered pages do."""


class Excerpt(Article, frozen=True):
    """The first article of a cluster that quotes a part of a story."""

    articles: int
    """How many articles the cluster has."""


class Excerpts(Result, frozen=True):
    """The clusters whose text is a part of a story, but too small a part to join the story."""

    articles: int = 0
    """The number of articles in these clusters; no other count includes them."""
    clusters: int = 0
    """The number of these clusters, counted up to 10,000."""
    rows: tuple[Excerpt, ...] = ()
    """The first article of each cluster, newest first; at most 20."""


class QuotedStory(Result, frozen=True):
    """The cluster whose text contains the text of another cluster."""

    root: str
    articles: int
    """How many articles the cluster has; 0 if all were deleted, or are in other indices."""
    first: Article | None
    """The earliest of these articles; None if there are none."""


class StoryPage(Result, frozen=True):
    """The common fields of all results about a cluster."""

    root: str | None
    """The root of the cluster; None for a text without a cluster, and for articles found by fingerprint."""
    excerpt_of: QuotedStory | None = None
    """The cluster that this cluster quotes a part of; None if it quotes no cluster."""
    excerpts: Excerpts = Excerpts()
    """The clusters that quote a part of this cluster."""
    is_placeholder: bool = False
    """Whether the cluster seems to be a short text that several sites serve in place of articles, with
    unrelated titles. An override can declare it boilerplate."""
    not_set_up: tuple[str, ...] = ()
    """Indices that the name covers but that are not set up; their articles are left out."""


class SimilarPage(StoryPage, frozen=True):
    """The articles of a cluster, or the articles with a fingerprint, newest first."""

    root_exact: bool = True
    """False if the cluster of a text was inferred from stored articles, because the forest's nodes are in the
    memory of another process, its owner. Deleted articles are then ignored."""
    total: int
    """Articles on all pages."""
    rows: tuple[SimilarArticle, ...]
    page: int
    """The number of the page, from 1."""
    size: int
    next: str | None = None
    """The cursor of the next page; None on the last page."""
    left_out: LeftOut | None = None
    """The boilerplate left out of a text; None for articles, and if the profile keeps boilerplate."""


class Source(Result, frozen=True):
    """The articles of one source in a cluster."""

    source: Any
    """The name; None stands for articles without a source."""
    articles: int
    first: str | None
    """When the source's first article was published, ISO 8601, UTC."""
    last: str | None
    """When the source's last article was published."""
    earliest: SimilarArticle
    """The source's earliest article."""


class SourcesPage(StoryPage, frozen=True):
    """The sources of an article's cluster, the largest first."""

    total: int
    """Articles on all pages."""
    total_sources: int
    """Sources on all pages."""
    sources: tuple[Source, ...]
    page: int
    """The number of the page, from 1."""
    size: int


class FullArticle(Article, frozen=True):
    """An article with its text and its fingerprint."""

    text: str
    site: str | None = None
    """The value of the site field; without one, the host of the article's address, or its source."""
    fingerprint: str | None = None
    """The fingerprint of its text, which is also the id of its node in the forest; None if it has none."""
    bands: tuple[str, ...] = ()
    """The keys by which similar texts are found; nearly identical texts share most of them."""
    profile: str | None = None
    """The profile with which the fingerprint was computed."""
    seq: int | None = None
    """The sequence number that its forest gave it when it arrived."""
    part_of: str | None = None
    """The root of the cluster that its own cluster quotes a part of; None if it quotes no cluster."""


class TimelineStep(Result, frozen=True):
    """One interval of a timeline."""

    start: str
    """When it starts, ISO 8601, in UTC or the requested time zone."""
    end: str
    """When it ends, exclusive."""
    articles: int
    """Articles published in this interval."""
    sources: int | None
    """Approximately how many sources published them; None if the source field cannot be counted."""


class Timeline(Result, frozen=True):
    """How many articles were published in each interval, the earliest article, and the largest source."""

    interval_ms: int
    """The length of each step in milliseconds; approximate for calendar steps: a day may have 23 hours."""
    steps: tuple[TimelineStep, ...]
    """From the first article to the last, without gaps; empty if no article has a time."""
    last: str | None = None
    """When the last article was published, ISO 8601; this is within the last step."""
    earliest: Article | None = None
    """The earliest article; None if there is no such cluster."""
    largest_source: Any = None
    """The source with the most articles; None if no article has one, or sources cannot be counted."""
    largest_source_articles: int = 0
    """How many articles the largest source published."""
