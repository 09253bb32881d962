"""Nodes and content hashes, as values and as documents of a forest's index; and queries for them. Pure.

A document holds its node or content hash in packed form, which only the crate reads and writes. Its other
fields repeat parts of the packed form, for searches. A node's document also has the content hash of the
article that made it. Any other remembered content hash, with or without a node, has its own document.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.bands import Layout
from esdedup.forest.model import NO_HASH, NO_TIME
from esdedup.neighbours.relation import Relation

_Item = TypeVar("_Item")

Hit = dict[str, Any]
Document = tuple[str, dict[str, Any]]
"""A document's id and its source."""
JsonDocument = tuple[str, str]
"""A document's id, and its source as JSON."""

EDITS_SUFFIX = "-w-edits"
"""Suffix of the alias through which editors write, even while another process owns the forest."""

HASH_PREFIX = "page-"
"""How the id of a content hash's document begins."""

_MIN_GROUPS = 10
# The field that `stored_of` reads.
_PACKED = ["packed"]
# The fields that repeat parts of the packed form, to find and sort documents.
_VALUES, _TIMES = ("root", "seq", "page"), ("made", "seen")
_REPEATED: list[Any] = [*_VALUES, *({"field": name, "format": "epoch_millis"} for name in _TIMES)]
# A simhash, or a hash of a whole signature.
_NODE_ID = re.compile("[0-9a-f]{16}|[0-9a-f]{32}")
_HASH = re.compile("[0-9a-f]{16}")


class Signed(Protocol):
    """Anything with a signature."""

    @property
    def signature(self) -> bytes:
        """The bytes that a `Relation` compares."""


class StoredHash(NamedTuple):
    """A remembered content hash."""

    # The content hash, 16 hex digits.
    content_hash: str
    # The id of the node of texts with this hash; None if these texts have no fingerprint.
    node: str | None
    # The forest's time when it was last seen, rounded up; NO_TIME if that was unknown.
    seen_ms: int

    @property
    def is_hash(self) -> bool:
        """Whether this is a content hash, not a node."""
        return True

    @property
    def document_id(self) -> str:
        """The id of its document, which differs from the ids of all nodes."""
        return f"{HASH_PREFIX}{self.content_hash}"


class StoredNode(NamedTuple):
    """A node as its document stores it."""

    id: str
    # The id of its root; a root has its own id.
    root: str
    # The bytes that a `Relation` compares. A root that was recreated without its text may have the signature
    # of a leaf.
    signature: bytes
    # The number of the article that made it.
    seq: int
    # The forest's time when it was made, milliseconds since 1970; NO_TIME if that was unknown.
    made_ms: int
    # The forest's time when it was last seen, rounded up; NO_TIME if that was unknown.
    seen_ms: int
    # The content hash of the article that made it, 16 hex digits, and when that hash was last seen. Empty for
    # a root that was recreated without its article.
    content_hash: str = ""
    hash_seen_ms: int = NO_TIME
    # The id of the root that this root is a part of, which may have expired; empty if there is none.
    part_of: str = ""
    # The id of an earlier root that is a part of this root, which may have expired; empty if there is none.
    has_part: str = ""

    @property
    def is_hash(self) -> bool:
        """Whether this is a content hash, not a node."""
        return False

    @property
    def document_id(self) -> str:
        """The id of its document, which is the node's id."""
        return self.id

    @property
    def is_root(self) -> bool:
        """Whether the node is the root of its tree."""
        return self.id == self.root

    @property
    def links(self) -> dict[str, str | None]:
        """The node's links, under their field names in articles; None for a missing link."""
        return {"part_of": self.part_of or None, "has_part": self.has_part or None}

    @property
    def own_hash(self) -> StoredHash | None:
        """The content hash of the article that made it; None if it is unknown."""
        return StoredHash(self.content_hash, self.id, self.hash_seen_ms) if self.content_hash else None

    def remembering(self, content_hash: str, seen_ms: int) -> "Stored":
        """Return the node or content hash to write so that `content_hash` is remembered with this node."""
        if self.content_hash in {"", content_hash}:
            return self._replace(content_hash=content_hash, hash_seen_ms=seen_ms)
        return StoredHash(content_hash, self.id, seen_ms)


Stored = StoredNode | StoredHash
"""One stored document: a node or a content hash."""


def hash_name(content_hash: int) -> str:
    """Return a content hash in the form stored in documents; empty for NO_HASH."""
    return "" if content_hash == NO_HASH else f"{content_hash:016x}"


def is_node_id(name: object) -> TypeGuard[str]:
    """Return whether `name` can be the id of a node: 16 or 32 hex digits."""
    return isinstance(name, str) and _NODE_ID.fullmatch(name) is not None


def is_hash_name(name: object) -> bool:
    """Return whether `name` can be a content hash: 16 hex digits."""
    return isinstance(name, str) and _HASH.fullmatch(name) is not None


def unpack(packed: bytes, relation: Relation) -> Stored | None:
    """Return the node or content hash in packed bytes; None if the length is invalid."""
    fields = relation.core.unpack(packed)
    if fields is None:
        return None
    return StoredHash(*fields) if len(fields) == len(StoredHash._fields) else StoredNode(*fields)


def unpacked(packed: Iterable[bytes], relation: Relation) -> list[Stored]:
    """Return the nodes and content hashes in packed bytes, leaving out those of invalid length."""
    return [found for each in packed if (found := unpack(each, relation)) is not None]


def packed_by_id(packed: Iterable[bytes], relation: Relation) -> dict[str, bytes]:
    """Return packed nodes and content hashes by document id, leaving out those of invalid length."""
    found = ((each, unpack(each, relation)) for each in packed)
    return {stored.document_id: each for each, stored in found if stored is not None}


def signatures_of(signed: Iterable[Signed], relation: Relation) -> npt.NDArray[Any]:
    """Return the signatures as an array in the relation's dtype."""
    return np.frombuffer(b"".join([each.signature for each in signed]), relation.dtype)


def genuine(nodes: Sequence[StoredNode], relation: Relation) -> list[StoredNode]:
    """Return the nodes with a signature of their own; a recreated root may have the signature of a leaf."""
    names = relation.ids(signatures_of(nodes, relation))
    return [node for node, name in zip(nodes, names, strict=True) if name == node.id]


def recreate_root(root_id: str, leaf: StoredNode, relation: Relation) -> StoredNode:
    """Recreate a lost root from one of its leaves.

    The root's signature is derived from its id if the profile allows that. Otherwise the root has the leaf's
    signature until an article with the root's own text arrives.
    """
    signature = relation.signature_of(root_id) or leaf.signature
    return leaf._replace(id=root_id, root=root_id, signature=signature, content_hash="", hash_seen_ms=NO_TIME)


def stored_in(hit: Hit, relation: Relation) -> Stored | None:
    """Read a node or content hash from a hit of `search_body`; None if it is neither, or damaged."""
    found = next((unpack(packed, relation) for packed in packed_of([hit])), None)
    # Hits have an id only if the search requested it.
    return None if found is None or hit.get("_id", found.document_id) != found.document_id else found


def packed_of(hits: Iterable[Hit]) -> list[bytes]:
    """Return the packed nodes and content hashes of hits of `search_body`."""
    fields = (hit.get("fields", {}).get("packed", []) for hit in hits)
    # OpenSearch omits the padding of base64; too much padding does no harm.
    return [base64.b64decode(f"{values[0]}==") for values in fields if len(values) == 1]


def stored_of(hits: Iterable[Hit], relation: Relation) -> list[Stored]:
    """Read nodes and content hashes from hits of `search_body`, leaving out damaged documents."""
    return [found for hit in hits if (found := stored_in(hit, relation)) is not None]


def nodes_of(hits: Iterable[Hit], relation: Relation) -> list[StoredNode]:
    """Read nodes from hits of `search_body`, leaving out content hashes and damaged documents."""
    return [each for each in stored_of(hits, relation) if isinstance(each, StoredNode)]


def agrees(hit: Hit, stored: Stored) -> bool:
    """Return whether the fields of a hit, read with `repeated`, agree with its node or content hash."""
    expected: dict[str, Any] = {"page": stored.content_hash, "seen": stored.seen_ms}
    if isinstance(stored, StoredNode):
        expected |= {"root": stored.root, "seq": stored.seq, "made": stored.made_ms}
    # Unknown values have no field.
    known = {name: [str(value)] for name, value in expected.items() if value not in ("", NO_TIME)}
    fields = hit.get("fields", {})
    return known == {name: list(map(str, fields[name])) for name in (*_VALUES, *_TIMES) if name in fields}


def keys_of(signed: Sequence[Signed], relation: Relation, layout: Layout) -> list[list[str]]:
    """Return for each signature the keys of all representatives under which it is indexed."""
    return relation.terms(b"".join([each.signature for each in signed]), layout, are_indexed=True)


def columns_of(keys: Sequence[list[str]]) -> list[list[str]]:
    """Return columns of keys, each with one key of every node; nodes with fewer keys repeat some."""
    most = max(map(len, keys))
    return [sorted(set(column)) for column in zip(*((own * most)[:most] for own in keys), strict=True)]


def json_documents(packed: Iterable[bytes], relation: Relation, layout: Layout) -> list[JsonDocument]:
    """Convert packed nodes and content hashes to documents, leaving out unknown times."""
    return relation.core.documents([*packed], layout)


def unchanged(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the parameters that make a write fail if the document has been written since it was read."""
    return {"if_seq_no": document["_seq_no"], "if_primary_term": document["_primary_term"]}


def search_body(
    query: dict[str, Any],
    *,
    size: int,
    sort: Sequence[Any] = ("_doc",),
    versions: bool = False,
    repeated: bool = False,
) -> dict[str, Any]:
    """Return the body of a search for nodes and content hashes.

    With `versions`, hits also have ``_id``, ``_seq_no`` and ``_primary_term``, which takes longer. With
    `repeated`, they have the fields that `agrees` checks, which takes much longer.
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
    """Return filters for documents last seen at `live_since_ms` or later; no filters for NO_TIME."""
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
    groups = max(_MIN_GROUPS, -(-len(items) // size))
    return (items[first::groups] for first in range(min(groups, len(items))))
