"""A node as a document of its forest's index."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from esdedup.bands import Layout
from esdedup.forest.model import NO_TIME
from esdedup.simhash import from_hex

_Item = TypeVar("_Item")

Document = tuple[str, dict[str, Any]]
"""A document's id, and what it holds."""

# Limits of Elasticsearch: terms in one query, hits and buckets in one answer.
MAX_TERMS = 65_536
MAX_HITS = 10_000
MAX_BUCKETS = 65_536

_LEAST_GROUPS = 10
_NODE_ID = re.compile("[0-9a-f]{16}")

# What `node_of` reads of a hit.
FIELDS: list[Any] = [
    "root",
    "seq",
    *({"field": name, "format": "epoch_millis"} for name in ("made", "seen")),
]


class StoredNode(NamedTuple):
    """A node as its document has it."""

    id: str
    # The id of its root; its own for a root.
    root: str
    # The arrival that made it.
    seq: int
    # The forest's time when it was made, milliseconds since 1970; NO_TIME where none was known.
    made_ms: int
    # Until when it was last needed, rounded up; NO_TIME where no time was known.
    seen_ms: int

    @property
    def is_root(self) -> bool:
        """Whether the node is the root of its tree."""
        return self.id == self.root


def is_node_id(name: object) -> bool:
    """Tell whether that can be the id of a node: 16 hex digits."""
    return isinstance(name, str) and _NODE_ID.fullmatch(name) is not None


def node_of(hit: dict[str, Any]) -> StoredNode | None:
    """Read a node from a hit of a search for `FIELDS`; None if it is none, or damaged."""
    fields = hit.get("fields", {})
    roots = fields.get("root", [])
    if "seq" not in fields or len(roots) != 1 or not is_node_id(roots[0]) or not is_node_id(hit["_id"]):
        return None
    return StoredNode(
        hit["_id"], roots[0], int(fields["seq"][0]), _time(fields, "made"), _time(fields, "seen")
    )


def nodes_of(hits: Iterable[dict[str, Any]]) -> list[StoredNode]:
    """Read nodes from hits; damaged ones are left out."""
    return [node for hit in hits if (node := node_of(hit)) is not None]


def documents(nodes: Sequence[StoredNode], layout: Layout) -> list[Document]:
    """Write nodes as documents; a time that is not known is left out."""
    keys = layout.terms(from_hex(node.id for node in nodes))
    return [
        (
            node.id,
            {"root": node.root, "leaf": not node.is_root, "seq": node.seq, "keys": terms}
            | ({} if node.made_ms == NO_TIME else {"made": node.made_ms})
            | ({} if node.seen_ms == NO_TIME else {"seen": node.seen_ms}),
        )
        for node, terms in zip(nodes, keys, strict=True)
    ]


def live_filter(live_since_ms: int) -> list[dict[str, Any]]:
    """Return the filters that leave the nodes whose `seen` is that or later; NO_TIME: all of them."""
    return [] if live_since_ms == NO_TIME else [{"range": {"seen": {"gte": live_since_ms}}}]


def chunks(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """Cut a sequence into pieces of at most `size`."""
    return (items[at : at + size] for at in range(0, len(items), size))


def apart(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """Part a sequence into at least ten groups of at most `size`, so that no neighbours share one."""
    groups = max(_LEAST_GROUPS, -(-len(items) // size))
    return (items[first::groups] for first in range(min(groups, len(items))))


def _time(fields: dict[str, Any], name: str) -> int:
    return int(fields[name][0]) if name in fields else NO_TIME
