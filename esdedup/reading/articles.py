"""One article with its text, and the timeline of a cluster."""

from esdedup.elastic.names import check_index_name
from esdedup.elastic.requests import Requests, search
from esdedup.errors import ArticleNotFound, SettingError
from esdedup.fields import Fields, term_of, terms_of, value_of
from esdedup.reading import cluster_bodies as bodies
from esdedup.reading.hits import Hit, values_of
from esdedup.reading.intervals import SHORTEST_MS, interval_ms
from esdedup.reading.queries import check_term
from esdedup.reading.results import Article, FullArticle, Timeline, TimelineStep
from esdedup.reading.scope import Scope
from esdedup.sites import site_of
from esdedup.times import iso

_MAX_STEPS = 48


def article(
    scope: Scope, index: str, article_id: str, *, in_index: str | None = None
) -> Requests[FullArticle]:
    """Return one article with its text; see `Operations.article`."""
    fields = (yield from scope.ready(index)).fields
    hit = yield from find_article(fields, index, article_id, in_index=in_index, has_text=True)
    source = hit["_source"]
    text, seq = value_of(source, fields.text), value_of(source, fields.seq)
    return FullArticle(
        **values_of(hit, fields),
        text=text if isinstance(text, str) else "",
        site=site_of(source, fields),
        fingerprint=term_of(source, fields.fingerprint),
        bands=terms_of(source, f"{fields.dedup}.bands"),
        profile=term_of(source, f"{fields.dedup}.profile"),
        seq=seq if isinstance(seq, int) else None,
    )


def find_article(
    fields: Fields, index: str, article_id: str, *, in_index: str | None = None, has_text: bool = False
) -> Requests[Hit]:
    """Find an article with a root, in an index that is ready, with its signature and on demand its text.

    Raises:
        ArticleNotFound: No article has that id, or it has no root.
        SettingError: The id is empty, or no index can have the name of its index.
    """
    if not article_id:
        raise SettingError("the id of the article is empty")
    if in_index is not None:
        # A remote cluster's name stands before a colon.
        check_index_name(in_index.rpartition(":")[2])
    body = bodies.one_article(article_id, fields=fields, in_index=in_index, has_text=has_text)
    (answer,) = yield from search(index, body)
    hits: list[Hit] = answer["hits"]["hits"]
    if not hits:
        raise ArticleNotFound(
            f"there is no article {article_id!r} in {index!r}", article=article_id, index=index
        )
    if not term_of(hits[0]["_source"], fields.root):
        raise ArticleNotFound(
            f"the article {article_id!r} in {index!r} has no root: it was not indexed through esdedup; "
            "index it again",
            article=article_id,
            index=index,
        )
    return hits[0]


def timeline(scope: Scope, index: str, root: str) -> Requests[Timeline]:
    """Return the timeline of a cluster; see `Operations.timeline`."""
    check_term("root", root)
    ready = yield from scope.ready(index)
    body = bodies.spread(root, source_field=ready.source_field, fields=ready.fields)
    (answer,) = yield from search(index, body)
    first, last = (answer["aggregations"][name]["value"] for name in ("first", "last"))
    earliest = (Article(**values_of(hit, ready.fields)) for hit in answer["hits"]["hits"])
    largest = [
        (bucket["key"], bucket["doc_count"])
        for bucket in answer["aggregations"].get("sources", {}).get("buckets", ())
    ]
    source, articles = largest[0] if largest else (None, 0)
    known = Timeline(
        interval_ms=SHORTEST_MS,
        steps=(),
        earliest=next(earliest, None),
        largest_source=source,
        largest_source_articles=articles,
    )
    if first is None or last is None:
        return known
    length_ms = interval_ms(int(last - first), most_steps=_MAX_STEPS)
    body = bodies.timeline(
        root,
        interval_ms=length_ms,
        offset_ms=int(first),
        source_field=ready.source_field,
        fields=ready.fields,
    )
    (answer,) = yield from search(index, body)
    steps = tuple(
        TimelineStep(
            start=iso(int(bucket["key"])),
            articles=bucket["doc_count"],
            sources=bucket["sources"]["value"] if "sources" in bucket else None,
        )
        for bucket in answer["aggregations"]["steps"]["buckets"]
    )
    return known.model_copy(update={"interval_ms": length_ms, "steps": steps, "last": iso(int(last))})
