"""Nodes and pages as documents of their forest's index, and queries on their fields. Pure.

A document holds its node or page in packed form. Its other fields repeat parts of that, and only serve to
find it. A node's document has the page of the arrival that made it, which for most nodes is the only one.
Each other page that is remembered, with a node or with none, has a document of its own.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from esdedup.elastic.forest.stored import Codec, Signed, Stored, StoredNode
from esdedup.fingerprint.bands import NODES, Layout
from esdedup.forest.model import NO_TIME
from esdedup.neighbours.relation import Relation

_Item = TypeVar("_Item")

Hit = dict[str, Any]
Document = tuple[str, dict[str, Any]]
"""A document's id and its source."""
JsonDocument = tuple[str, str]
"""The same, with the source as JSON."""

EDITS_SUFFIX = "-w-edits"
"""Suffix of the alias through which editors write, even while another process owns the forest."""

_LEAST_GROUPS = 10
# What `stored_of` reads.
_PACKED = ["packed"]
# The fields that repeat parts of it, by which documents are found and sorted.
_VALUES, _TIMES = ("root", "seq", "page"), ("made", "seen")
_REPEATED: list[Any] = [*_VALUES, *({"field": name, "format": "epoch_millis"} for name in _TIMES)]


def stored_in(hit: Hit, packing: Codec) -> Stored | None:
    """Read a node or page from a hit of `search_body`; None if it is neither, or damaged."""
    found = next(map(packing.unpack, packed_of([hit])), None)
    # Hits have an id only if the search asked for it.
    return None if found is None or hit.get("_id", found.document_id) != found.document_id else found


def packed_of(hits: Iterable[Hit]) -> list[bytes]:
    """Read nodes and pages from hits of `search_body` as they were packed."""
    fields = (hit.get("fields", {}).get("packed", []) for hit in hits)
    # OpenSearch leaves the padding out, and more than is needed does no harm.
    return [base64.b64decode(f"{values[0]}==") for values in fields if len(values) == 1]


def stored_of(hits: Iterable[Hit], relation: Relation) -> list[Stored]:
    """Read nodes and pages from hits of `search_body`, leaving out damaged ones."""
    packing = Codec(relation)
    return [found for hit in hits if (found := stored_in(hit, packing)) is not None]


def nodes_of(hits: Iterable[Hit], relation: Relation) -> list[StoredNode]:
    """Read nodes from hits of `search_body`, without pages and damaged documents."""
    return [each for each in stored_of(hits, relation) if isinstance(each, StoredNode)]


def agrees(hit: Hit, stored: Stored) -> bool:
    """Return whether the fields of a hit that was read with `repeated` are those of the node or page."""
    expected: dict[str, Any] = {"page": stored.page, "seen": stored.seen_ms}
    if isinstance(stored, StoredNode):
        expected |= {"root": stored.root, "seq": stored.seq, "made": stored.made_ms}
    # Unknown values have no field.
    known = {name: [str(value)] for name, value in expected.items() if value not in ("", NO_TIME)}
    fields = hit.get("fields", {})
    return known == {name: list(map(str, fields[name])) for name in (*_VALUES, *_TIMES) if name in fields}


def keys_of(signed: Sequence[Signed], relation: Relation, layout: Layout) -> list[list[str]]:
    """Return the keys of each: those of all representatives under which it is indexed."""
    return relation.terms(b"".join([each.signature for each in signed]), layout, are_indexed=True)


def columns_of(keys: Sequence[list[str]]) -> list[list[str]]:
    """Return columns of keys, each with one key of every node; nodes with fewer keys repeat theirs."""
    most = max(map(len, keys))
    return [sorted(set(column)) for column in zip(*((own * most)[:most] for own in keys), strict=True)]


def json_documents(packed: Sequence[bytes], relation: Relation) -> list[JsonDocument]:
    """Convert nodes and pages in packed form to documents, leaving out unknown times."""
    return relation.core.documents(packed, NODES)


def documents(stored: Iterable[Stored], relation: Relation) -> list[Document]:
    """Convert nodes and pages to documents."""
    packing = Codec(relation)
    written = json_documents([packing.pack(each) for each in stored], relation)
    return [(document_id, json.loads(source)) for document_id, source in written]


def unchanged(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the parameters that make a request fail if a document was written after this reading."""
    return {"if_seq_no": document["_seq_no"], "if_primary_term": document["_primary_term"]}


def search_body(
    query: dict[str, Any],
    *,
    size: int,
    sort: Sequence[Any] = ("_doc",),
    versions: bool = False,
    repeated: bool = False,
) -> dict[str, Any]:
    """Return the body of a search for nodes and pages.

    With `versions`, hits have ``_id``, ``_seq_no`` and ``_primary_term`` too, which takes longer; with
    `repeated`, the fields that `agrees` checks, which takes much longer.
    """
    return {
        "query": query,
        "sort": list(sort),
        "size": size,
        "docvalue_fields": [*_PACKED, *(_REPEATED if repeated else [])],
        "track_total_hits": False,
        **({"_source": False, "seq_no_primary_term": True} if versions else {"stored_fields": "_none_"}),
    }


def live_filter(live_since_ms: int) -> list[dict[str, Any]]:
    """Return filters for documents with at least this `seen`; none for NO_TIME, when everything lives."""
    return [] if live_since_ms == NO_TIME else [{"range": {"seen": {"gte": live_since_ms}}}]


def live_leaves(roots: Sequence[str], live_since_ms: int) -> dict[str, Any]:
    """Return a query for the live leaves of `roots`; `live_since_ms` as for `live_filter`."""
    return {
        "bool": {
            "filter": [{"terms": {"root": roots}}, {"term": {"leaf": True}}, *live_filter(live_since_ms)]
        }
    }


def interleaved(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """Deal items into at least ten groups of at most `size`; adjacent items go to different groups."""
    groups = max(_LEAST_GROUPS, -(-len(items) // size))
    return (items[first::groups] for first in range(min(groups, len(items))))
