"""What an index and its forest made of two articles, in words."""

from rich.console import Console
from rich.markup import escape

from esdedup.cli.explanation_text import measured, print_explanation
from esdedup.cli.output import print_stage, printable
from esdedup.maintenance import ArticleState, IndexedExplanation, Outcome
from esdedup.maintenance.verdict import NodeState, RootComparison

_NODE_STATES: dict[NodeState, str] = {
    "live": "lives",
    "expired": "has expired, and takes no part in anything any more",
    "gone": "is not in the forest: it has expired and been deleted, or no refresh has shown it yet",
}

_OUTCOMES = {
    Outcome.SAME_ARTICLE: "Both ids mean the same article.",
    Outcome.NO_ROOT: "{without} was indexed without esdedup, and has no cluster; index it anew.",
    Outcome.NO_FINGERPRINT: (
        "Two clusters: {lone} told nothing when it was indexed, and has a cluster of its own."
    ),
    Outcome.OTHER_PROFILES: (
        "{clusters}: they were fingerprinted with two profiles, and never compared with each other."
    ),
    Outcome.ONE_NODE: "One cluster: they have the same fingerprint.",
    Outcome.TOGETHER: "One cluster, as the comparison says.",
    Outcome.THROUGH_OTHERS: (
        "One cluster, though the comparison alone says otherwise: other articles stand between them. Each "
        "of the two is the root, or is near some article of the cluster and agrees with the root."
    ),
    Outcome.APART: "Two clusters, as the comparison says.",
    Outcome.COMPARED_OTHERWISE: (
        "{clusters}. The comparison above is with another profile than the one that decided: leave out "
        "--profile to see why."
    ),
    Outcome.TEXT_CHANGED: (
        "{clusters}, though the comparison of the texts as they are now says otherwise: {changed} was "
        "changed after it was fingerprinted."
    ),
    Outcome.FAR_FROM_ROOT: (
        "Two clusters, though they are near each other: {later}, which came later, does not agree with the "
        "root of {earlier}, and nobody joins a cluster whose root it is too far from."
    ),
    Outcome.SATURATED: (
        "Two clusters, though they are near each other: what they have in common is posting_keys by so many "
        "articles that {earlier} is not found by it, and {later} came later."
    ),
    Outcome.OTHER_ROOT: (
        "Two clusters, though they are near each other: when {later} came, it was near articles of several "
        "clusters, and joined the one that had more live leaves then, or was older."
    ),
    Outcome.EXPIRED: (
        "Two clusters, though they are near each other: they arrived as long apart as nodes live, or longer, "
        "so what {later} would have joined had expired."
    ),
    Outcome.UNEXPLAINED: (
        "Two clusters, though they are near each other, and nothing that is left tells why: {earlier} was "
        "not known to the forest when {later} came. `esdedup verify` checks the forest."
    ),
}


def print_verdict(screen: Console, found: IndexedExplanation) -> None:
    """Print the comparison, and what became of it in the index."""
    print_explanation(screen, found.comparison)
    articles = {"A": found.one, "B": found.other}
    for name, article in articles.items():
        print_stage(
            screen,
            f"6 In the index: {name} is {printable(article.id)} in {article.index}",
            _article_lines(article, found),
        )
    if found.forest_missing is not None:
        print_stage(screen, "The forest", [("", found.forest_missing)])
    elif found.retention_days is not None:
        screen.print(f"The forest is {escape(found.forest)}; nodes live {found.retention_days:g} days.")
    screen.print(escape(verdict(found)))


def verdict(found: IndexedExplanation) -> str:
    """Say what became of two articles, in a sentence or two."""
    articles = {"A": found.one, "B": found.other}
    earlier, later = sorted(articles, key=lambda name: articles[name].order)

    def those(condition: dict[str, bool]) -> str:
        return " and ".join(name for name, holds in condition.items() if holds)

    return _OUTCOMES[found.outcome].format(
        clusters="One cluster" if found.same_cluster else "Two clusters",
        without=those({name: each.root is None for name, each in articles.items()}),
        lone=those({name: each.fingerprint is None for name, each in articles.items()}),
        changed=those({name: each.text_is_same is False for name, each in articles.items()}),
        earlier=earlier,
        later=later,
    )


def _article_lines(article: ArticleState, found: IndexedExplanation) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    if article.also_in:
        lines.append(("", f"also in {', '.join(article.also_in)}; this one arrived last"))
    if article.root is None:
        return [*lines, ("root", "none: it was indexed without esdedup")]
    when = "" if article.seen is None else f", when the forest's time was {article.seen}"
    lines.append(("arrival", ("not known" if article.seq is None else f"{article.seq:,}") + when))
    lines.append(("profile", _profile(article, found)))
    lines.append(("fingerprint", _fingerprint(article)))
    lines.append(("root", article.root + (", itself" if article.root == article.fingerprint else "")))
    if article.node is not None:
        lines.append(("its node", _NODE_STATES[article.node] + _node_root(article)))
    if article.root_node is not None:
        leaves = (
            "" if article.live_leaves is None else f"; the cluster has {article.live_leaves:,} live leaves"
        )
        lines.append(("its root", _NODE_STATES[article.root_node] + leaves))
    if article.to_root is not None:
        lines.append(("with its root", _root_comparison(article.to_root)))
    if article.neighbour is not None:
        by = article.neighbour.article or f"{article.neighbour.fingerprint}, which no article has any more"
        lines.append(("joined through", printable(by)))
    if article.to_other_root is not None:
        lines.append(("with the other's root", _root_comparison(article.to_other_root)))
    return lines


def _profile(article: ArticleState, found: IndexedExplanation) -> str:
    if article.profile == found.comparison.profile:
        return article.profile or "none"
    return f"{article.profile}: the comparison above is by another one, and not what decided"


def _fingerprint(article: ArticleState) -> str:
    if article.fingerprint is None:
        return "none"
    return article.fingerprint + (
        "; its text gives another one now, so it was changed, or is in another field"
        if article.text_is_same is False
        else ""
    )


def _node_root(article: ArticleState) -> str:
    if article.node_root in {None, article.root}:
        return ""
    return f", under another root than the article has: {article.node_root}; `esdedup verify` tells more"


def _root_comparison(compared: RootComparison) -> str:
    by = "the root's signature; its text is gone" if compared.article is None else printable(compared.article)
    line = f"nearest representatives {compared.nearest_bits} bits apart"
    if compared.whole_texts is not None:
        line += f"; resemblance {measured(compared.whole_texts)}, "
        line += f"{compared.whole_texts.needed_for_root:.2f} is needed towards a root: "
        line += "it may join" if compared.may_join else "it may not join"
    return f"{line} (by {by})"
