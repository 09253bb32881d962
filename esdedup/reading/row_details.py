"""Reads the details of all rows of a page in two requests.

Elasticsearch's highlighter finds the text around the search terms. It also marks words in markup, which
readers do not see.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from esdedup.elastic.requests import UNREAD, Query, Requests, carrying, chunks, search
from esdedup.fields import Fields, term_of
from esdedup.reading import queries
from esdedup.reading.clusters import Similarity
from esdedup.reading.excerpts import articles_of_each, linked_roots
from esdedup.reading.list_request import ListRequest
from esdedup.reading.results import (
    Article,
    Row,
    RowDetails,
    SameHeadline,
    SimilarArticle,
    Snippet,
    SourceCount,
    TextPart,
)
from esdedup.text.parsed import are_headlines, visible_text
from esdedup.times import time_ms

_Item = TypeVar("_Item")

_STEPS = 24
# A cluster needs about 60 buckets, so this stays far below Elasticsearch's limit on buckets.
_CLUSTERS_IN_A_SEARCH = 60
# The maximum number of headlines in a search, and of characters of each, so that their words stay below the
# limit on terms in a query, 1,024 on a small server.
_HEADLINES_IN_A_SEARCH, _MOST_OF_A_HEADLINE = 10, 90
_SOURCES = 5
_VERSIONS = 24
# How many sources each shard sends; the largest counts are exact if no shard has more sources.
_SOURCES_OF_A_SHARD = 1_000
# How many stories with the same headline are counted, and how many of them are shown.
_NAMESAKES, _NAMESAKES_SHOWN = 100, 3

# The length of a snippet in characters.
_LENGTH = 180
# In a longer text, words are highlighted only in this many characters at the beginning.
_MOST_ANALYSED = 100_000
# Characters for private use, which published texts do not contain, mark the search terms.
_BEGIN, _END = "\ue000", "\ue001"
_MARKS = re.compile(f"([{_BEGIN}{_END}])")
# The punctuation that ends a sentence in various scripts, with closing quotes and brackets.
_SENTENCE_END = re.compile(r"""[.!?…。！？｡؟।]["'”’»)\]」』】）]*\Z""")
# The end or the beginning of a tag that the snippet cuts in two.
_REST_OF_TAG = re.compile(r"""\A[^<>]*["'/]\s*>|<[a-zA-Z/!][^<>]*\Z""")

_Place = tuple[str, str]
"""The index and the id of an article."""


def with_details(rows: Sequence[Row], request: ListRequest) -> Requests[tuple[Row, ...]]:
    """Return the rows with their details."""
    fields = request.fields
    of_several = list({row.root: row for row in rows if row.root and row.similar}.values())
    titled = are_headlines([row.title or "" for row in rows]).tolist()
    with_headline = list(itertools.compress(rows, titled))
    parts = list(chunks(of_several, _CLUSTERS_IN_A_SEARCH))
    named = list(chunks(with_headline, _HEADLINES_IN_A_SEARCH))
    texts, of_links, *answers = yield from search(
        request.searched,
        snippets_body(rows, request.query, fields=fields),
        articles_of_each([row.root for row in rows if row.root], *fields.links, fields=fields),
        *(clusters_body(each, source_field=request.source_field, fields=fields) for each in parts),
        *(namesakes_body(each, fields=fields) for each in named),
    )
    clusters = {each.root: found for each, found in _with_answers(parts, answers[: len(parts)])}
    stories = {
        (row.index, row.id): number
        for row, found in _with_answers(named, answers[len(parts) :])
        if (number := found["stories"]["count"])
    }
    hits = texts["hits"]["hits"]
    shown = {queries.place_of(hit): hit for hit in hits}
    links = {place: linked_roots(hit, fields) for place, hit in shown.items()}
    roots = sorted({root for each in links.values() for root in (each["part_of"], each["has_part"]) if root})
    different = {}
    for row in rows:
        hit, cluster = shown.get((row.index, row.id)), clusters.get(row.root or "")
        if hit and cluster and (other := _most_different(hit, cluster, fields)):
            different[row.index, row.id] = other
    bodies = [_newest_namesakes(row, fields) for row in rows if (row.index, row.id) in stories]
    bodies += [articles_of_each(roots, fields.root, fields=fields)] if roots else []
    versions, answers = yield from carrying(_read_versions(different, request), request.searched, *bodies)
    namesakes = {
        place: SameHeadline(stories=stories[place], rows=tuple(queries.articles_in(answer, fields)))
        for place, answer in zip(stories, answers, strict=False)
    }
    linked = {
        (name, each["key"]): each
        for answer in (of_links, *answers[len(stories) :])
        for name, found in answer["aggregations"].items()
        for each in found["buckets"]
    }
    detailed = []
    for row, snippet in zip(rows, snippets_of(rows, hits, fields=fields), strict=True):
        place, of_cluster = (row.index, row.id), _cluster_details(row, clusters.get(row.root or ""), fields)
        part_of, has_part = (links.get(place, {}).get(name) for name in ("part_of", "has_part"))
        quoting = [linked.get((fields.part_of, row.root)), linked.get((fields.root, has_part))]
        whole = linked.get((fields.root, part_of) if part_of else (fields.has_part, row.root))
        details = RowDetails(
            snippet=snippet,
            most_different=versions.get(place),
            same_headline=namesakes.get(place, SameHeadline()),
            excerpts=sum(each["doc_count"] for each in quoting if each),
            excerpt_of=whole and next(queries.articles_in(whole["earliest"], fields), None),
            **of_cluster,
        )
        detailed.append(row.model_copy(update={"details": details}))
    return tuple(detailed)


def _with_answers(parts: Sequence[Sequence[_Item]], answers: Sequence[Any]) -> Iterator[tuple[_Item, Any]]:
    """Yield each item with its aggregation, from one response for each part."""
    for part, answer in zip(parts, answers, strict=True):
        for at, item in enumerate(part):
            yield item, answer["aggregations"][f"cluster-{at}"]


def _spans_ms(row: Row) -> tuple[int, int] | None:
    """Return the start and the length of the spans in which articles of a cluster are counted, or None."""
    first_ms, last_ms = time_ms(row.first), time_ms(row.last)
    if first_ms is None or last_ms is None or last_ms <= first_ms:
        return None
    return first_ms, -(-(last_ms + 1 - first_ms) // _STEPS)


def _cluster_details(row: Row, found: dict[str, Any] | None, fields: Fields) -> dict[str, Any]:
    """Return the details that do not depend on which article a row shows."""
    if found is None:
        alone = Article(**{name: getattr(row, name) for name in Article.model_fields})
        return {"earliest": alone, "latest": alone, "largest_sources": (), "spread": ()}
    buckets = found.get("sources", {"buckets": []})["buckets"]
    return {
        "earliest": next(queries.articles_in(found["earliest"], fields), None),
        "latest": next(queries.articles_in(found["latest"], fields), None),
        "largest_sources": tuple(
            SourceCount(source=str(each["key"]), articles=each["doc_count"]) for each in buckets
        ),
        "spread": _spread(row, found),
    }


def _spread(row: Row, found: dict[str, Any]) -> tuple[int, ...]:
    if (spans_ms := _spans_ms(row)) is None:
        return ()
    first_ms, length_ms = spans_ms
    counts = [0] * _STEPS
    for bucket in found["spread"]["buckets"]:
        step = (int(bucket["key"]) - first_ms) // length_ms
        # `first` and `last` are whole seconds, and more articles may have arrived since they were read.
        counts[min(max(step, 0), _STEPS - 1)] += bucket["doc_count"]
    return tuple(counts)


def _most_different(
    shown: queries.Hit, found: dict[str, Any], fields: Fields
) -> tuple[queries.Hit, dict[str, Any]] | None:
    """Return the version least similar to the article shown, with its similarity, or None."""
    own = term_of(shown["_source"], fields.fingerprint)
    versions = [
        hit
        for bucket in found["versions"]["buckets"]
        if bucket["key"] != own
        for hit in bucket["version"]["hits"]["hits"]
    ]
    return Similarity.to(shown, fields).most_different(versions, fields)


def _read_versions(
    different: Mapping[_Place, tuple[queries.Hit, dict[str, Any]]], request: ListRequest
) -> Requests[dict[_Place, SimilarArticle]]:
    """Read the most different versions, keyed by the index and id of the article that each row shows."""
    if not different:
        return {}
    ids = {hit["_id"] for hit, _ in different.values()}
    body = queries.by_ids(ids) | {"_source": queries.fields_read(request.fields)}
    (answer,) = yield from search(request.searched, body)
    found = {queries.place_of(hit): hit for hit in answer["hits"]["hits"]}
    return {
        of: SimilarArticle(**queries.values_of(found[queries.place_of(hit)], request.fields), **measure)
        for of, (hit, measure) in different.items()
        # The article may have been deleted since it was found.
        if queries.place_of(hit) in found
    }


def namesakes_body(rows: Sequence[Row], *, fields: Fields) -> Query:
    """Return the search that counts, for each row, the other stories with its headline."""
    terms = {"field": fields.cluster, "size": _NAMESAKES, "execution_hint": "map"}
    counted: Query = {UNREAD: {"terms": terms}, "stories": queries.number_of_unread()}
    return queries.aggregation(
        queries.within({"bool": {"should": [_titled(row, fields) for row in rows]}}, fields),
        {
            f"cluster-{number}": {"filter": _namesakes(row, fields), "aggs": counted}
            for number, row in enumerate(rows)
        },
    )


def _titled(row: Row, fields: Fields) -> Query:
    """Return the query for articles whose title contains a row's title."""
    # A title that was not indexed through esdedup may have a lone surrogate, which cannot be sent.
    whole = (row.title or "").encode(errors="replace").decode()
    title = whole[:_MOST_OF_A_HEADLINE]
    if title != whole:
        # Cut between words, if spaces separate them.
        title = title.rpartition(" ")[0] or title
    # With `lenient`, a field that does not support phrases matches nothing.
    return {"multi_match": {"query": title, "fields": [fields.title], "type": "phrase", "lenient": True}}


def _namesakes(row: Row, fields: Fields) -> Query:
    return {"bool": {"filter": _titled(row, fields), "must_not": {"term": {fields.cluster: row.root}}}}


def _newest_namesakes(row: Row, fields: Fields) -> Query:
    """Return the search for other stories with a row's headline, and the newest such article of each."""
    return {
        "query": queries.within(_namesakes(row, fields), fields),
        "sort": queries.order("newest", fields),
        "size": _NAMESAKES_SHOWN,
        "track_total_hits": False,
        "collapse": {"field": fields.cluster},
        "_source": queries.fields_read(fields),
    }


def clusters_body(rows: Sequence[Row], *, source_field: str | None, fields: Fields) -> Query:
    """Return the search for the first and last article of clusters, their versions, sources and spread."""
    return queries.aggregation(
        {"terms": {fields.cluster: [row.root for row in rows]}},
        {
            # A root may be invalid as the name of an aggregation.
            f"cluster-{number}": {
                "filter": {"term": {fields.cluster: row.root}},
                "aggs": _aggregations(row, source_field, fields),
            }
            for number, row in enumerate(rows)
        },
    )


def _aggregations(row: Row, source_field: str | None, fields: Fields) -> Query:
    # Sort by key, so that the same versions are selected each time if there are too many.
    by_fingerprint = {
        "field": fields.fingerprint,
        "size": _VERSIONS,
        "order": {"_key": "asc"},
        # Otherwise Elasticsearch would collect hits for every version of a large cluster, and discard most.
        "collect_mode": "breadth_first",
    }
    version = queries.first_hit("oldest", fields, queries.signature_read(fields))
    aggs: Query = {
        "earliest": queries.first_hit("oldest", fields, queries.fields_read(fields)),
        "latest": queries.first_hit("newest", fields, queries.fields_read(fields)),
        "versions": {"terms": by_fingerprint, "aggs": {"version": version}},
    }
    if source_field is not None:
        terms = {"field": source_field, "size": _SOURCES, "shard_size": _SOURCES_OF_A_SHARD}
        aggs["sources"] = {"terms": terms}
    if (spans_ms := _spans_ms(row)) is not None:
        first_ms, length_ms = spans_ms
        steps = queries.over_time(length_ms, first_ms, fields)
        aggs["spread"] = {"date_histogram": steps | {"min_doc_count": 1}}
    return aggs


def snippets_body(rows: Sequence[Row], query: Query | None, *, fields: Fields) -> Query:
    """Return the search for the snippets, signatures and links of rows; `query` is the user's query."""
    text = {"fragment_size": _LENGTH, "number_of_fragments": 1, "no_match_size": _LENGTH}
    return queries.by_ids([row.id for row in rows]) | {
        "_source": [*queries.signature_read(fields), fields.cluster, *fields.links],
        "highlight": {
            "fields": {fields.title: {"number_of_fragments": 0}, fields.text: text},
            "highlight_query": query or {"match_all": {}},
            "max_analyzed_offset": _MOST_ANALYSED,
            "pre_tags": [_BEGIN],
            "post_tags": [_END],
        },
    }


def snippets_of(rows: Sequence[Row], hits: Sequence[queries.Hit], *, fields: Fields) -> list[Snippet]:
    """Return the snippet of each row from the hits of the search `snippets_body`."""
    found = {queries.place_of(hit): hit.get("highlight", {}) for hit in hits}
    snippets = []
    for row in rows:
        highlight = found.get((row.index, row.id), {})
        # A field may have several values.
        title, *_ = highlight.get(fields.title) or [row.title or ""]
        text, *_ = highlight.get(fields.text) or [""]
        snippets.append(Snippet(title=tuple(_parts(title)), text=tuple(_parts(_with_ellipses(text)))))
    return snippets


def _with_ellipses(fragment: str) -> str:
    """Return a snippet as readers see it, with ``…`` where the highlighter has cut a sentence."""
    plain = _MARKS.sub("", fragment)
    shown = " ".join(visible_text(_REST_OF_TAG.sub(" ", fragment)).split())
    seen = _MARKS.sub("", shown)
    begins_within = plain != fragment and seen[:1].islower()
    stops_within = len(plain) >= _LENGTH and not _SENTENCE_END.search(seen)
    return "…" * begins_within + shown + "…" * stops_within


def _parts(marked: str) -> Iterator[TextPart]:
    is_match = False
    for piece in _MARKS.split(marked):
        if piece in {_BEGIN, _END}:
            is_match = piece == _BEGIN
        elif piece:
            yield TextPart(text=piece, is_match=is_match)
