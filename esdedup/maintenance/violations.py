"""Violations of the forest's laws, and the writes that repair them."""

import dataclasses
import enum
from typing import Any

import pydantic

from esdedup.elastic.forest.stored import Stored
from esdedup.elastic.requests import Query
from esdedup.forest.model import State
from esdedup.maintenance.records import Change, Record


class ViolationKind(enum.Enum):
    """Which law is violated, and how."""

    ROOT_GONE = "a leaf whose root is missing"
    ROOT_IS_LEAF = "a leaf whose root is itself a leaf"
    ROOT_SEEN_TOO_LOW = "a root that would expire before its leaf"
    LEAF_BEFORE_ROOT = "a leaf that is older than its root"
    NOTHING_NEAR = "a leaf without a neighbour in its tree"
    UNLIKE_ROOT = "a leaf that does not agree with its root"
    NEAR_ROOTS = "a root with an older neighbour in another tree"
    UNFINDABLE = "a node without one of its keys, or with other fields than it should have"
    DAMAGED_NODE = "a document that is not a valid node"
    TIME_AHEAD = "a time in the future"
    STRAY_PAGE = "a remembered page whose node is missing"
    LEARNED_DAMAGED = "a damaged document of what was learned"
    STATE_BEHIND = "a forest whose state is older than its articles"
    NODE_GONE = "an article whose node is missing"
    NODE_BEHIND = "a node that would expire too early, or is newer than its article"
    PAGE_BEHIND = "an article whose page is not remembered with it, or would be forgotten too early"
    ARTICLE_ROOT_GONE = "an article whose root is missing"
    TWO_ROOTS = "an article under another root than its node"
    OTHER_STORY = "an article with another story than editors said"
    OTHER_LINKS = "an article with other links than its root"
    WRONG_BANDS = "an article whose bands do not match its fingerprint"
    OTHER_PROFILE = "an article of another profile"
    INVALID_RECORD = "an article whose fingerprint, signature, page or root is invalid"
    NO_ROOT = "articles without a root"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Remedy:
    """The writes that repair a violation."""

    # Nodes and pages, as they should be.
    stored: tuple[Stored, ...] = ()
    # A damaged document to delete: a search hit with its version.
    damaged: dict[str, Any] | None = None
    # The documents of the forest to delete: a query.
    forgotten: Query | None = None
    # The root of an older tree that the tree of the violation's subject joins.
    joins: str | None = None
    # An article, and the root that it should have.
    new_root: tuple[Record, str] | None = None
    # Fields of an article to change.
    change: Change | None = None
    # The least state that the forest should have.
    state: State | None = None


class Violation(pydantic.BaseModel, frozen=True):
    """One violation of a law."""

    kind: ViolationKind
    # The id of the node or article, the name of the forest, or a number of articles.
    subject: str
    detail: str

    @pydantic.computed_field  # type: ignore[prop-decorator] # as pydantic documents it
    @property
    def can_be_repaired(self) -> bool:
        """Whether `Maintenance.repair` repairs it; otherwise a person must decide."""
        return isinstance(self, RepairableViolation)

    def __str__(self) -> str:
        return f"{self.subject}: {self.kind.value}: {self.detail}"


class RepairableViolation(Violation, frozen=True):
    """A violation with the writes that repair it, which callers of `Maintenance` need not know."""

    remedy: pydantic.SkipValidation[Remedy] = pydantic.Field(exclude=True, repr=False)


def repairable(kind: ViolationKind, subject: str, detail: str, remedy: Remedy) -> RepairableViolation:
    """Return a violation that its remedy repairs."""
    return RepairableViolation(kind=kind, subject=subject, detail=detail, remedy=remedy)
