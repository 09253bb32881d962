"""What pages about a cluster say: who quotes a part of it, what it quotes, and if it is a placeholder."""

from collections.abc import Sequence
from typing import Any

from esdedup.boilerplate.placeholders import MOST_LETTERS, PlaceholderWatch
from esdedup.elastic.requests import UNREAD, Query, Requests, search
from esdedup.fields import Fields, as_text, term_of, value_of
from esdedup.reading.queries import (
    Hit,
    aggregation,
    fields_read,
    first_hit,
    number_of_unread,
    order,
    root_of,
    values_of,
)
from esdedup.reading.results import Article, Excerpt, Excerpts, QuotedStory
from esdedup.reading.scope import ReadyIndex
from esdedup.sites import site_fields, site_of

MAX_CLUSTERS_SHOWN = 20
# Clusters that are counted.
_MAX_COUNTED = 10_000
# Clusters that each shard sends: those shown, and their numbers, are exact if no shard has more.
_CLUSTERS_OF_A_SHARD = 200
# Articles whose titles are read of a cluster: by default, an index returns 100 at most.
_TITLES_READ = 100


def search_with_excerpts(
    ready: ReadyIndex, body: Query, *, root: str | None, part_of: str | None
) -> Requests[tuple[Any, dict[str, Any]]]:
    """Search, also for what `StoryPage` says of a root; return the answer, and values of that."""
    fields = ready.fields
    story: dict[str, Any] = {"root": root, "not_set_up": ready.not_set_up}
    if root is None:
        (answer,) = yield from search(ready.index, body)
        return answer, story
    short = {"bool": {"filter": [{"term": {fields.cluster: root}}, of_short_texts(fields)]}}
    bodies = [body, excerpts_body(root, fields=fields), aggregation(short, under_titles(fields))]
    if part_of is not None:
        bodies.append(first_article(part_of, fields))
    answer, excerpts, titles, *quoted = yield from search(ready.index, *bodies)
    story["excerpts"] = _excerpts(excerpts, fields)
    story["is_placeholder"] = seems_placeholder(titles["aggregations"], fields)
    if part_of is not None:
        story["excerpt_of"] = _quoted_story(part_of, quoted[0], fields)
    return answer, story


def of_short_texts(fields: Fields) -> Query:
    """Return the query for articles whose texts are short enough for a placeholder."""
    return {"range": {fields.length: {"lte": MOST_LETTERS}}}


def under_titles(fields: Fields) -> Query:
    """Return the aggregations for a text, and for the titles and sites of some articles that have it."""
    some = {"size": _TITLES_READ, "_source": [fields.title, *site_fields(fields)]}
    return {"some": {"top_hits": some}, "one": {"top_hits": {"size": 1, "_source": fields.text}}}


def seems_placeholder(found: Any, fields: Fields) -> bool:
    """Return whether what `under_titles` has found of a cluster is a placeholder."""
    some, one = ([hit["_source"] for hit in found[name]["hits"]["hits"]] for name in ("some", "one"))
    watch = PlaceholderWatch()
    return any(
        watch.add("", as_text(value_of(one[0], fields.text)) or "", title=title, site=site)
        for each in some
        if (title := term_of(each, fields.title)) and (site := site_of(each, fields))
    )


def quoted_story(ready: ReadyIndex, root: str) -> Requests[QuotedStory]:
    """Return a story that another one is a part of."""
    (answer,) = yield from search(ready.index, first_article(root, ready.fields))
    return _quoted_story(root, answer, ready.fields)


def both_roots(hit: Hit, fields: Fields) -> dict[str, str | None]:
    """Return the root of a hit, and the root that it is a part of."""
    return {"root": root_of(hit, fields), "part_of": term_of(hit["_source"], fields.part_of)}


def excerpts_body(root: str, *, fields: Fields) -> Query:
    """Return the search for the first article of each cluster that is a part of a root, and their number."""
    # Without a time, a cluster is older than all others.
    first = {"min": {"field": fields.published, "missing": 0}}
    newest = {
        "field": fields.cluster,
        "size": MAX_CLUSTERS_SHOWN,
        "shard_size": _CLUSTERS_OF_A_SHARD,
        "order": [{"time": "desc"}, {"_key": "asc"}],
    }
    earliest = first_hit("oldest", fields, fields_read(fields))
    # By default it would make room for a count of every root of the index.
    few = {"execution_hint": "map"}
    return {
        "query": {"term": {fields.part_of: root}},
        "size": 0,
        "track_total_hits": True,
        "aggs": {
            UNREAD: {"terms": {"field": fields.cluster, "size": _MAX_COUNTED} | few},
            "clusters": number_of_unread(),
            "newest": {"terms": newest | few, "aggs": {"time": first, "earliest": earliest}},
        },
    }


def excerpts_of_each(roots: Sequence[str], *, fields: Fields) -> Query:
    """Return the search that counts the articles of the clusters that are a part of each root."""
    terms = {"field": fields.part_of, "size": max(1, len(roots)), "execution_hint": "map"}
    return aggregation({"terms": {fields.part_of: list(roots)}}, {"roots": {"terms": terms}})


def _excerpts(answer: Any, fields: Fields) -> Excerpts:
    found = answer["aggregations"]
    return Excerpts(
        articles=answer["hits"]["total"]["value"],
        clusters=int(found["clusters"]["count"]),
        rows=tuple(
            Excerpt(**values_of(hit, fields), articles=bucket["doc_count"])
            for bucket in found["newest"]["buckets"]
            for hit in bucket["earliest"]["hits"]["hits"]
        ),
    )


def first_article(root: str, fields: Fields) -> Query:
    """Return the search for who had a root's story first."""
    return {
        "query": {"term": {fields.root: root}},
        "sort": order("oldest", fields),
        "size": 1,
        "track_total_hits": True,
        "_source": fields_read(fields),
    }


def _quoted_story(root: str, answer: Any, fields: Fields) -> QuotedStory:
    articles = (Article(**values_of(hit, fields)) for hit in answer["hits"]["hits"])
    return QuotedStory(root=root, articles=answer["hits"]["total"]["value"], first=next(articles, None))
