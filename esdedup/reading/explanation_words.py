"""What became of two texts or articles, in a sentence or two: for the command and the pages."""

from collections.abc import Callable

from esdedup.messages import translatable
from esdedup.neighbours.explanation import Rule
from esdedup.reading.verdict import IndexedExplanation, Outcome

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
    Rule.CONTAINED: translatable(
        "They have a representative in common, and the shorter text is contained in the other: one cluster."
    ),
    Rule.IN_THE_FIRST: translatable(
        "They have a representative in common, and B is contained in A. But A came first and would be"
        " the root, and a text that is only contained in a root does not join it: two clusters. If B "
        "came first, it would be one cluster."
    ),
    Rule.UNLIKE: translatable(
        "They have a representative in common, but the whole texts do not resemble each other enough:"
        " two clusters."
    ),
}
"""What each rule means for two texts without any others."""

OUTCOMES = {
    Outcome.SAME_ARTICLE: translatable("Both ids name the same article."),
    Outcome.NO_ROOT: translatable(
        "{without} was indexed without esdedup and has no cluster. Index it again with esdedup."
    ),
    Outcome.NO_FINGERPRINT: translatable(
        "Two clusters: {lone} has no fingerprint, and so a cluster of its own."
    ),
    Outcome.OTHER_PROFILES: translatable(
        "{clusters}: they were indexed with different profiles, whose fingerprints are never compared."
    ),
    Outcome.ONE_NODE: translatable("One cluster: they have the same fingerprint."),
    Outcome.TOGETHER: translatable("One cluster, as the comparison says."),
    Outcome.THROUGH_OTHERS: translatable(
        "One cluster, although the comparison says two: other articles link them. Each of the two is "
        "the root, or is a neighbour of an article of the cluster and agrees with the root."
    ),
    Outcome.APART: translatable("Two clusters, as the comparison says."),
    Outcome.COMPARED_OTHERWISE: translatable(
        "{clusters}. They were indexed with another profile than the comparison above: leave out "
        "--profile to see why."
    ),
    Outcome.TEXT_CHANGED: translatable(
        "{clusters}, although the comparison of the present texts says otherwise: the text of "
        "{changed} has changed since it was fingerprinted."
    ),
    Outcome.FAR_FROM_ROOT: translatable(
        "Two clusters, although they are neighbours: {later}, which came later, does not agree with "
        "the root of {earlier}, so it could not join that cluster."
    ),
    Outcome.SATURATED: translatable(
        "Two clusters, although they are neighbours: so many articles share their common "
        "representatives that {earlier} is no longer indexed under them, so {later} did not find it."
    ),
    Outcome.OTHER_ROOT: translatable(
        "Two clusters, although they are neighbours: when {later} came, it had neighbours in several "
        "clusters, and joined the one whose root it resembles most, or the oldest of those."
    ),
    Outcome.EXPIRED: translatable(
        "Two clusters, although they are neighbours: the time between them is at least as long as "
        "nodes live, so {earlier} had expired when {later} came."
    ),
    Outcome.UNEXPLAINED: translatable(
        "Two clusters, although they are neighbours, for a reason that can no longer be seen: when "
        "{later} came, the forest did not have {earlier}. `esdedup verify` checks the forest."
    ),
}
"""What became of two articles; the places of values are filled by `verdict`."""


def verdict(found: IndexedExplanation, gettext: Callable[[str], str] = str) -> str:
    """Return the outcome in a sentence or two.

    Args:
        found: What became of two articles, called A and B.
        gettext: Translates a message. Default: it stays English.
    """
    articles = {"A": found.one, "B": found.other}
    earlier, later = sorted(articles, key=lambda name: articles[name].order)

    def those(condition: dict[str, bool]) -> str:
        names = [name for name, holds in condition.items() if holds]
        return gettext("A and B") if len(names) == len(articles) else "".join(names)

    return gettext(OUTCOMES[found.outcome]).format(
        clusters=gettext("One cluster") if found.same_cluster else gettext("Two clusters"),
        without=those({name: each.root is None for name, each in articles.items()}),
        lone=those({name: each.fingerprint is None for name, each in articles.items()}),
        changed=those({name: each.text_is_same is False for name, each in articles.items()}),
        earlier=earlier,
        later=later,
    )
