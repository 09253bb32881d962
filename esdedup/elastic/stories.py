"""Edits of stories, stored in a forest's index, and the story ids that they give to articles."""

import itertools
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any, Literal, NamedTuple

from esdedup.elastic import limits
from esdedup.elastic.forest.stored import EDITS_SUFFIX, Document, unchanged
from esdedup.elastic.pages import Hits, first_page, next_page
from esdedup.elastic.requests import (
    Query,
    ReadClock,
    ReadDocument,
    ReadMappings,
    Requests,
    Write,
    refresh,
    search,
)
from esdedup.errors import ForestDamaged, ForestIncomplete, IndexNotReady, ServerBusy, ServerError
from esdedup.fields import Fields, partition_of
from esdedup.forest.stories import NO_STORIES, Edit, Stories

# This document has, for each index, the number of edits that the index's articles reflect. In old forests,
# the document also has the first edits.
_SETTLED_ID = "~edits"
_EDITS_AT_ONCE = 500
# Elasticsearch accepts at most 65,536 terms.
_MAX_KEYS = 30_000
# Maximum time from the assignment of an article's story until the article is indexed.
_MAX_INDEXING_DELAY_MS = 60_000
# Maximum number of passes. A pass is repeated if another process made an edit or wrote an article.
_MAX_PASSES = 100


class Edits(NamedTuple):
    """All edits of a forest at one time, and the stories that follow from them."""

    edits: tuple[Edit, ...] = ()
    stories: Stories = NO_STORIES


NO_EDITS = Edits()


def edit_document(edit: Edit) -> Document:
    """Return the document that stores an edit."""
    return f"~edit-{edit.number}", {"state": edit.model_dump(exclude_defaults=True)}


def read_edits(forest: str, known: Edits = NO_EDITS) -> Requests[Edits]:
    """Return all edits of a forest, reading only those after `known`; fast if there are no new edits."""
    edits, document_id = [*known.edits], _SETTLED_ID
    try:
        if not edits and (found := (yield ReadDocument(index=forest, id=document_id))):
            edits += (Edit.model_validate(each) for each in found["state"].get("edits", ()))
        while found := (yield ReadDocument(index=forest, id=f"~edit-{len(edits) + 1}")):
            # Without the privilege to refresh, the edits are read one at a time.
            yield from refresh(forest)
            ids = [f"~edit-{len(edits) + at}" for at in range(1, _EDITS_AT_ONCE)]
            (answer,) = yield from search(forest, {"query": {"ids": {"values": ids}}, "size": len(ids)})
            sources = {hit["_id"]: hit["_source"] for hit in answer["hits"]["hits"]} | {ids[0]: found}
            for document_id in ids[: len(sources)]:
                # On several shards, a later edit may be visible before an earlier one.
                each = sources.get(document_id) or (yield ReadDocument(index=forest, id=document_id)) or {}
                edits.append(Edit.model_validate(each["state"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ForestDamaged(
            f"the edits in the forest {forest!r} are damaged: another program changed the document "
            f"{document_id!r}; restore it",
            forest=forest,
            document=document_id,
            flaw=str(error),
        ) from error
    return known if len(edits) == len(known.edits) else Edits(tuple(edits), Stories(edits))


def write_document(forest: str, verb: Literal["create", "index"], document: Document) -> Requests[None]:
    """Write a document through the editors' alias; "create" leaves an existing document as it is."""
    # A write to the name of a deleted forest would recreate its index.
    target = {"_index": f"{forest}{EDITS_SUFFIX}", "_id": document[0], "require_alias": True}
    (status,) = yield Write(index=forest, operations=[{verb: target}, document[1]])
    if status == HTTPStatus.NOT_FOUND:
        raise ForestIncomplete(
            f"the forest {forest!r} accepts no edits: it is being rebuilt or migrated, or was deleted. If a "
            "rebuild or migration was interrupted, run it again, or let a feeder open the forest",
            forest=forest,
        )
    if status not in (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.CONFLICT):
        raise ServerError(
            f"the edit could not be written to the forest {forest!r}", index=forest, status=status
        )


def settle(
    forest: str, indices: Sequence[str], fields: Fields, known: Edits = NO_EDITS, *, only: Query | None = None
) -> Requests[tuple[Edits, int]]:
    """Update the stories of the articles that match `only`, or of all articles that edits may affect.

    Returns the edits, and how many articles got a different story. docs/forest.md has the protocol.
    """
    edits, changed = (yield from read_edits(forest, known)), 0
    since: dict[str, int] = dict.fromkeys(indices, len(edits.edits))
    for _ in range(_MAX_PASSES):
        number, refused, early_ms = len(edits.edits), 0, (yield ReadClock()) - _MAX_INDEXING_DELAY_MS
        found = (yield ReadDocument(index=forest, id=_SETTLED_ID)) or {"state": {"settled": {}}}
        state, settled = found["state"], found["state"]["settled"]
        since = {name: min(before, settled.get(name, 0)) for name, before in since.items()}
        for name in indices:
            for query in [only] if only else _touched(fields, edits, since[name]):
                written, late = yield from _settle_once(name, fields, forest, query, edits)
                changed, refused = changed + written, refused + late
        edits = yield from read_edits(forest, edits)
        if not refused and len(edits.edits) == number:
            break
    else:
        raise ServerBusy(f"other editors keep changing {indices[0]!r}", status=HTTPStatus.CONFLICT)
    last = len([*itertools.takewhile(lambda each: each.at_ms < early_ms, edits.edits)])
    if (later := {name: last for name in indices if last > settled.get(name, 0)}) and only is None:
        # If another process has written a higher number, replacing it with a lower one does no harm.
        state = state | {"settled": settled | later}
        yield from write_document(forest, "index", (_SETTLED_ID, {"state": state}))
    return edits, changed


def _touched(fields: Fields, edits: Edits, number: int) -> Iterator[Query]:
    """Yield queries for the articles that edits with a higher number than `number` may have changed."""
    roots, texts = map(sorted, touched_since(edits.edits, number))
    for at in range(0, max(len(roots), len(texts)), _MAX_KEYS):
        some_roots, some_texts = roots[at : at + _MAX_KEYS], texts[at : at + _MAX_KEYS]
        either = [
            {"terms": {fields.root: [*some_roots, *some_texts]}},
            {"terms": {fields.fingerprint: some_texts}},
        ]
        yield {"bool": {"should": either}}


def touched_since(edits: Sequence[Edit], number: int) -> tuple[set[str], set[str]]:
    """Return the roots and texts whose articles may have another story after the edits beyond `number`.

    Only an undo separates merged stories, so comparing the stories before and after each undo suffices.
    """
    later = edits[number:]
    stages = {number, len(edits)} | {
        at for each in later if each.undoes for at in (each.number - 1, each.number)
    }
    roots: set[str] = set()
    texts = {text for each in later for text in each.texts}
    for before, after in itertools.pairwise(Stories(edits[:at]) for at in sorted(stages)):
        changed_roots, changed_texts = after.changed_since(before)
        roots |= changed_roots
        texts |= changed_texts
    return roots, texts


def _settle_once(
    index: str, fields: Fields, forest: str, query: Query, edits: Edits
) -> Requests[tuple[int, int]]:
    """Update stories once; return how many articles changed, and how many updates had a conflict."""
    body = {
        "query": query,
        "size": limits.MAX_HITS,
        "sort": ["_doc"],
        "track_total_hits": False,
        "_source": False,
        "docvalue_fields": [fields.root, fields.cluster, fields.fingerprint],
        "seq_no_primary_term": True,
    }
    yield from refresh(index)
    page = yield from first_page(index, body)
    statuses: list[int] = []
    while True:
        # Read new edits before each page of hits, so that a slow pass does not write outdated stories.
        edits = yield from read_edits(forest, edits)
        statuses += yield from _rewrite(index, page.hits, fields, edits.stories)
        if page.is_last:
            break
        page = yield from next_page(page)
    if statuses:
        yield from refresh(index)
    return statuses.count(HTTPStatus.OK), statuses.count(HTTPStatus.CONFLICT)


def _rewrite(index: str, hits: Hits, fields: Fields, stories: Stories) -> Requests[list[int]]:
    operations: list[Query] = []
    for hit in hits:
        values = hit.get("fields", {})
        root, story, fingerprint = (
            values.get(name, [None])[0] for name in (fields.root, fields.cluster, fields.fingerprint)
        )
        right = None if root is None else stories.of(root, fingerprint)
        if right == story or right is None:
            continue
        routing = {"routing": hit["_routing"]} if "_routing" in hit else {}
        operations.append(
            {"update": {"_index": hit["_index"], "_id": hit["_id"], **routing, **unchanged(hit)}}
        )
        operations.append({"doc": {fields.dedup: story_values(right)}})
    return (yield from _update(index, operations)) if operations else []


def _update(index: str, operations: Sequence[Query]) -> Requests[list[int]]:
    """Update articles; raise if their index was deleted, since an update would recreate it empty."""
    names = {each["update"]["_index"] for each in operations[::2]}
    if not names <= (yield ReadMappings(index=index, is_fresh=True)).keys():
        raise IndexNotReady(f"the index {index!r} has been deleted", index=index, status=404)
    statuses: list[int] = yield Write(index=index, operations=operations)
    if HTTPStatus.FORBIDDEN in statuses:
        raise IndexNotReady(
            f"the index {index!r} is read-only, so its stories cannot be changed: make it writable, "
            "or leave it out",
            index=index,
            status=403,
        )
    others = {*statuses} - {HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
    if others:
        raise ServerError(f"cannot update the stories in {index!r}", index=index, status=min(others))
    return statuses


def story_values(story: str) -> dict[str, Any]:
    """Return the dedup fields that depend on an article's story."""
    return {"story": story, "partition": partition_of(story)}


def refuse_unwritable(indices: Sequence[str]) -> Requests[None]:
    """Raise if articles in these indices cannot be updated, as an update of a missing document shows."""
    for index in indices:
        missing = {"_index": index, "_id": "~none", "routing": "~required, perhaps"}
        operations: list[Query] = [{"update": missing}, {"doc": {}}]
        yield from _update(index, operations)
