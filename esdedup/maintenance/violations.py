"""Violations of the forest's laws, and their repairs."""

import dataclasses
import enum
from typing import Any

import pydantic

from esdedup.elastic.forest.stored import Stored
from esdedup.maintenance.records import Change


class ViolationKind(enum.Enum):
    """Which law is violated, and how."""

    ROOT_GONE = "a leaf whose root is missing"
    ROOT_IS_LEAF = "a leaf whose root is itself a leaf"
    ROOT_SEEN_TOO_LOW = "a root that would expire before its leaf"
    LEAF_BEFORE_ROOT = "a leaf that is older than its root"
    NOTHING_NEAR = "a leaf without a neighbour in its tree"
    UNLIKE_ROOT = "a leaf that does not agree with its root"
    NEAR_ROOTS = "a root with an older neighbour in another tree"
    UNFINDABLE = "a node with a missing key or a wrong field"
    DAMAGED_NODE = "a document that is not a valid node"
    TIME_AHEAD = "a time in the future"
    STRAY_PAGE = "a remembered page whose node is missing"
    LEARNED_DAMAGED = "a damaged document of learned boilerplate"
    STATE_BEHIND = "a forest whose state is older than its articles"
    NODE_GONE = "an article whose node is missing"
    NODE_BEHIND = "a node that would expire too early, or is newer than its article"
    PAGE_BEHIND = "an article whose page is not remembered with it, or would be forgotten too early"
    ARTICLE_ROOT_GONE = "an article whose root is missing"
    TWO_ROOTS = "an article whose root differs from that of its node"
    OTHER_STORY = "an article whose story differs from the editors' edits"
    OTHER_LINKS = "an article whose links differ from those of its root"
    WRONG_BANDS = "an article whose bands do not match its fingerprint"
    OTHER_PROFILE = "an article of another profile"
    INVALID_RECORD = "an article whose fingerprint, signature, page or root is invalid"
    NO_ROOT = "articles without a root"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Remedy:
    """The writes that repair a violation."""

    # Nodes and content hashes, as they should be.
    stored: tuple[Stored, ...] = ()
    # A document of a content hash to delete: a search hit with its version.
    damaged: dict[str, Any] | None = None
    # The root of an older tree, which the tree of the violation's subject joins.
    joins: str | None = None
    # An article, and new values of its fields.
    change: Change | None = None


class Violation(pydantic.BaseModel, frozen=True):
    """A violation of a law of the forest."""

    kind: ViolationKind
    # The id of a node or article, the name of the forest, or a number of articles.
    subject: str
    detail: str
    # The number of articles without a root; 1 for violations of other kinds.
    count: int = 1

    @pydantic.computed_field  # type: ignore[prop-decorator] # as pydantic documents it
    @property
    def can_be_repaired(self) -> bool:
        """Whether `Maintenance.repair` can repair the violation; otherwise a person must decide."""
        return isinstance(self, RepairableViolation)

    def __str__(self) -> str:
        return f"{self.subject}: {self.kind.value}: {self.detail}"


class RepairableViolation(Violation, frozen=True):
    """A violation with its remedy, which is not part of the public interface."""

    remedy: pydantic.SkipValidation[Remedy] = pydantic.Field(exclude=True, repr=False)


def repairable(kind: ViolationKind, subject: str, detail: str, remedy: Remedy) -> RepairableViolation:
    """Return a violation with its remedy."""
    return RepairableViolation(kind=kind, subject=subject, detail=detail, remedy=remedy)
