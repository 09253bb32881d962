"""Nodes and pages in packed form: all that a forest keeps of one, as a single binary value.

Elasticsearch returns one such value of a document many times faster than eight fields.
"""

import base64
import binascii
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.elastic.forest.stored import Stored, StoredNode, StoredPage, page_name
from esdedup.forest.model import NO_PAGE
from esdedup.neighbours.relation import Relation


class Records(NamedTuple):
    """Nodes and pages as arrays of their fields."""

    # With `id`, `root`, `seq`, `made`, `seen`, `page`, `page_seen` and `signature`, as `StoredNode` has them;
    # ids are bytes.
    nodes: npt.NDArray[Any]
    # With `page`, `seen` and, if they got a node, `node`.
    pages: npt.NDArray[Any]
    bare_pages: npt.NDArray[Any]


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
        # The same for arrays.
        node_id, bare = f"V{size}", [("page", "<u8"), ("seen", "<i8")]
        names = "seq", "made", "seen", "page", "page_seen"
        numbers = [(name, "<u8" if name == "page" else "<i8") for name in names]
        self._dtypes = [
            np.dtype([("id", node_id), ("root", node_id), *numbers, ("signature", relation.dtype)]),
            np.dtype([*bare, ("node", node_id)]),
            np.dtype(bare),
        ]

    def pack(self, stored: Stored) -> str:
        """Return a node or page in packed form, in base 64."""
        if isinstance(stored, StoredPage):
            packed = self._bare_page.pack(int(stored.page, 16), stored.seen_ms)
            packed += bytes.fromhex(stored.node or "")
        else:
            packed = self._node.pack(
                bytes.fromhex(stored.id),
                bytes.fromhex(stored.root),
                stored.seq,
                stored.made_ms,
                stored.seen_ms,
                int(stored.page, 16) if stored.page else NO_PAGE,
                stored.page_seen_ms,
                stored.signature,
            )
        return base64.b64encode(packed).decode()

    def unpack(self, packed: str) -> Stored | None:
        """Return the node or page that `pack` packed; None if it is of another length than these have."""
        content = base64.b64decode(packed)
        if len(content) == self._node.size:
            node, root, seq, made_ms, seen_ms, page, page_seen_ms, signature = self._node.unpack(content)
            return StoredNode(
                node.hex(), root.hex(), signature, seq, made_ms, seen_ms, page_name(page), page_seen_ms
            )
        if len(content) == self._page.size:
            page, seen_ms, node = self._page.unpack(content)
            return StoredPage(f"{page:016x}", node.hex(), seen_ms)
        if len(content) == self._bare_page.size:
            page, seen_ms = self._bare_page.unpack(content)
            return StoredPage(f"{page:016x}", None, seen_ms)
        return None

    def records(self, packed: Sequence[str]) -> Records:
        """Return what was packed, leaving out what is of another length than nodes and pages have."""
        by_size: dict[int, list[bytes]] = {dtype.itemsize: [] for dtype in self._dtypes}
        for content in map(binascii.a2b_base64, packed):
            by_size.get(len(content), []).append(content)
        return Records(*(np.frombuffer(b"".join(by_size[dtype.itemsize]), dtype) for dtype in self._dtypes))
