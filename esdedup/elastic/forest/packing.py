"""Nodes and pages in packed form: all that a forest keeps of one, as a single binary value.

Elasticsearch returns one such value of a document many times faster than eight fields. The crate writes and
reads the same (`core/src/forest/records.rs`). A log has many of them, one after the other.
"""

import base64
import contextlib
import enum
import struct
from collections.abc import Iterable, Iterator

from esdedup.elastic.forest.stored import Stored, StoredNode, StoredPage, page_name
from esdedup.forest.model import NO_PAGE
from esdedup.neighbours.relation import Relation


class Packing:
    """Packs and unpacks the nodes of one relation, and pages. Ids are packed as bytes, pages as numbers."""

    def __init__(self, relation: Relation) -> None:
        """Pack nodes with signatures of this relation."""
        size = self.id_bytes = relation.id_bytes
        # Fields in the order of `StoredNode`, but for the signature, which comes last.
        self._node = struct.Struct(f"<{size}s{size}sqqqQq{relation.dtype.itemsize}s")
        # A page, when it was seen, and the node that it got, if any.
        self._bare_page = struct.Struct("<Qq")
        self._page = struct.Struct(f"<Qq{size}s")
        self._refreshed = struct.Struct(f"<{size}sqq")

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

    def log(self, packed: Iterable[bytes]) -> bytes:
        """Return nodes and pages in packed form, one after the other, as a log has them."""
        kinds = {
            self._node.size: Entry.NODE,
            self._page.size: Entry.PAGE,
            self._bare_page.size: Entry.BARE_PAGE,
        }
        return b"".join(bytes([kinds[len(each)]]) + each for each in packed)

    def entries(self, log: bytes) -> Iterator[tuple["Entry", bytes]]:
        """Yield what a log has: which entry, and that in packed form.

        Raises:
            ValueError: The rest of it cannot be read.
        """
        sizes = self._node.size, self._page.size, self._bare_page.size, self._refreshed.size
        at = 0
        while at < len(log):
            kind = Entry(log[at])
            entry = log[at + 1 : at + 1 + sizes[kind]]
            if len(entry) < sizes[kind]:
                raise ValueError(f"{len(log) - at} bytes are left")
            yield kind, entry
            at += 1 + len(entry)

    def whole(self, log: bytes) -> list[bytes]:
        """Return the nodes and pages that a log has whole, as far as it can be read."""
        found: list[bytes] = []
        with contextlib.suppress(ValueError):
            found += (entry for kind, entry in self.entries(log) if kind is not Entry.REFRESHED)
        return found

    def refreshed(self, node: bytes, entry: bytes) -> bytes:
        """Return a node in packed form, with what an entry says of how long it is needed."""
        stored, (_, seen_ms, page_seen_ms) = self.unpack(node), self._refreshed.unpack(entry)
        assert isinstance(stored, StoredNode)
        return self.pack(stored._replace(seen_ms=seen_ms, page_seen_ms=page_seen_ms))

    def seen_ms(self, kind: "Entry", entry: bytes) -> int:
        """Return when a node or page was last seen, rounded up."""
        at = {Entry.NODE: 2 * self.id_bytes + 16, Entry.REFRESHED: self.id_bytes}.get(kind, 8)
        return int.from_bytes(entry[at : at + 8], "little", signed=True)


class Entry(enum.IntEnum):
    """An entry of a log, by the byte before it."""

    NODE = 0
    # With a node, and without one.
    PAGE = 1
    BARE_PAGE = 2
    # Says of a node that came before how long it is needed, and when its page was seen.
    REFRESHED = 3


def as_field(packed: bytes) -> str:
    """Return what is packed as documents have it."""
    return base64.b64encode(packed).decode()


def of_field(value: str) -> bytes:
    """Return what a document has, packed."""
    return base64.b64decode(value)
