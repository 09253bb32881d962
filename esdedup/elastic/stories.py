"""Edits in a forest's index, and the stories of articles in theirs."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from esdedup.elastic import limits
from esdedup.elastic.forest.documents import Document
from esdedup.elastic.pages import Hits, first_page, next_page
from esdedup.elastic.requests import Query, ReadVersion, Refresh, Requests, Write
from esdedup.errors import ForestDamaged, IndexNotReady, ServerError
from esdedup.fields import Fields, partition_of
from esdedup.forest.stories import NO_STORIES, Edit, Stories

_ID = "~edits"
# Elasticsearch takes 65,536 terms.
_MOST_KEYS = 30_000


class Edits(NamedTuple):
    """All edits of a forest, as they were at some version of their document."""

    edits: tuple[Edit, ...] = ()
    # By index: the number of the last edit that all of its articles have.
    settled: dict[str, int] = {}  # noqa: RUF012 - never changed
    version: tuple[int, int] | None = None
    stories: Stories = NO_STORIES

    def document(self) -> Document:
        """Return the document that keeps them."""
        edits = [each.model_dump(exclude_defaults=True) for each in self.edits]
        return _ID, {"state": {"edits": edits, "settled": self.settled}}


def read_edits(forest: str, known: Edits | None = None) -> Requests[Edits]:
    """Read the edits of a forest; what is known is returned if it is still so, and costs little to ask."""
    if known is not None:
        found = yield ReadVersion(index=forest, id=_ID, has_source=False)
        if _version(found) == known.version:
            return known
    found = yield ReadVersion(index=forest, id=_ID)
    if found is None:
        return Edits()
    try:
        state = found["_source"]["state"]
        edits = tuple(Edit.model_validate(each) for each in state["edits"])
        return Edits(edits, dict(state["settled"]), _version(found), Stories(edits))
    except (KeyError, TypeError, ValueError) as error:
        raise ForestDamaged(
            f"the edits in the forest {forest!r} are damaged: another program changed the document {_ID!r}; "
            "restore it, or delete it, which undoes all edits",
            forest=forest,
            document=_ID,
            flaw=str(error),
        ) from error


def write_edits(forest: str, changed: Edits) -> Requests[bool]:
    """Write the edits of a forest; return false, and write nothing, if they are others by now."""
    document_id, document = changed.document()
    target: Query = {"_index": forest, "_id": document_id}
    if changed.version is None:
        operation = {"create": target}
    else:
        seq_no, primary_term = changed.version
        operation = {"index": target | {"if_seq_no": seq_no, "if_primary_term": primary_term}}
    (status,) = yield Write(index=forest, operations=[operation, document])
    if status == HTTPStatus.CONFLICT:
        return False
    if status not in (HTTPStatus.OK, HTTPStatus.CREATED):
        raise ServerError(
            f"the edit could not be written to the forest {forest!r}", index=forest, status=status
        )
    return True


def _version(found: Any) -> tuple[int, int] | None:
    return None if found is None else (found["_seq_no"], found["_primary_term"])


def without_story(fields: Fields) -> Query:
    """Return the query for articles that have a root and no story."""
    return {
        "bool": {
            "filter": {"exists": {"field": fields.root}},
            "must_not": {"exists": {"field": fields.cluster}},
        }
    }


def settle_edits(index: str, fields: Fields, edits: Edits) -> Requests[int]:
    """Give the articles of an index the stories that edits say, as far as they do not have them.

    Returns how many articles got another story.
    """
    before = Stories(edits.edits[: edits.settled.get(index, 0)])
    roots, texts = (sorted(each) for each in edits.stories.changed_since(before))
    changed = 0
    for at in range(0, max(len(roots), len(texts)), _MOST_KEYS):
        some_roots, some_texts = roots[at : at + _MOST_KEYS], texts[at : at + _MOST_KEYS]
        either = [
            {"terms": {fields.root: [*some_roots, *some_texts]}},
            {"terms": {fields.fingerprint: some_texts}},
        ]
        changed += yield from settle(index, fields, edits.stories, {"bool": {"should": either}})
    return changed


def settle(index: str, fields: Fields, stories: Stories, query: Query) -> Requests[int]:
    """Give the articles that match their stories; return how many had another one, or none."""
    body = {
        "query": query,
        "size": limits.MAX_HITS,
        "sort": ["_doc"],
        "track_total_hits": False,
        "_source": False,
        "docvalue_fields": [fields.root, fields.cluster, fields.fingerprint],
        "seq_no_primary_term": True,
    }
    changed, is_whole = 0, False
    while not is_whole:
        is_whole = True
        yield Refresh(index=index)
        page = yield from first_page(index, body)
        while True:
            written, refused = yield from _rewrite(index, page.hits, fields, stories)
            changed += written
            # Such an article was written meanwhile, perhaps with the story of before.
            is_whole = is_whole and not refused
            if page.is_last:
                break
            page = yield from next_page(page)
    if changed:
        yield Refresh(index=index)
    return changed


def _rewrite(index: str, hits: Hits, fields: Fields, stories: Stories) -> Requests[tuple[int, int]]:
    operations: list[Query] = []
    for hit in hits:
        values = hit.get("fields", {})
        root, story, fingerprint = (
            values.get(name, [None])[0] for name in (fields.root, fields.cluster, fields.fingerprint)
        )
        right = None if root is None else stories.of(root, fingerprint)
        if right == story or right is None:
            continue
        condition = {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
        operations.append({"update": {"_index": hit["_index"], "_id": hit["_id"], **condition}})
        operations.append({"doc": {fields.dedup: story_values(right)}})
    statuses = (yield Write(index=index, operations=operations)) if operations else []
    _refuse_blocked(index, statuses)
    written = sum(status == HTTPStatus.OK for status in statuses)
    return written, len(statuses) - written


def story_values(story: str) -> dict[str, Any]:
    """Return the dedup fields that follow from the story of an article."""
    return {"story": story, "partition": partition_of(story)}


def refuse_unwritable(indices: Sequence[str]) -> Requests[None]:
    """Make sure that articles of these indices may be changed, by an update of one that there is not."""
    for index in indices:
        operations: list[Query] = [{"update": {"_index": index, "_id": "~none"}}, {"doc": {}}]
        _refuse_blocked(index, (yield Write(index=index, operations=operations)))


def _refuse_blocked(index: str, statuses: Sequence[int]) -> None:
    if HTTPStatus.FORBIDDEN in statuses:
        raise IndexNotReady(
            f"the index {index!r} is read-only, so its articles cannot get another story: make it writable, "
            "or leave it out",
            index=index,
            status=403,
        )
    others = {*statuses} - {HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
    if others:
        raise ServerError(f"articles in {index!r} could not get their story", index=index, status=min(others))
