"""What a reader returns: frozen pydantic models, which also describe the JSON API."""

import functools
import json
from importlib import resources
from typing import Any

import pydantic

from esdedup.text.left_out import LeftOut


@functools.cache
def examples() -> Any:
    """Return examples for the description of the API, by the names of their models."""
    return json.loads((resources.files("esdedup.reading") / "examples.json").read_text("utf-8"))


def _add_example(schema: dict[str, Any], model: type[pydantic.BaseModel]) -> None:
    if model.__name__ in examples():
        schema["examples"] = [examples()[model.__name__]]


class Result(pydantic.BaseModel, frozen=True):
    """Base of all results. The docstrings of fields appear in the description of the API."""

    model_config = pydantic.ConfigDict(use_attribute_docstrings=True, json_schema_extra=_add_example)


class Article(Result, frozen=True):
    """An article without its text."""

    id: str
    index: str
    root: str | None
    """The cluster; None if the article was not indexed through esdedup."""
    title: str | None
    """Several, in a list, are joined by commas; None if it is blank."""
    published_at: Any = None
    """As stored in the article, in whatever form."""
    arrived_at: str | None = None
    """When it arrived, ISO 8601, if that is its place in time: `published_at` is missing or not believed."""
    source: Any = None
    """As stored in the article; a list if it has several."""
    url: str | None = None
    included: dict[str, Any] | None = None
    """The further fields that were asked for (`source_includes`), by name, as stored; None without that."""


class TextPart(Result, frozen=True):
    """A part of a text."""

    text: str
    is_match: bool
    """Whether it is a searched word."""


class Snippet(Result, frozen=True):
    """What an article's title and text say about a search."""

    title: tuple[TextPart, ...]
    text: tuple[TextPart, ...]
    """Some 180 characters around searched words, without markup; the beginning if they are not there. An
    ellipsis stands where a sentence is cut."""


class SimilarArticle(Article, frozen=True):
    """An article of the same cluster as another one."""

    resemblance: float | None = None
    """Estimated share of common wording, 0 to 1 (profile `verified`)."""
    distance_bits: int | None = None
    """Differing bits between the 64-bit simhashes (other profiles)."""


class SourceCount(Result, frozen=True):
    """A source, and how many articles of a cluster it published."""

    source: str
    articles: int


class SameHeadline(Result, frozen=True):
    """Other stories with an article under a row's headline: the event in other words, or another column."""

    stories: int = 0
    """How many, at most 100; 0 if the title has fewer than five words or ten East Asian characters."""
    rows: tuple[Article, ...] = ()
    """The newest article under that headline of each story, the newest of these first; at most 3."""


class RowDetails(Result, frozen=True):
    """What a row of a list unfolds to: its text, and its cluster at a glance."""

    snippet: Snippet
    earliest: Article | None
    """Who had it first: the earliest article of the cluster, matching or not. Here and below, None if the
    cluster was deleted meanwhile."""
    latest: Article | None
    """The newest article of the cluster, matching or not."""
    most_different: SimilarArticle | None
    """The article of the cluster whose text differs most from the one shown, of 24 versions at most; None if
    there is no other text, or if that cannot be computed."""
    largest_sources: tuple[SourceCount, ...]
    """The sources with the most articles of the cluster, at most 5; empty if it has one article only, or if
    sources cannot be counted."""
    spread: tuple[int, ...]
    """How many articles were published in each of 24 equal spans of time from `first` to `last`; empty if
    these do not differ."""
    same_headline: SameHeadline = SameHeadline()
    """Stories apart from this one that have its headline, matching or not."""
    excerpts: int = 0
    """How many articles of other clusters quote a part of the story; `similar` has them."""
    excerpt_of: Article | None = None
    """Who had first the story that this one quotes a part of; None if it quotes none."""


class Row(Article, frozen=True):
    """A row of the list: a cluster, shown by one of its matching articles."""

    similar: int
    """How many other articles the cluster has, matching or not."""
    matching: int
    """How many articles of the cluster match the query, including this one."""
    sources: int | None = None
    """How many sources the cluster has, at most 1,000; None if the source field cannot be counted."""
    first: str | None = None
    """When the first article of the cluster was published (or arrived, see `arrived_at`), ISO 8601, UTC."""
    last: str | None = None
    """When the last article of the cluster was published."""
    new_articles: int | None = None
    """How many articles of the cluster have arrived since the moment asked for; None if none was."""
    details: RowDetails | None = None
    """None unless details were asked for."""


class Page(Result, frozen=True):
    """A page of the list with dedup."""

    rows: tuple[Row, ...]
    total_rows: int
    """Rows on all pages."""
    total_rows_exact: bool
    """True if `total_rows` is a count, false if it is an estimate."""
    total_articles: int
    """All matching articles with a root, including those of rows that are left out."""
    not_set_up: tuple[str, ...] = ()
    """Indices behind the name that nobody has set up: their articles are left out."""
    not_enriched: int
    """Further articles that match, but are in no row: esdedup has not enriched them yet."""
    new_articles: int | None = None
    """How many of `total_articles` have arrived since the moment asked for; None if none was."""
    order_exact: bool
    """False if the order by count is approximate, which can happen on several shards."""
    cut_short: bool
    """True if the page ends before it is full, as most of the articles read are not rows of this list; `next`
    goes on after them."""
    page: int
    """From 1."""
    size: int
    sort: str
    """The sort that was used: the one requested, or the default."""
    next: str | None = None
    """The cursor of the next page; None on the last page, and at row 10,000, where sorts by relevance and by
    count end as numbered pages do."""


class Excerpt(Article, frozen=True):
    """The first article of a cluster that quotes a part of a story."""

    articles: int
    """How many articles the cluster has."""


class Excerpts(Result, frozen=True):
    """The clusters whose texts are a part of a story, too small a part to belong to its cluster."""

    articles: int = 0
    """All articles of these clusters. No other number counts them."""
    clusters: int = 0
    """At most 10,000."""
    rows: tuple[Excerpt, ...] = ()
    """The first article of each cluster, the newest of these first; at most 20."""


class QuotedStory(Result, frozen=True):
    """The cluster that contains the text of another one."""

    root: str
    articles: int
    """How many articles it has; 0 if they were deleted, or are in other indices."""
    first: Article | None
    """Who had it first; None if it has no article."""


class StoryPage(Result, frozen=True):
    """What all pages about a cluster have."""

    root: str | None
    """The cluster; None for a text that belongs to none, and for the articles with a fingerprint."""
    excerpt_of: QuotedStory | None = None
    """The cluster that this one quotes a part of; None if it quotes none."""
    excerpts: Excerpts = Excerpts()
    """Those who quote a part of it."""
    is_placeholder: bool = False
    """Whether it seems to be a short text that several sites serve in the place of articles: titles are
    unrelated. An override can declare it boilerplate."""
    not_set_up: tuple[str, ...] = ()
    """Indices behind the name that nobody has set up: their articles are left out."""


class SimilarPage(StoryPage, frozen=True):
    """Articles of a cluster, or with a fingerprint, newest first."""

    root_exact: bool = True
    """Of a text that was looked up: false if the forest's nodes are in the memory of its owner, and another
    process answers. Then the cluster is what stored articles show, and one that was deleted shows nothing."""
    total: int
    """Articles on all pages."""
    rows: tuple[SimilarArticle, ...]
    page: int
    """From 1."""
    size: int
    next: str | None = None
    """The cursor of the next page; None on the last page."""
    left_out: LeftOut | None = None
    """Of a text that was looked up: what was left out of it as boilerplate; None if nothing is to be."""


class Source(Result, frozen=True):
    """What one source published in a cluster."""

    source: Any
    """The name; None stands for articles without a source."""
    articles: int
    first: str | None
    """When its first article was published, ISO 8601, UTC."""
    last: str | None
    """When its last article was published."""
    earliest: SimilarArticle
    """Its earliest article."""


class SourcesPage(StoryPage, frozen=True):
    """The sources of an article's cluster, those with the most articles first."""

    total: int
    """Articles on all pages."""
    total_sources: int
    """Sources on all pages."""
    sources: tuple[Source, ...]
    page: int
    """From 1."""
    size: int


class FullArticle(Article, frozen=True):
    """An article with its text and its fingerprint."""

    text: str
    site: str | None = None
    """The host of its address, else its source, or what its field for the site has."""
    fingerprint: str | None = None
    """Of its text, which also names its node in the forest; None if the text has none."""
    bands: tuple[str, ...] = ()
    """The keys under which it is found by others; texts that are nearly the same share most of them."""
    profile: str | None = None
    """What the fingerprint was computed with."""
    seq: int | None = None
    """The number of its arrival in its forest."""
    part_of: str | None = None
    """The root of the cluster that its own quotes a part of; None if it quotes none."""


class TimelineStep(Result, frozen=True):
    """One interval of a timeline."""

    start: str
    """When it starts, ISO 8601, in UTC or the zone that was asked for."""
    end: str
    """When it ends, exclusive."""
    articles: int
    """Articles published in it."""
    sources: int | None
    """Approximately how many sources published them; None if the source field cannot be counted."""


class Timeline(Result, frozen=True):
    """How many articles of a cluster were published in each interval, by whom first and by whom most."""

    interval_ms: int
    """The length of each step, milliseconds; of a calendar's, about: a day may have 23 hours."""
    steps: tuple[TimelineStep, ...]
    """From the first article to the last, without gaps; empty if no article has a time."""
    last: str | None = None
    """When the last article was published, ISO 8601, which is within the last step."""
    earliest: Article | None = None
    """Who had it first; None if there is no such cluster."""
    largest_source: Any = None
    """The source with the most articles; None if none has one, or the source field cannot be counted."""
    largest_source_articles: int = 0
    """How many of the articles are from it."""
