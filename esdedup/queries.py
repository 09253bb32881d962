"""Request bodies for Elasticsearch, as plain dicts. Pure: nothing is sent from here."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

from esdedup.errors import SettingError
from esdedup.fields import Fields

Query = dict[str, Any]
"""A query of Elasticsearch, such as ``{"match": {"title": "..."}}``."""

Sort = Literal["relevance", "newest", "oldest", "similar-desc", "similar-asc"]
SORTS: tuple[Sort, ...] = get_args(Sort)

MAX_DEPTH = 10_000
"""Rows that Elasticsearch pages through: `from` and `size` together."""
MAX_ROOTS = 65_535
"""Roots that one answer holds, and one request names."""
MAX_NAMESAKES = 10
"""Articles of one id, in several indices, that are told of."""
EXACT_ROWS = 10_000
"""Up to here rows are counted, beyond it they are estimated."""


def check_index_name(name: str) -> None:
    """Refuse a name that no index can have, before it is sent.

    Raises:
        SettingError: Elasticsearch would refuse it, or take it for several indices.
    """
    is_bad = name in {"", ".", ".."} or name[0] in "_-+" or name != name.lower()
    if is_bad or len(name.encode()) > 255 or any(character in '\\/*?"<>| ,#:' for character in name):
        raise SettingError(
            f"{name!r} cannot name one index: lower case, not beginning with _ - or +, "
            'and without white space or any of \\ / * ? " < > | , # :'
        )


def check_page(page: int, size: int) -> None:
    """Refuse a page that Elasticsearch does not reach.

    Raises:
        SettingError: It is not within the first 10,000 rows.
    """
    if page < 1 or size < 1:
        raise SettingError(f"page {page} of size {size}: both must be at least 1")
    if page * size > MAX_DEPTH:
        raise SettingError(
            f"page {page} of size {size} lies beyond row {MAX_DEPTH:,}, where Elasticsearch's paging ends: "
            "narrow the query, or set a filter on the time"
        )


def within(query: Query | None, fields: Fields) -> Query:
    """Restrict a query to articles that have a root: those that came through esdedup."""
    with_root = {"exists": {"field": fields.root}}
    return {"bool": {"must": [query] if query else [], "filter": [with_root]}}


def words(text: str, fields: Fields) -> Query:
    """Ask for all words of `text` in title or text, each run of Chinese as a phrase."""
    chunks = text.split()
    if not chunks:
        raise SettingError("the query has no words")
    names = [f"{fields.title}^2", fields.text]
    return {
        "bool": {
            "must": [{"multi_match": {"query": chunk, "fields": names, "type": "phrase"}} for chunk in chunks]
        }
    }


def list_rows(query: Query | None, *, sort: Sort, page: int, size: int, fields: Fields) -> dict[str, Any]:
    """Ask for a page of rows by relevance or time: the best article of each root, by that order."""
    return {
        "query": within(query, fields),
        "collapse": {"field": fields.root},
        "sort": order(sort, fields),
        "from": (page - 1) * size,
        "size": size,
        "track_total_hits": True,
        "_source": shown(fields),
        "aggs": {"rows": _estimate_rows(fields)},
    }


def count_articles(query: Query | None, *, fields: Fields) -> dict[str, Any]:
    """Count the articles that match."""
    return {"query": within(query, fields), "size": 0, "track_total_hits": True}


def count_rows(query: Query | None, *, fields: Fields) -> dict[str, Any]:
    """Count the rows: exactly while they are at most `EXACT_ROWS`, which shows as one more at the most."""
    return {
        "query": within(query, fields),
        "size": 0,
        "track_total_hits": False,
        "aggs": {
            "roots": {"terms": {"field": fields.root, "size": EXACT_ROWS + 1}},
            "rows": {"stats_bucket": {"buckets_path": "roots._count"}},
        },
    }


def count_clusters(roots: Sequence[str], *, query: Query | None, fields: Fields) -> dict[str, Any]:
    """Count the articles of each of `roots`, all of them and those that match. Exact on any shards."""
    return {
        "query": {"terms": {fields.root: list(roots)}},
        "size": 0,
        "track_total_hits": False,
        "aggs": {
            "roots": {
                "terms": {"field": fields.root, "size": len(roots)},
                "aggs": {"matching": {"filter": within(query, fields)}},
            }
        },
    }


def matching_roots(query: Query, *, fields: Fields) -> dict[str, Any]:
    """Ask for every root that has an article that matches, up to `MAX_ROOTS`."""
    return {
        "query": within(query, fields),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"roots": {"terms": {"field": fields.root, "size": MAX_ROOTS, "order": {"_key": "asc"}}}},
    }


def largest_clusters(
    roots: Sequence[str] | None,
    *,
    descending: bool,
    depth: int,
    fields: Fields,
    from_shard: int | None = None,
) -> dict[str, Any]:
    """Ask for the first `depth` roots by the number of their articles, equals by their names.

    Args:
        roots: Only these; None for all.
        descending: The most first, else the fewest.
        depth: How many.
        fields: The articles'.
        from_shard: How many each shard sends. One shard is always right; several are when they send all.
    """
    by_count = [{"_count": "desc" if descending else "asc"}, {"_key": "asc"}]
    terms: dict[str, Any] = {"field": fields.root, "size": depth, "order": by_count}
    if from_shard is not None:
        terms["shard_size"] = from_shard
    return {
        "query": within(None, fields) if roots is None else {"terms": {fields.root: list(roots)}},
        "size": 0,
        "track_total_hits": False,
        "aggs": {"roots": {"terms": terms}, "rows": _estimate_rows(fields)},
    }


def heads(roots: Sequence[str], *, query: Query | None, fields: Fields) -> dict[str, Any]:
    """Ask for the newest matching article of each of `roots`."""
    by_root = {"terms": {fields.root: list(roots)}}
    return {
        "query": {"bool": {"must": [within(query, fields)], "filter": [by_root]}},
        "collapse": {"field": fields.root},
        "sort": order("newest", fields),
        "size": len(roots),
        "track_total_hits": False,
        "_source": shown(fields),
    }


def by_id(article_id: str, *, fields: Fields) -> dict[str, Any]:
    """Ask for one article, whatever its routing; of several indices that have it, the last to arrive."""
    return {
        "query": {"ids": {"values": [article_id]}},
        "sort": [{fields.seq: {"order": "desc", "unmapped_type": "long", "missing": "_last"}}],
        "size": 1,
        "_source": shown(fields),
    }


def texts_by_id(article_id: str, *, fields: Fields) -> dict[str, Any]:
    """Ask for the articles of that id, one of each index, with their texts; the last to arrive first."""
    return by_id(article_id, fields=fields) | {"size": MAX_NAMESAKES, "_source": with_text(fields)}


def text_by_fingerprint(fingerprints: Sequence[str], *, fields: Fields) -> dict[str, Any]:
    """Ask for an article with one of those fingerprints, and its text: the first to arrive."""
    return {
        "query": {"terms": {f"{fields.dedup}.fingerprint": list(fingerprints)}},
        "sort": [{fields.seq: {"order": "asc", "unmapped_type": "long"}}],
        "size": 1,
        "_source": with_text(fields),
    }


def with_text(fields: Fields) -> list[str]:
    """Return the fields of an article that are needed to compare it anew."""
    return [fields.text, fields.dedup]


def similar(
    root: str, *, index: str, article_id: str, page: int, size: int, fields: Fields
) -> dict[str, Any]:
    """Ask for the articles of a root, newest first, but for the one that is asked about."""
    itself = {"bool": {"filter": [{"term": {"_index": index}}, {"ids": {"values": [article_id]}}]}}
    return {
        "query": {"bool": {"filter": [{"term": {fields.root: root}}], "must_not": [itself]}},
        "sort": order("newest", fields),
        "from": (page - 1) * size,
        "size": size,
        "track_total_hits": True,
        "_source": shown(fields),
    }


def _estimate_rows(fields: Fields) -> dict[str, Any]:
    return {"cardinality": {"field": fields.root, "precision_threshold": 40_000}}


def order(sort: Sort, fields: Fields) -> list[dict[str, Any]]:
    """Return the sort of articles; the order of arrival breaks every tie, so pages never overlap."""
    direction = "asc" if sort == "oldest" else "desc"
    by_time = {fields.time: {"order": direction, "missing": "_last", "unmapped_type": "date"}}
    by_arrival = {fields.seq: {"order": direction, "unmapped_type": "long"}}
    by_score = [{"_score": {"order": "desc"}}] if sort == "relevance" else []
    return [*by_score, by_time, by_arrival]


def shown(fields: Fields) -> list[str]:
    """Return the fields of an article that lists show."""
    return [fields.title, fields.time, fields.source, fields.link, fields.root]
