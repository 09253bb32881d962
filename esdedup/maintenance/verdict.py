"""What an index and its forest made of two articles, beside what comparing their texts says. Pure."""

import enum
from typing import Literal

import pydantic

from esdedup.neighbours.explanation import Explanation, WholeTextComparison

Life = Literal["live", "expired", "gone"]
"""Of a node, as the forest has it now."""


class Outcome(enum.StrEnum):
    """What became of two articles, and why."""

    # Both ids mean one article.
    SAME_ARTICLE = "same_article"
    # One was indexed without esdedup.
    NO_ROOT = "no_root"
    # One tells nothing, and has a cluster of its own.
    NO_FINGERPRINT = "no_fingerprint"
    # Fingerprints of two profiles are never compared.
    OTHER_PROFILES = "other_profiles"
    # One cluster, as they should: of equal fingerprint; or near each other.
    ONE_NODE = "one_node"
    TOGETHER = "together"
    # One cluster, though they are not near: others stand between them.
    THROUGH_OTHERS = "through_others"
    # Two clusters, as they should.
    APART = "apart"
    # They were compared here with a profile that did not decide.
    COMPARED_OTHERWISE = "compared_otherwise"
    # The index says otherwise than the texts, of which one is not what was fingerprinted any more.
    TEXT_CHANGED = "text_changed"
    # Neighbours, but in two clusters. The later one is too far from the earlier one's root; ...
    FAR_FROM_ROOT = "far_from_root"
    # ... or could not find the earlier one: too many others carry what they share; ...
    SATURATED = "saturated"
    # ... or had another root to join too; ...
    OTHER_ROOT = "other_root"
    # ... or came when the earlier one's node had expired.
    EXPIRED = "expired"
    # Neighbours, in two clusters, and nothing that is left tells why.
    UNEXPLAINED = "unexplained"


class ToRoot(pydantic.BaseModel, frozen=True):
    """How an article compares with the root of a cluster."""

    root: str
    # The article whose text is the root's; None: only the signature of the root is left.
    article: str | None
    # Between the nearest two representatives.
    nearest_bits: int
    # None where the profile does not ask.
    whole_texts: WholeTextComparison | None
    may_join: bool


class Neighbour(pydantic.BaseModel, frozen=True):
    """A node of an article's cluster that is near it."""

    fingerprint: str
    # One that has this text; None if there is none in the index.
    article: str | None


class Standing(pydantic.BaseModel, frozen=True):
    """Where an article stands in its index and in its forest; None where nothing is known."""

    id: str
    index: str
    # Other indices behind the same name that have an article of that id.
    also_in: list[str]
    root: str | None
    profile: str | None
    fingerprint: str | None
    # The number of its arrival, and the forest's time then, ISO 8601.
    seq: int | None
    seen: str | None
    # Whether its text still gives that fingerprint; None if it was made with another profile.
    text_is_same: bool | None
    # What the forest has of its text: None without a forest, or a fingerprint.
    node: Life | None
    # The simhashes under which its node is found: not those that too many others carry.
    indexed: list[str] | None
    # The root that its node has, and the number of the arrival that made it.
    node_root: str | None
    node_seq: int | None
    # What the forest has of the article's root, and how many live leaves that has now.
    root_node: Life | None
    live_leaves: int | None
    # None for a root itself.
    to_root: ToRoot | None
    # How it compares with the root of the other article, where that is another one.
    to_other_root: ToRoot | None
    # Through whom it could join: of those near it in its cluster the earliest; None for a root itself.
    near_it: Neighbour | None

    @property
    def order(self) -> int:
        """Where its text stands in the order of arrivals, as far as that is known."""
        return self.node_seq or self.seq or 0


class IndexedExplanation(pydantic.BaseModel, frozen=True):
    """Why two articles of an index are in one cluster or not."""

    comparison: Explanation
    one: Standing
    other: Standing
    forest: str
    # Why nothing is told of the forest; None if it is there.
    forest_missing: str | None
    # How long nodes live, None without a forest.
    retention_days: float | None
    same_cluster: bool
    outcome: Outcome


def outcome(
    comparison: Explanation, one: Standing, other: Standing, *, gap_ms: int | None, retention_ms: int | None
) -> Outcome:
    """Tell what became of two articles.

    Args:
        comparison: Of their texts as they are now.
        one: Where it stands.
        other: Where it stands.
        gap_ms: Between their arrivals, by the forest's time; None if it is not known.
        retention_ms: How long nodes live; None if it is not known.
    """
    if (one.index, one.id) == (other.index, other.id):
        return Outcome.SAME_ARTICLE
    if one.root is None or other.root is None:
        return Outcome.NO_ROOT
    if one.fingerprint is None or other.fingerprint is None:
        return Outcome.NO_FINGERPRINT
    if one.profile != other.profile:
        return Outcome.OTHER_PROFILES
    together = one.root == other.root
    if together and one.fingerprint == other.fingerprint:
        return Outcome.ONE_NODE
    if one.profile != comparison.profile:
        return Outcome.COMPARED_OTHERWISE
    if together is comparison.near:
        return Outcome.TOGETHER if together else Outcome.APART
    if False in {one.text_is_same, other.text_is_same}:
        return Outcome.TEXT_CHANGED
    return Outcome.THROUGH_OTHERS if together else _parted(comparison, one, other, gap_ms, retention_ms)


def _parted(
    comparison: Explanation, one: Standing, other: Standing, gap_ms: int | None, retention_ms: int | None
) -> Outcome:
    """Tell why two articles that are near each other are in two clusters."""
    if one.order > other.order:
        earlier, later = other, one
        met = {comparison.other.representatives[pair.other].simhash for pair in comparison.pairs}
    else:
        earlier, later = one, other
        met = {comparison.one.representatives[pair.one].simhash for pair in comparison.pairs}
    # What is certain comes first.
    if later.to_other_root is not None and not later.to_other_root.may_join:
        return Outcome.FAR_FROM_ROOT
    if earlier.indexed is not None and not met.intersection(earlier.indexed):
        return Outcome.SATURATED
    if gap_ms is not None and retention_ms is not None and gap_ms >= retention_ms:
        return Outcome.EXPIRED
    return Outcome.UNEXPLAINED if later.fingerprint == later.root else Outcome.OTHER_ROOT
