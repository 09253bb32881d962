"""The nodes and pages of a forest as values, each of which has a document of its own."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

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
