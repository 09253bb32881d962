"""Nodes and pages as documents of their forest's index, and queries on their fields. Pure.

A node's document has the page of the arrival that made it, which for most nodes is the only one. Each other
page that is remembered, with a node or with none, has a document of its own.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.bands import Layout
from esdedup.forest.model import NO_PAGE, NO_TIME
from esdedup.neighbours.relation import Relation
from esdedup.neighbours.representatives import terms_of_rows

_Item = TypeVar("_Item")

Document = tuple[str, dict[str, Any]]
"""A document's id and its source."""

_LEAST_GROUPS = 10
# A simhash, or a hash of all that is compared.
_NODE_ID = re.compile("[0-9a-f]{16}|[0-9a-f]{32}")
_PAGE = re.compile("[0-9a-f]{16}")
# Stands for the node of a page that got none.
_NO_NODE_ID = ""

# The fields of a hit that `node_of` and `page_of` read.
_FIELDS: list[Any] = [
    *("root", "seq", "signature", "page", "node"),
    *({"field": name, "format": "epoch_millis"} for name in ("made", "seen", "page_seen")),
]


class Signed(Protocol):
    """Anything with a signature."""

    @property
    def signature(self) -> bytes:
        """What the profile's relation compares."""


class StoredPage(NamedTuple):
    """A remembered page."""

    # The id of the page, 16 hex digits.
    page: str
    # The id of the node that it got; None if it got none.
    node: str | None
    # The forest's time when it was last seen, rounded up; NO_TIME if none was known.
    seen_ms: int

    @property
    def document_id(self) -> str:
        """The id of its document, which can be no node's."""
        return f"page-{self.page}"


class StoredNode(NamedTuple):
    """A node as its document stores it."""

    id: str
    # The id of its root; its own for a root.
    root: str
    # What the profile's relation compares, as bytes. A root that was recreated without its text has the
    # signature of a leaf.
    signature: bytes
    # The number of the arrival that made it.
    seq: int
    # The forest's time when it was made, milliseconds since 1970; NO_TIME if none was known.
    made_ms: int
    # The forest's time when it was last needed, rounded up; NO_TIME if none was known.
    seen_ms: int
    # The page of the arrival that made it, 16 hex digits, and when that was last seen; empty for a root that
    # was recreated without its article.
    page: str = ""
    page_seen_ms: int = NO_TIME

    @property
    def document_id(self) -> str:
        """The id of its document: the node's own."""
        return self.id

    @property
    def is_root(self) -> bool:
        """Whether the node is the root of its tree."""
        return self.id == self.root

    @property
    def own_page(self) -> StoredPage | None:
        """The page of the arrival that made it; None if that is not known."""
        return StoredPage(self.page, self.id, self.page_seen_ms) if self.page else None

    def remembering(self, page: str, seen_ms: int) -> "Stored":
        """Return what is to be written so that a page is remembered with this node."""
        if self.page in {"", page}:
            return self._replace(page=page, page_seen_ms=seen_ms)
        return StoredPage(page, self.id, seen_ms)


Stored = StoredNode | StoredPage
"""What has a document of its own."""


def page_name(page: int) -> str:
    """Return the id of a page as documents have it; empty for NO_PAGE."""
    return "" if page == NO_PAGE else f"{page:016x}"


def is_node_id(name: object) -> bool:
    """Return whether `name` can be the id of a node: 16 or 32 hex digits."""
    return isinstance(name, str) and _NODE_ID.fullmatch(name) is not None


def is_page_id(name: object) -> bool:
    """Return whether `name` can be the id of a page: 16 hex digits."""
    return isinstance(name, str) and _PAGE.fullmatch(name) is not None


def node_of(hit: dict[str, Any], relation: Relation) -> StoredNode | None:
    """Read a node from a hit of `search_body`; None if it is not a node, or damaged."""
    fields = hit.get("fields", {})
    roots = fields.get("root", [])
    if not {"seq", "signature"} <= fields.keys() or len(roots) != 1:
        return None
    if not is_node_id(roots[0]) or not is_node_id(hit["_id"]):
        return None
    signature = base64.b64decode(fields["signature"][0])
    if len(signature) != relation.dtype.itemsize:
        return None
    return StoredNode(
        hit["_id"],
        roots[0],
        signature,
        int(fields["seq"][0]),
        _time(fields, "made"),
        _time(fields, "seen"),
        _page(fields),
        _time(fields, "page_seen"),
    )


def page_of(hit: dict[str, Any]) -> StoredPage | None:
    """Read a page from a hit of `search_body`; None if it is no page's own document, or damaged."""
    fields = hit.get("fields", {})
    page, nodes = _page(fields), fields.get("node", [])
    if not page or len(nodes) != 1 or not (nodes[0] == _NO_NODE_ID or is_node_id(nodes[0])):
        return None
    found = StoredPage(page, nodes[0] or None, _time(fields, "seen"))
    return found if hit["_id"] == found.document_id else None


def nodes_of(hits: Iterable[dict[str, Any]], relation: Relation) -> list[StoredNode]:
    """Read nodes from hits of `search_body`, leaving out damaged ones."""
    return [node for hit in hits if (node := node_of(hit, relation)) is not None]


def stored_of(hits: Iterable[dict[str, Any]], relation: Relation) -> list[Stored]:
    """Read nodes and pages from hits of `search_body`, leaving out damaged ones."""
    return [found for hit in hits if (found := node_of(hit, relation) or page_of(hit)) is not None]


def signatures_of(signed: Iterable[Signed], relation: Relation) -> npt.NDArray[Any]:
    """Return the signatures as an array in the relation's dtype."""
    return np.frombuffer(b"".join([each.signature for each in signed]), relation.dtype)


def recreate_root(root_id: str, leaf: StoredNode, relation: Relation) -> StoredNode:
    """Recreate a lost root from one of its leaves.

    Its signature is read from its id if the profile allows that. Otherwise it is the leaf's, until an
    article brings the root's own.
    """
    signature = relation.signature_of(root_id) or leaf.signature
    return leaf._replace(id=root_id, root=root_id, signature=signature, page="", page_seen_ms=NO_TIME)


def keys_of(signed: Sequence[Signed], relation: Relation, layout: Layout) -> list[list[str]]:
    """Return the keys of each: those of all representatives under which it is indexed."""
    signatures = signatures_of(signed, relation)
    return terms_of_rows(relation.representatives(signatures), relation.indexed(signatures), relation, layout)


def columns_of(keys: Sequence[list[str]]) -> list[list[str]]:
    """Return columns of keys, each with one key of every node; nodes with fewer keys repeat theirs."""
    most = max(map(len, keys))
    return [sorted(set(column)) for column in zip(*((own * most)[:most] for own in keys), strict=True)]


def documents(stored: Sequence[Stored], relation: Relation, layout: Layout) -> list[Document]:
    """Convert nodes and pages to documents, leaving out unknown times."""
    keys = iter(keys_of([each for each in stored if isinstance(each, StoredNode)], relation, layout))
    return [
        _page_document(each) if isinstance(each, StoredPage) else _node_document(each, next(keys))
        for each in stored
    ]


def search_body(
    query: dict[str, Any], *, size: int, sort: Sequence[Any] = ("_doc",), versions: bool = False
) -> dict[str, Any]:
    """Return the body of a search for nodes and pages.

    Args:
        query: Which of them.
        size: How many at most.
        sort: As Elasticsearch takes it.
        versions: Whether hits have ``_seq_no`` and ``_primary_term`` too.
    """
    return {
        "query": query,
        "sort": list(sort),
        "size": size,
        "_source": False,
        "docvalue_fields": _FIELDS,
        "track_total_hits": False,
        "seq_no_primary_term": versions,
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


def chunks(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """Cut a sequence into pieces of at most `size`."""
    return (items[at : at + size] for at in range(0, len(items), size))


def interleaved(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """Deal items into at least ten groups of at most `size`; adjacent items go to different groups."""
    groups = max(_LEAST_GROUPS, -(-len(items) // size))
    return (items[first::groups] for first in range(min(groups, len(items))))


def _node_document(node: StoredNode, keys: list[str]) -> Document:
    body = {
        "root": node.root,
        "leaf": not node.is_root,
        "seq": node.seq,
        "signature": base64.b64encode(node.signature).decode(),
        "keys": keys,
    }
    page = {"page": node.page, **_known(page_seen=node.page_seen_ms)} if node.page else {}
    return node.id, body | _known(made=node.made_ms, seen=node.seen_ms) | page


def _page_document(page: StoredPage) -> Document:
    # A document without the field is damaged.
    return page.document_id, {
        "page": page.page,
        "node": page.node or _NO_NODE_ID,
        **_known(seen=page.seen_ms),
    }


def _known(**times_ms: int) -> dict[str, int]:
    """Return the times that are known."""
    return {name: time_ms for name, time_ms in times_ms.items() if time_ms != NO_TIME}


def _page(fields: dict[str, Any]) -> str:
    """Return the id of a page in a hit; empty if there is none, or a damaged one."""
    pages = fields.get("page", [])
    return pages[0] if len(pages) == 1 and is_page_id(pages[0]) else ""


def _time(fields: dict[str, Any], name: str) -> int:
    return int(fields[name][0]) if name in fields else NO_TIME
