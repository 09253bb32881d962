"""Determines why two indexed articles are in one cluster or not, from all known facts about them. Pure."""

import enum
import math
from collections.abc import Callable, Iterator
from typing import Literal

import pydantic

from esdedup.messages import translatable
from esdedup.neighbours.explanation import Explanation, Rule, WholeTextComparison
from esdedup.neighbours.relation import Way

NodeState = Literal["live", "expired", "gone"]
"""A node's state in the forest now."""


class Outcome(enum.StrEnum):
    """Whether two articles are in one cluster, and why; `OUTCOMES` has a sentence for each outcome."""

    SAME_ARTICLE = "same_article"
    NO_ROOT = "no_root"
    NO_FINGERPRINT = "no_fingerprint"
    OTHER_PROFILES = "other_profiles"
    ONE_NODE = "one_node"
    TOGETHER = "together"
    THROUGH_OTHERS = "through_others"
    APART = "apart"
    COMPARED_OTHERWISE = "compared_otherwise"
    TEXT_CHANGED = "text_changed"
    FAR_FROM_ROOT = "far_from_root"
    SATURATED = "saturated"
    OTHER_ROOT = "other_root"
    EXPIRED = "expired"
    UNEXPLAINED = "unexplained"


class RootComparison(pydantic.BaseModel, frozen=True):
    """How an article compares with the root of a cluster."""

    root: str
    # An article that has the root's text; None if only the root's signature is left.
    article: str | None
    # The distance between the nearest representatives of the article and the root.
    nearest_bits: int
    # None if the profile does not compare whole texts.
    whole_texts: WholeTextComparison | None
    # How the article may join the cluster; None if it may not.
    way: Way | None


class Neighbour(pydantic.BaseModel, frozen=True):
    """A node of an article's cluster that is a neighbour of the article."""

    fingerprint: str
    # An article with this text; None if the index has none.
    article: str | None
    # How the article joined through this node; None if it did not.
    way: Way | None


class ArticleState(pydantic.BaseModel, frozen=True):
    """The state of an article in its index and forest; None for unknown values."""

    id: str
    index: str
    # Other indices behind the same name that have an article with that id.
    also_in: tuple[str, ...]
    root: str | None
    profile: str | None
    fingerprint: str | None
    # The article's number in the order of arrival, and the forest's watermark at its arrival, ISO 8601.
    seq: int | None
    seen: str | None
    # Whether the text is unchanged since its arrival; None for another profile, and for placeholders.
    text_is_same: bool | None
    # Whether the forest remembers that its text gets no fingerprint; None without a forest, or if the article
    # has a fingerprint.
    stays_without: bool | None
    # The state of its node; None without a forest or a fingerprint.
    node: NodeState | None
    # The simhashes that its node is indexed under: all but saturated keys.
    indexed: tuple[str, ...] | None
    # The root of its node, and the number of the arrival that created the node.
    node_root: str | None
    node_seq: int | None
    # The state of its root's node, and the number of that root's live leaves.
    root_node: NodeState | None
    live_leaves: int | None
    # The comparison with its root; None for a root.
    to_root: RootComparison | None
    # The comparison with the other article's root; None if both have the same root.
    to_other_root: RootComparison | None
    # The neighbour through which the article could join its cluster; None for a root.
    neighbour: Neighbour | None

    @property
    def order(self) -> int:
        """The number of the arrival that created its node; 0 if unknown."""
        # A node read from articles has the number of the latest article with that text.
        return min(filter(None, (self.node_seq, self.seq)), default=0)


class IndexedExplanation(pydantic.BaseModel, frozen=True):
    """Why two articles of an index are in one cluster or not."""

    comparison: Explanation
    one: ArticleState
    other: ArticleState
    forest: str
    # Why the forest could not be read; None if it was read.
    forest_missing: str | None
    # Why the learned boilerplate could not be read; None if it was read.
    learned_missing: str | None
    # The forest's retention; None without a forest.
    retention_days: float | None
    same_cluster: bool
    outcome: Outcome


def outcome(
    comparison: Explanation,
    one: ArticleState,
    other: ArticleState,
    *,
    gap_ms: int | None,
    retention_ms: int | None,
) -> Outcome:
    """Determine why two articles are in one cluster or not; `gap_ms` is the time between their arrivals."""
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
    return Outcome.THROUGH_OTHERS if together else _separated(comparison, one, other, gap_ms, retention_ms)


def _separated(
    comparison: Explanation,
    one: ArticleState,
    other: ArticleState,
    gap_ms: int | None,
    retention_ms: int | None,
) -> Outcome:
    if one.order > other.order:
        earlier, later = other, one
        common = {comparison.other.representatives[pair.other].simhash for pair in comparison.pairs}
    else:
        earlier, later = one, other
        common = {comparison.one.representatives[pair.one].simhash for pair in comparison.pairs}
    # Certain reasons come before probable reasons.
    if later.to_other_root is not None and later.to_other_root.way is None:
        return Outcome.FAR_FROM_ROOT
    indexed = None if comparison.rule is Rule.VERSION else earlier.indexed
    if indexed is not None and not common.intersection(indexed):
        return Outcome.SATURATED
    if gap_ms is not None and retention_ms is not None and gap_ms >= retention_ms:
        return Outcome.EXPIRED
    return Outcome.UNEXPLAINED if later.fingerprint == later.root else Outcome.OTHER_ROOT


RULES = {
    Rule.NO_FINGERPRINT: translatable("One of them has no fingerprint, so it stands alone: two clusters."),
    Rule.EQUAL: translatable("They have the same fingerprint: one cluster."),
    Rule.NOTHING_IN_COMMON: translatable("They have no representative in common: two clusters."),
    Rule.WITHIN_DISTANCE: translatable(
        "They have a representative in common, and this profile compares nothing else: one cluster."
    ),
    Rule.RESEMBLE: translatable(
        "They have a representative in common, and the whole texts resemble each other enough: one cluster."
    ),
    Rule.EXCERPT: translatable(
        "They have a representative in common, and the shorter text is an excerpt of the other: one cluster."
    ),
    Rule.VERSION: translatable(
        "They have the same address or id, and the later text has enough of the earlier one to be a version"
        " of it: one cluster."
    ),
    Rule.PART: translatable(
        "They have a representative in common, and the shorter text is a part of the other, but too small or"
        " edited too much to join it: two clusters."
    ),
    Rule.UNLIKE: translatable(
        "They have a representative in common, but the whole texts do not resemble each other enough:"
        " two clusters."
    ),
    Rule.OTHER_FIGURES: translatable(
        "They have a representative in common, and the whole texts resemble each other enough, but too many"
        " of their figures differ: two clusters."
    ),
    Rule.OTHER_NAMES: translatable(
        "They have a representative in common, and the whole texts resemble each other enough, but other"
        " names appear in the same places, as in a form that was filled in for someone else: two clusters."
    ),
}
"""The sentence for each rule, as if there were no other texts."""

OUTCOMES = {
    Outcome.SAME_ARTICLE: translatable("Both ids name the same article."),
    Outcome.NO_ROOT: translatable(
        "No cluster for {without}: articles indexed without esdedup must be indexed again with it."
    ),
    Outcome.NO_FINGERPRINT: translatable(
        "Two clusters: an article without a fingerprint, here {lone}, has a cluster of its own."
    ),
    Outcome.OTHER_PROFILES: translatable(
        "{clusters}: they were indexed with different profiles, whose fingerprints are never compared."
    ),
    Outcome.ONE_NODE: translatable("One cluster: they have the same fingerprint."),
    Outcome.TOGETHER: translatable("One cluster, as the comparison says."),
    Outcome.THROUGH_OTHERS: translatable(
        "One cluster, although the comparison says two: other articles link them. Each of the two is "
        "the root, or has joined it through a neighbour in the cluster."
    ),
    Outcome.APART: translatable("Two clusters, as the comparison says."),
    Outcome.COMPARED_OTHERWISE: translatable(
        "{clusters}. They were indexed with a profile other than that of the comparison above: leave out "
        "--profile to see why."
    ),
    Outcome.TEXT_CHANGED: translatable(
        "{clusters}, although the comparison of the current texts says otherwise: the text of "
        "{changed} has changed since it was fingerprinted."
    ),
    Outcome.FAR_FROM_ROOT: translatable(
        "Two clusters, although they are neighbours: {later}, which arrived later, does not agree with "
        "the root of {earlier}, so it could not join that cluster."
    ),
    Outcome.SATURATED: translatable(
        "Two clusters, although they are neighbours: so many articles share their common "
        "representatives that {earlier} is no longer indexed under them, so {later} did not find it."
    ),
    Outcome.OTHER_ROOT: translatable(
        "Two clusters, although they are neighbours: when {later} arrived, it had neighbours in several "
        "clusters. It joined the cluster of its own earlier version; without one, the cluster whose root it "
        "resembles most, or in classic and keywords the cluster with the most texts. Ties go to the oldest."
    ),
    Outcome.EXPIRED: translatable(
        "Two clusters, although they are neighbours: the time between them is at least as long as "
        "nodes live, so {earlier} had expired when {later} arrived."
    ),
    Outcome.UNEXPLAINED: translatable(
        "Two clusters, although they are neighbours, for a reason that can no longer be determined: when "
        "{later} arrived, the forest did not have {earlier}, or unrelated texts had arrived under their "
        "common address. `esdedup verify` checks the forest."
    ),
}
"""The sentence for each outcome, with fields that `verdict` fills in."""


def _english(message: str, /, **values: object) -> str:
    return message % values if values else message


def facts(
    comparison: Explanation,
    gettext: Callable[..., str] = _english,
    number: Callable[[float], str] = "{:,}".format,
    percent: Callable[[float], str] = "{:.0%}".format,
) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the measurements of two texts, A and B."""
    _, whole = gettext, comparison.whole_texts
    one, other, pairs = comparison.one, comparison.other, comparison.pairs
    if pairs:
        value = _(
            "%(ours)s of %(all_ours)s in A, %(theirs)s of %(all_theirs)s in B",
            ours=len({pair.one for pair in pairs}),
            all_ours=len(one.representatives),
            theirs=len({pair.other for pair in pairs}),
            all_theirs=len(other.representatives),
        )
        yield _("Representatives in common"), value
    elif comparison.nearest is not None:
        bits = comparison.nearest.distance_bits
        value = _("none; the nearest differ in %(bits)s of 64 bits", bits=bits)
        yield _("Representatives in common"), value
    if whole is not None:
        share = percent(whole.resemblance)
        counted = whole.exact_resemblance
        if counted is None:
            yield _("Wording in common"), _("%(share)s by estimate", share=share)
        else:
            value = _("%(share)s by estimate, %(exact)s counted", share=share, exact=percent(counted))
            yield _("Wording in common"), value
        needed = percent(whole.needed)
        if whole.missed_by:
            needed = _("%(needed)s, missed by %(missed)s", needed=needed, missed=percent(whole.missed_by))
        yield _("Needed at this length"), needed
        value = _(
            "%(replaced)s, by estimate; up to %(most)s are allowed",
            replaced=number(math.ceil(whole.replaced)),
            most=number(whole.replaceable),
        )
        yield _("Figures that differ"), value
        value = _(
            "%(share)s of the smaller text is in the other, and it is %(size)s as long; an excerpt needs"
            " %(needed)s and %(size_needed)s",
            share=percent(whole.contained),
            size=percent(whole.size),
            needed=percent(whole.contained_needed),
            size_needed=percent(whole.size_needed),
        )
        yield _("Contained"), value


def verdict(found: IndexedExplanation, gettext: Callable[[str], str] = str) -> str:
    """Return the reason why two articles, called A and B, are in one cluster or not."""
    articles = {"A": found.one, "B": found.other}
    earlier, later = sorted(articles, key=lambda name: articles[name].order)

    def matching(condition: dict[str, bool]) -> str:
        names = [name for name, holds in condition.items() if holds]
        return gettext("A and B") if len(names) == len(articles) else "".join(names)

    return gettext(OUTCOMES[found.outcome]).format(
        clusters=gettext("One cluster") if found.same_cluster else gettext("Two clusters"),
        without=matching({name: each.root is None for name, each in articles.items()}),
        lone=matching({name: each.fingerprint is None for name, each in articles.items()}),
        changed=matching({name: each.text_is_same is False for name, each in articles.items()}),
        earlier=earlier,
        later=later,
    )
