"""Nodes and pages in packed form: all that a forest keeps of one, as a single binary value.

Elasticsearch returns one such value of a document many times faster than eight fields. The crate writes and
reads the same (`core/src/forest/records.rs`).
"""

import base64
import struct

from esdedup.elastic.forest.stored import Stored, StoredNode, StoredPage, page_name
from esdedup.forest.model import NO_PAGE
from esdedup.neighbours.relation import Relation


class Packing:
    """Packs and unpacks the nodes of one relation, and pages. Ids are packed as bytes, pages as numbers."""

    def __init__(self, relation: Relation) -> None:
        """Pack nodes with signatures of this relation."""
        size = relation.id_bytes
        # Fields in the order of `StoredNode`, but for the signature, which comes last.
        self._node = struct.Struct(f"<{size}s{size}sqqqQq{relation.dtype.itemsize}s")
        # A page, when it was seen, and the node that it got, if any.
        self._bare_page = struct.Struct("<Qq")
        self._page = struct.Struct(f"<Qq{size}s")

    def pack(self, stored: Stored) -> bytes:
        """Return a node or page in packed form."""
        if isinstance(stored, StoredPage):
            bare = self._bare_page.pack(int(stored.page, 16), stored.seen_ms)
            return bare + bytes.fromhex(stored.node or "")
        return self._node.pack(
            bytes.fromhex(stored.id),
            bytes.fromhex(stored.root),
            stored.seq,
            stored.made_ms,
            stored.seen_ms,
            int(stored.page, 16) if stored.page else NO_PAGE,
            stored.page_seen_ms,
            stored.signature,
        )

    def unpack(self, packed: bytes) -> Stored | None:
        """Return the node or page that `pack` packed; None if it is of another length than these have."""
        if len(packed) == self._node.size:
            node, root, seq, made_ms, seen_ms, page, page_seen_ms, signature = self._node.unpack(packed)
            return StoredNode(
                node.hex(), root.hex(), signature, seq, made_ms, seen_ms, page_name(page), page_seen_ms
            )
        if len(packed) == self._page.size:
            page, seen_ms, node = self._page.unpack(packed)
            return StoredPage(f"{page:016x}", node.hex(), seen_ms)
        if len(packed) == self._bare_page.size:
            page, seen_ms = self._bare_page.unpack(packed)
            return StoredPage(f"{page:016x}", None, seen_ms)
        return None


def as_field(packed: bytes) -> str:
    """Return what is packed as documents have it."""
    return base64.b64encode(packed).decode()


def of_field(value: str) -> bytes:
    """Return what a document has, packed."""
    return base64.b64decode(value)
