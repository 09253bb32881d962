"""One article with its text, and how its story spread over time."""

from esdedup.elastic.requests import Requests, search
from esdedup.fields import value_of
from esdedup.reading import cluster_bodies as bodies
from esdedup.reading.cluster_members import find_article
from esdedup.reading.hits import values_of
from esdedup.reading.results import FullArticle, Timeline, TimelineStep
from esdedup.reading.scope import Scope
from esdedup.times import iso

# Requests of a timeline at the most.
_STEPS = 48
_MINUTE_MS = 60_000
# Lengths that people think in.
_INTERVALS_MS = [
    minutes * _MINUTE_MS for minutes in (1, 5, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 40320)
]


def article(
    scope: Scope, index: str, article_id: str, *, in_index: str | None = None
) -> Requests[FullArticle]:
    """Return one article with its text.

    Args:
        scope: Whose articles.
        index: An index, alias or pattern.
        article_id: Of several articles with that id the one that came last.
        in_index: Its index, where several behind the name have one.

    Raises:
        ArticleNotFound: No article has that id, or it has no root.
        SettingError: A value makes no sense.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses.
    """
    yield from scope.ready(index)
    hit = yield from find_article(scope, index, article_id, in_index=in_index)
    text = value_of(hit["_source"], scope.fields.text)
    return FullArticle(**values_of(hit, scope.fields), text=text if isinstance(text, str) else "")


def timeline(scope: Scope, index: str, root: str) -> Requests[Timeline]:
    """Return how many articles of a cluster were published when, in at most 48 steps of equal length.

    Args:
        scope: Whose articles.
        index: An index, alias or pattern.
        root: Of the cluster.

    Raises:
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses.
    """
    ready = yield from scope.ready(index)
    (answer,) = yield from search(index, bodies.time_range(root, fields=scope.fields))
    first, last = (answer["aggregations"][name]["value"] for name in ("first", "last"))
    if first is None or last is None:
        return Timeline(interval_ms=_INTERVALS_MS[0], steps=[])
    first_ms, span_ms = int(first), int(last - first)
    fitting = (each for each in _INTERVALS_MS if span_ms // each < _STEPS)
    interval_ms = next(fitting, -(-(span_ms + 1) // (_STEPS * _MINUTE_MS)) * _MINUTE_MS)
    body = bodies.timeline(
        root,
        interval_ms=interval_ms,
        offset_ms=first_ms,
        source_field=ready.source_field,
        fields=scope.fields,
    )
    (answer,) = yield from search(index, body)
    return Timeline(
        interval_ms=interval_ms,
        steps=[
            TimelineStep(
                start=iso(int(bucket["key"])),
                articles=bucket["doc_count"],
                sources=bucket["sources"]["value"] if "sources" in bucket else None,
            )
            for bucket in answer["aggregations"]["steps"]["buckets"]
        ],
    )


def source_names(scope: Scope, index: str, *, size: int = 200) -> Requests[list[str]]:
    """Return the names of the sources with the most articles, in the order of their names.

    Args:
        scope: Whose articles.
        index: An index, alias or pattern.
        size: How many names at the most.

    Raises:
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses.
    """
    ready = yield from scope.ready(index)
    if ready.source_field is None:
        return []
    body = {"size": 0, "aggs": {"sources": {"terms": {"field": ready.source_field, "size": size}}}}
    (answer,) = yield from search(index, body)
    return sorted(str(bucket["key"]) for bucket in answer["aggregations"]["sources"]["buckets"])


def source_field(scope: Scope, index: str) -> Requests[str | None]:
    """Return the field by which sources are told apart, None where they cannot be."""
    return (yield from scope.ready(index)).source_field
