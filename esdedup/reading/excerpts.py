"""Finds clusters that quote a part of a story, the story that a cluster quotes, and placeholders."""

from collections.abc import Sequence
from typing import Any

from esdedup.boilerplate.placeholders import MOST_LETTERS, PlaceholderWatch
from esdedup.elastic.requests import UNREAD, Query, Requests, search
from esdedup.fields import Fields, as_text, term_of, value_of
from esdedup.reading import queries
from esdedup.reading.results import Excerpt, Excerpts, QuotedStory
from esdedup.reading.scope import CheckedIndex
from esdedup.sites import site_fields, site_of

MAX_CLUSTERS_SHOWN = 20
# The maximum number of clusters that are counted.
_MAX_COUNTED = 10_000
# How many clusters each shard sends; the clusters shown and their counts are exact if no shard has more.
_CLUSTERS_OF_A_SHARD = 200
# How many titles are read in a cluster; by default, an index returns at most 100 top hits.
_TITLES_READ = 100


def search_with_excerpts(
    ready: CheckedIndex,
    *bodies: Query,
    root: str | None,
    part_of: str | None = None,
    has_part: str | None = None,
) -> Requests[tuple[list[Any], dict[str, Any]]]:
    """Run the searches `bodies`, and read a root's excerpts; return the results and fields of `StoryPage`."""
    fields = ready.fields
    story: dict[str, Any] = {"root": root, "not_set_up": ready.not_set_up}
    if root is None:
        return (yield from search(ready.index, *bodies)), story
    short = {"bool": {"filter": [{"term": {fields.cluster: root}}, of_short_texts(fields)]}}
    linking = {"bool": {"should": [{"term": {name: root}} for name in fields.links]}}
    *answers, titles, links = yield from search(
        ready.index,
        *bodies,
        queries.aggregation(short, under_titles(fields)),
        {"query": linking, "size": 0, "track_total_hits": 1},
    )
    story["is_placeholder"] = seems_placeholder(titles["aggregations"], fields)
    # Few stories quote another or are quoted.
    if part_of or has_part or links["hits"]["total"]["value"]:
        whole = whole_body(root, part_of, fields=fields)
        found, quoted = yield from search(ready.index, excerpts_body(root, has_part, fields=fields), whole)
        story |= {"excerpts": _excerpts(found, fields), "excerpt_of": _quoted_story(part_of, quoted, fields)}
    return answers, story


def of_short_texts(fields: Fields) -> Query:
    """Return the query for articles whose texts are short enough for a placeholder."""
    return {"range": {fields.length: {"lte": MOST_LETTERS}}}


def under_titles(fields: Fields) -> Query:
    """Return the aggregations for the titles and sites of some articles, and the text of one article."""
    some = {"size": _TITLES_READ, "_source": [fields.title, *site_fields(fields)]}
    return {"some": {"top_hits": some}, "one": {"top_hits": {"size": 1, "_source": fields.text}}}


def seems_placeholder(found: Any, fields: Fields) -> bool:
    """Return whether a cluster is a placeholder, from the results of `under_titles`."""
    some, one = ([hit["_source"] for hit in found[name]["hits"]["hits"]] for name in ("some", "one"))
    watch = PlaceholderWatch()
    return any(
        watch.add("", as_text(value_of(one[0], fields.text)) or "", title=title, site=site)
        for each in some
        if (title := term_of(each, fields.title)) and (site := site_of(each, fields))
    )


def linked_roots(hit: queries.Hit, fields: Fields) -> dict[str, str | None]:
    """Return the root of a hit, the root that it quotes, and an earlier root that quotes it."""
    part_of, has_part = (term_of(hit["_source"], name) for name in fields.links)
    return {"root": queries.root_of(hit, fields), "part_of": part_of, "has_part": has_part}


def excerpts_body(root: str, has_part: str | None = None, *, fields: Fields) -> Query:
    """Return the search for the clusters that quote a root: their number, and the first article of each."""
    parts: list[Query] = [{"term": {fields.part_of: root}}]
    if has_part is not None:
        parts.append({"term": {fields.root: has_part}})
    # A cluster without a time is sorted as the oldest.
    first = {"min": {"field": fields.published, "missing": 0}}
    newest = {
        "field": fields.cluster,
        "size": MAX_CLUSTERS_SHOWN,
        "shard_size": _CLUSTERS_OF_A_SHARD,
        "order": [{"time": "desc"}, {"_key": "asc"}],
    }
    earliest = queries.first_hit("oldest", fields, queries.fields_read(fields))
    # The default execution hint would allocate a counter for every root of the index.
    few = {"execution_hint": "map"}
    return {
        "query": {"bool": {"should": parts}},
        "size": 0,
        "track_total_hits": True,
        "aggs": {
            UNREAD: {"terms": {"field": fields.cluster, "size": _MAX_COUNTED} | few},
            "clusters": queries.number_of_unread(),
            "newest": {"terms": newest | few, "aggs": {"time": first, "earliest": earliest}},
        },
    }


def articles_of_each(roots: Sequence[str], *names: str, fields: Fields) -> Query:
    """Return the search that, for each root and field, counts the articles and finds the first."""
    # Create buckets for these roots only.
    some = {"size": max(1, len(roots)), "include": list(roots), "execution_hint": "map"}
    earliest = {"earliest": queries.first_hit("oldest", fields, queries.fields_read(fields))}
    found = {name: {"terms": {"field": name} | some, "aggs": earliest} for name in names}
    return queries.aggregation(
        {"bool": {"should": [{"terms": {name: list(roots)}} for name in names]}}, found
    )


def _excerpts(answer: Any, fields: Fields) -> Excerpts:
    found = answer["aggregations"]
    return Excerpts(
        articles=answer["hits"]["total"]["value"],
        clusters=int(found["clusters"]["count"]),
        rows=tuple(
            Excerpt(**queries.values_of(hit, fields), articles=bucket["doc_count"])
            for bucket in found["newest"]["buckets"]
            for hit in bucket["earliest"]["hits"]["hits"]
        ),
    )


def whole_body(root: str, part_of: str | None, *, fields: Fields) -> Query:
    """Return the search for the first article of the story that a root quotes: `part_of`, or a later root."""
    by_root = {"field": fields.root, "size": _MAX_COUNTED, "execution_hint": "map"}
    return {
        "query": {"term": {fields.root: part_of} if part_of else {fields.has_part: root}},
        "sort": queries.order("oldest", fields),
        "size": 1,
        "track_total_hits": False,
        "_source": [*queries.fields_read(fields), fields.root],
        # Several later stories may contain the text of the root.
        "aggs": {"roots": {"terms": by_root}},
    }


def _quoted_story(part_of: str | None, answer: Any, fields: Fields) -> QuotedStory | None:
    first = next(iter(answer["hits"]["hits"]), None)
    root = part_of or (first and term_of(first["_source"], fields.root))
    if root is None:
        return None
    counts = {each["key"]: each["doc_count"] for each in answer["aggregations"]["roots"]["buckets"]}
    article = next(queries.articles_in(answer, fields), None)
    return QuotedStory(root=root, articles=counts.get(root, 0), first=article)
