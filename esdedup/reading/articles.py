"""Reads articles: their texts, the records that esdedup wrote, and further fields that a caller names."""

import dataclasses
from collections.abc import Collection, Sequence
from typing import Annotated, Any, TypeVar

from esdedup.elastic.names import check_index_name
from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import ArticleNotFound, SettingError
from esdedup.fields import (
    Fields,
    as_text,
    refuse_surrogates,
    signature_of,
    term_of,
    terms_of,
    text_of,
    value_of,
)
from esdedup.reading import queries
from esdedup.reading.paging import SourceIncludes, check_names
from esdedup.reading.results import Article, FullArticle, Page, SimilarPage
from esdedup.reading.scope import CheckedIndex, IndexName, Scope
from esdedup.sites import site_fields, site_of

ArticleId = Annotated[str, "The article's id; if several articles have it, the last to arrive is used."]
InIndex = Annotated[str | None, "The index to read the article from, if several indices contain that id."]

_Page = TypeVar("_Page", Page, SimilarPage)
_RECORD = ("root", "fingerprint", "page", "profile", "seq", "seen")


def article(
    scope: Scope,
    index: IndexName,
    article_id: ArticleId,
    *,
    in_index: InIndex = None,
    source_includes: SourceIncludes = (),
) -> Requests[FullArticle]:
    """Return one article with its text.

    Raises:
        SettingError: The id or the index is empty, or `in_index` or one of `source_includes` is not a valid
            name.
    """
    check_names(source_includes)
    ready = yield from scope.check(index)
    fields = ready.fields
    hit = yield from find_article(
        ready, article_id, in_index=in_index, has_text=True, further=source_includes
    )
    source = hit["_source"]
    text, seq = value_of(source, fields.text), value_of(source, fields.seq)
    return FullArticle(
        **queries.values_of(hit, fields),
        text=as_text(text) or "",
        site=site_of(source, fields),
        fingerprint=term_of(source, fields.fingerprint),
        bands=terms_of(source, f"{fields.dedup}.bands"),
        profile=term_of(source, f"{fields.dedup}.profile"),
        seq=seq if isinstance(seq, int) else None,
        part_of=term_of(source, fields.part_of),
        included=_values(source, source_includes) if source_includes else None,
    )


def find_article(
    ready: CheckedIndex,
    article_id: str,
    *,
    in_index: str | None = None,
    has_text: bool = False,
    further: Sequence[str] = (),
) -> Requests[queries.Hit]:
    """Find an article with a root in an index; `one_article` determines the fields that are read."""
    if in_index is not None:
        # A remote cluster's name ends with a colon.
        check_index_name(in_index.rpartition(":")[2])
    fields = ready.fields
    body = one_article(article_id, fields=fields, in_index=in_index, has_text=has_text, further=further)
    (hit,) = yield from _hits_by_id(ready.index, article_id, body)
    if not term_of(hit["_source"], fields.cluster):
        flaw = "no root: it was not indexed through esdedup; index it again"
        if term_of(hit["_source"], fields.root):
            flaw = "no story: wait until `esdedup setup --editorial` has finished, or run it again"
        raise ArticleNotFound(
            f"the article {article_id!r} in {ready.name!r} has {flaw}", article=article_id, index=ready.name
        )
    return hit


def _hits_by_id(
    index: str, article_id: str, body: Query, *, in_index: str | None = None
) -> Requests[list[queries.Hit]]:
    """Return the hits for an id, in one index if given; raise `ArticleNotFound` if there are none."""
    if not article_id:
        raise SettingError("the id of the article is empty")
    (answer,) = yield from search(index, body)
    hits = [hit for hit in answer["hits"]["hits"] if in_index is None or hit["_index"] == in_index]
    if not hits:
        raise ArticleNotFound(
            f"there is no article {article_id!r} in {index!r}", article=article_id, index=index
        )
    return hits


def articles_of_texts(ready: CheckedIndex, keys: Collection[str]) -> Requests[dict[str, Article]]:
    """Return an article with each fingerprint, or else an article with this root; leave out missing keys."""
    found: dict[str, Article] = {}
    # A root is also the fingerprint of its own text.
    for field in (ready.fields.root, ready.fields.fingerprint) if keys else ():
        body = {
            "query": {"terms": {field: sorted(keys)}},
            "collapse": {"field": field},
            "size": len(keys),
            "_source": [*queries.fields_read(ready.fields), field],
        }
        (answer,) = yield from search(ready.index, body)
        for hit in answer["hits"]["hits"]:
            found[term_of(hit["_source"], field) or ""] = Article(**queries.values_of(hit, ready.fields))
    return found


def one_article(
    article_id: str,
    *,
    fields: Fields,
    in_index: str | None = None,
    has_text: bool = False,
    further: Sequence[str] = (),
) -> Query:
    """Return the search for the article with the given id; if several have that id, for the last to arrive.

    The article's text, which may be long, and `further` fields are read only with `has_text`.
    """
    whole = dict.fromkeys(
        (*queries.fields_read(fields), fields.text, fields.dedup, *site_fields(fields), *further)
    )
    read = list(whole) if has_text else [*queries.with_signature(fields), *fields.links, fields.root]
    query: Query = {"ids": {"values": [article_id]}}
    if in_index is not None:
        query = {"bool": {"filter": [query, {"term": {"_index": in_index}}]}}
    last = {"order": "desc", "unmapped_type": "long", "missing": "_last"}
    return {"query": query, "sort": [{fields.seq: last}], "size": 1, "_source": read}


def including(page: _Page, index: str, names: Sequence[str]) -> Requests[_Page]:
    """Add further fields to the article of each row of a page."""
    if not names or not page.rows:
        return page
    body = queries.by_ids([row.id for row in page.rows]) | {"_source": list(names)}
    (answer,) = yield from search(index, body)
    found = {queries.place_of(hit): hit.get("_source", {}) for hit in answer["hits"]["hits"]}
    rows = tuple(
        row.model_copy(update={"included": _values(found.get((row.index, row.id), {}), names)})
        for row in page.rows
    )
    return page.model_copy(update={"rows": rows})


def _values(source: dict[str, Any], names: Sequence[str]) -> dict[str, object]:
    return {name: value_of(source, name) for name in names}


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredText:
    """An article with its text and its record; fields that esdedup did not write are None."""

    id: str
    index: str
    text: str
    # None if unknown.
    site: str | None
    root: str | None
    fingerprint: str | None
    content_hash: str | None
    # The signature as bytes; empty if it is missing.
    signature: bytes
    profile: str | None
    seq: int | None
    # The forest's watermark when the article arrived, in milliseconds since 1970.
    seen_ms: int | None
    # Other indices behind the same name that have an older article with that id.
    also_in: tuple[str, ...] = ()


def text_by_id(
    index: str, article_id: str, *, fields: Fields, in_index: str | None = None
) -> Requests[StoredText]:
    """Read the article with the given id, and its text; if several articles have it, the last to arrive."""
    refuse_surrogates(article_id, name=article_id)
    # Search all indices; the last article to arrive comes first.
    body = one_article(article_id, fields=fields) | {"size": queries.MAX_NAMESAKES, **_with_record(fields)}
    hits = yield from _hits_by_id(index, article_id, body, in_index=in_index)
    also_in = tuple(hit["_index"] for hit in hits[1:])
    return dataclasses.replace(_stored_text(hits[0], fields), also_in=also_in)


def text_by_fingerprint(
    index: str, fingerprints: Sequence[str], *, fields: Fields
) -> Requests[StoredText | None]:
    """Read the first article that arrived with any of the fingerprints; return None if there is none."""
    body = {
        "query": {"terms": {fields.fingerprint: list(fingerprints)}},
        "sort": [{fields.seq: {"order": "asc", "unmapped_type": "long"}}],
        "size": 1,
        **_with_record(fields),
    }
    (answer,) = yield from search(index, body)
    hits = answer["hits"]["hits"]
    return _stored_text(hits[0], fields) if hits else None


def _stored_text(hit: queries.Hit, fields: Fields) -> StoredText:
    source = hit["_source"]
    # Read indexed values, since another program may have written other types into the source.
    indexed = hit.get("fields", {})
    record = {name: indexed.get(f"{fields.dedup}.{name}", [None])[0] for name in _RECORD}
    return StoredText(
        id=hit["_id"],
        index=hit["_index"],
        text=text_of(source, fields, name=hit["_id"]),
        site=site_of(source, fields),
        root=record["root"] or None,
        fingerprint=record["fingerprint"] or None,
        content_hash=record["page"] or None,
        signature=signature_of(source, fields),
        profile=record["profile"],
        seq=None if record["seq"] is None else int(record["seq"]),
        seen_ms=None if record["seen"] is None else int(record["seen"]),
    )


def _with_record(fields: Fields) -> Query:
    """Return the part of a search that requests the text of each hit, and its record as indexed."""
    record = [f"{fields.dedup}.{name}" for name in _RECORD if name != "seen"]
    seen = {"field": f"{fields.dedup}.seen", "format": "epoch_millis"}
    return {"_source": [fields.text, fields.dedup, *site_fields(fields)], "docvalue_fields": [*record, seen]}
