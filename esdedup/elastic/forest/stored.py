"""The stored documents of a forest as values: nodes and content hashes."""

import contextlib
import enum
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from esdedup.forest.model import NO_PAGE, NO_TIME
from esdedup.neighbours.relation import Relation

# A simhash, or a hash of all that is compared.
_NODE_ID = re.compile("[0-9a-f]{16}|[0-9a-f]{32}")
_PAGE = re.compile("[0-9a-f]{16}")


class Signed(Protocol):
    """Anything with a signature."""

    @property
    def signature(self) -> bytes:
        """The bytes that the profile's relation compares."""


class StoredPage(NamedTuple):
    """A remembered page."""

    # The id of the page, 16 hex digits.
    page: str
    # The id of the node that it got; None if it got none.
    node: str | None
    # The forest's time when it was last seen, rounded up; NO_TIME if none was known.
    seen_ms: int

    @property
    def is_page(self) -> bool:
        """Whether this is a page, and not a node."""
        return True

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
    # The id of the root that this root is a part of, which may have expired; empty if there is none.
    part_of: str = ""
    # The id of an earlier root that is a part of this root, likewise.
    has_part: str = ""

    @property
    def is_page(self) -> bool:
        """Whether this is a page, and not a node."""
        return False

    @property
    def document_id(self) -> str:
        """The id of its document: the node's own."""
        return self.id

    @property
    def is_root(self) -> bool:
        """Whether the node is the root of its tree."""
        return self.id == self.root

    @property
    def links(self) -> dict[str, str | None]:
        """Its links as articles have them: None where there is none."""
        return {"part_of": self.part_of or None, "has_part": self.has_part or None}

    @property
    def own_page(self) -> StoredPage | None:
        """The page of the arrival that made it; None if that is not known."""
        return StoredPage(self.page, self.id, self.page_seen_ms) if self.page else None

    def remembering(self, page: str, seen_ms: int) -> "Stored":
        """Return the bytes to write so that a page is remembered with this node."""
        if self.page in {"", page}:
            return self._replace(page=page, page_seen_ms=seen_ms)
        return StoredPage(page, self.id, seen_ms)


Stored = StoredNode | StoredPage
"""One stored document: a node or a content hash."""


def page_name(page: int) -> str:
    """Return the id of a page as documents have it; empty for NO_PAGE."""
    return "" if page == NO_PAGE else f"{page:016x}"


def is_node_id(name: object) -> TypeGuard[str]:
    """Return whether `name` can be the id of a node: 16 or 32 hex digits."""
    return isinstance(name, str) and _NODE_ID.fullmatch(name) is not None


def is_page_id(name: object) -> bool:
    """Return whether `name` can be the id of a page: 16 hex digits."""
    return isinstance(name, str) and _PAGE.fullmatch(name) is not None


def signatures_of(signed: Iterable[Signed], relation: Relation) -> npt.NDArray[Any]:
    """Return the signatures as an array in the relation's dtype."""
    return np.frombuffer(b"".join([each.signature for each in signed]), relation.dtype)


def genuine(nodes: Sequence[StoredNode], relation: Relation) -> list[StoredNode]:
    """Return the nodes with their own signature: a recreated root may have that of a leaf."""
    names = relation.ids(signatures_of(nodes, relation))
    return [node for node, name in zip(nodes, names, strict=True) if name == node.id]


def recreate_root(root_id: str, leaf: StoredNode, relation: Relation) -> StoredNode:
    """Recreate a lost root from one of its leaves.

    Its signature is read from its id if the profile allows that. Otherwise it is the leaf's, until an
    article brings the root's own.
    """
    signature = relation.signature_of(root_id) or leaf.signature
    return leaf._replace(id=root_id, root=root_id, signature=signature, page="", page_seen_ms=NO_TIME)


class Codec:
    """Packs and unpacks the nodes of one relation, and pages. Ids are packed as bytes, pages as numbers."""

    def __init__(self, relation: Relation) -> None:
        size = self.id_bytes = relation.id_bytes
        # Fields in the order of `StoredNode`, but for the signature and the two links of few roots: the last.
        self._node = struct.Struct(f"<{size}s{size}sqqqQq{relation.dtype.itemsize}s")
        self._linked = struct.Struct(f"{self._node.format}{2 * size}s")
        # A page, when it was seen, and the node that it got, if any.
        self._bare_page = struct.Struct("<Qq")
        self._page = struct.Struct(f"<Qq{size}s")
        self._refreshed = struct.Struct(f"<{size}sqq")

    def pack(self, stored: Stored) -> bytes:
        """Return a node or page in packed form."""
        if isinstance(stored, StoredPage):
            bare = self._bare_page.pack(int(stored.page, 16), stored.seen_ms)
            return bare + bytes.fromhex(stored.node or "")
        links = [bytes.fromhex(each.zfill(2 * self.id_bytes)) for each in (stored.part_of, stored.has_part)]
        return self._node.pack(
            bytes.fromhex(stored.id),
            bytes.fromhex(stored.root),
            stored.seq,
            stored.made_ms,
            stored.seen_ms,
            int(stored.page, 16) if stored.page else NO_PAGE,
            stored.page_seen_ms,
            stored.signature,
        ) + (b"".join(links) if stored.part_of or stored.has_part else b"")

    def unpack(self, packed: bytes) -> Stored | None:
        """Return the node or page that `pack` packed; None if it is of another length than these have."""
        if len(packed) in {self._node.size, self._linked.size}:
            size = self._node.size
            ids = packed[size : size + self.id_bytes], packed[size + self.id_bytes :]
            node, root, seq, made_ms, seen_ms, page, page_seen_ms, signature = self._node.unpack(
                packed[:size]
            )
            return StoredNode(
                node.hex(),
                root.hex(),
                signature,
                seq,
                made_ms,
                seen_ms,
                page_name(page),
                page_seen_ms,
                *(each.hex() if any(each) else "" for each in ids),
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
            self._linked.size: Entry.LINKED,
        }
        return b"".join(bytes([kinds[len(each)]]) + each for each in packed)

    def entries(self, log: bytes) -> Iterator[tuple["Entry", bytes]]:
        """Yield the entries of a log: their kind, and their packed form.

        Raises:
            ValueError: The rest of it cannot be read.
        """
        kinds = (self._node, self._page, self._bare_page, self._refreshed, self._linked)
        sizes = [each.size for each in kinds]
        at = 0
        while at < len(log):
            kind = Entry(log[at])
            entry = log[at + 1 : at + 1 + sizes[kind]]
            if len(entry) < sizes[kind]:
                raise ValueError(f"{len(log) - at} bytes are left")
            yield kind, entry
            at += 1 + len(entry)

    def whole(self, log: bytes) -> list[bytes]:
        """Return the nodes and pages of a log, up to the first unreadable entry."""
        found: list[bytes] = []
        with contextlib.suppress(ValueError):
            found += (entry for kind, entry in self.entries(log) if kind is not Entry.REFRESHED)
        return found

    def refreshed(self, node: bytes, entry: bytes) -> bytes:
        """Return a packed node, with the times of an entry that refreshes it."""
        stored, (_, seen_ms, page_seen_ms) = self.unpack(node), self._refreshed.unpack(entry)
        assert isinstance(stored, StoredNode)
        return self.pack(stored._replace(seen_ms=seen_ms, page_seen_ms=page_seen_ms))

    def seen_ms(self, kind: "Entry", entry: bytes) -> int:
        """Return when a node or page was last seen, rounded up."""
        of_node = 2 * self.id_bytes + 16
        at = {Entry.NODE: of_node, Entry.LINKED: of_node, Entry.REFRESHED: self.id_bytes}.get(kind, 8)
        return int.from_bytes(entry[at : at + 8], "little", signed=True)


class Entry(enum.IntEnum):
    """The kind of an entry of a log: the byte before it."""

    NODE = 0
    # With a node, and without one.
    PAGE = 1
    BARE_PAGE = 2
    # New times of an earlier node: until when it is needed, and when its page was seen.
    REFRESHED = 3
    # A root that is a part of another, or of which another is one.
    LINKED = 4
