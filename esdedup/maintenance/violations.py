"""Breaches of the forest's laws, each with what would mend it."""

import dataclasses
import enum
from typing import Any

from esdedup.elastic.forest.documents import StoredNode
from esdedup.forest.model import State
from esdedup.maintenance.records import Record


class ViolationKind(enum.Enum):
    """Which law is broken, and how."""

    ROOT_GONE = "a leaf whose root is gone"
    ROOT_IS_LEAF = "a leaf whose root is itself a leaf"
    ROOT_SEEN_TOO_LOW = "a root that would expire before its leaf"
    LEAF_BEFORE_ROOT = "a leaf that was made before its root"
    NOTHING_NEAR = "a leaf that nothing in its tree is near"
    UNLIKE_ROOT = "a leaf that does not agree with its root"
    NEAR_ROOTS = "a root that was made near a live node of another tree"
    NOT_TO_BE_FOUND = "a node that lacks a key of its signature, or the right mark of a leaf"
    NO_NODE = "a document that is no node"
    STATE_BEHIND = "a forest that is behind its articles"
    NODE_GONE = "an article whose node is gone"
    NODE_BEHIND = "a node that does not know of its article"
    ARTICLE_ROOT_GONE = "an article whose root is no node"
    TWO_ROOTS = "an article under another root than its text's node"
    WRONG_BANDS = "an article whose bands do not belong to its fingerprint"
    OTHER_PROFILE = "an article of another profile"
    NO_LABEL = "an article whose fingerprint, signature or root makes no sense"
    NO_ROOT = "articles without a root"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Violation:
    """One violation, and its remedy; with no remedy, a person has to look."""

    kind: ViolationKind
    # The id of the node or article.
    subject: str
    detail: str
    # Nodes to write as they should be.
    nodes: tuple[StoredNode, ...] = ()
    # A damaged document to delete, as a search found it.
    damaged: dict[str, Any] | None = None
    # The root whose tree takes in that of `subject`.
    joins: str | None = None
    # The article that should have this root.
    relabel: tuple[Record, str] | None = None
    # The state that the forest should have at least.
    state: State | None = None

    @property
    def can_be_repaired(self) -> bool:
        """Whether a repair would mend it."""
        return bool(self.nodes or self.joins or self.relabel or self.state or self.damaged)

    def __str__(self) -> str:
        return f"{self.subject}: {self.kind.value}: {self.detail}"
