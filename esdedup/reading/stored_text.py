"""Single articles with their texts and the records that esdedup has written into them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import ArticleNotFound, SettingError
from esdedup.fields import Fields, refuse_surrogates, signature_of, text_of
from esdedup.reading.hits import Hit
from esdedup.reading.queries import MAX_NAMESAKES, by_id, with_text
from esdedup.sites import site_fields, site_of

_RECORD = ("root", "fingerprint", "page", "profile", "seq", "seen")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredText:
    """An article with its text and its record; None for fields that esdedup did not write."""

    id: str
    index: str
    text: str
    # None if it is not known.
    site: str | None
    root: str | None
    fingerprint: str | None
    page: str | None
    # What is compared with others, as bytes; empty if it is missing.
    signature: bytes
    profile: str | None
    seq: int | None
    # The forest's time at its arrival, milliseconds since 1970.
    seen_ms: int | None
    # Other indices behind the same name with an older article of that id.
    also_in: tuple[str, ...] = ()


def text_by_id(
    index: str, article_id: str, *, fields: Fields, in_index: str | None = None
) -> Requests[StoredText]:
    """Read the article of an id; if several indices have it, the last to arrive.

    Raises:
        ArticleNotFound: No index has that id.
        ArticleRejected: It has no text.
        SettingError: The id is empty.
    """
    if not article_id:
        raise SettingError("the id of the article is empty")
    refuse_surrogates(article_id, name=article_id)
    # Of any index, the last to arrive first.
    body = by_id(article_id, fields=fields) | {"size": MAX_NAMESAKES, **_with_record(fields)}
    (answer,) = yield from search(index, body)
    hits = [hit for hit in answer["hits"]["hits"] if in_index is None or hit["_index"] == in_index]
    if not hits:
        raise ArticleNotFound(
            f"there is no article {article_id!r} in {index!r}", article=article_id, index=index
        )
    also_in = tuple(hit["_index"] for hit in hits[1:])
    return dataclasses.replace(_stored_text(hits[0], fields), also_in=also_in)


def text_by_fingerprint(
    index: str, fingerprints: Sequence[str], *, fields: Fields
) -> Requests[StoredText | None]:
    """Read the first article to arrive with one of some fingerprints; None if there is none.

    Raises:
        ArticleRejected: It has no text.
    """
    body = {
        "query": {"terms": {fields.fingerprint: list(fingerprints)}},
        "sort": [{fields.seq: {"order": "asc", "unmapped_type": "long"}}],
        "size": 1,
        **_with_record(fields),
    }
    (answer,) = yield from search(index, body)
    hits = answer["hits"]["hits"]
    return _stored_text(hits[0], fields) if hits else None


def _stored_text(hit: Hit, fields: Fields) -> StoredText:
    source = hit["_source"]
    # As it is indexed: another program may have written other types into the source.
    indexed = hit.get("fields", {})
    record = {name: indexed.get(f"{fields.dedup}.{name}", [None])[0] for name in _RECORD}
    return StoredText(
        id=hit["_id"],
        index=hit["_index"],
        text=text_of(source, fields, name=hit["_id"]),
        site=site_of(source, fields),
        root=record["root"] or None,
        fingerprint=record["fingerprint"] or None,
        page=record["page"] or None,
        signature=signature_of(source, fields),
        profile=record["profile"],
        seq=None if record["seq"] is None else int(record["seq"]),
        seen_ms=None if record["seen"] is None else int(record["seen"]),
    )


def _with_record(fields: Fields) -> Query:
    """Return the part of a search that adds to each hit its text, and its record as it is indexed."""
    record: list[Any] = [
        f"{fields.dedup}.{name}" for name in ("root", "fingerprint", "page", "profile", "seq")
    ]
    record.append({"field": f"{fields.dedup}.seen", "format": "epoch_millis"})
    return {"_source": [*with_text(fields), *site_fields(fields)], "docvalue_fields": record}
