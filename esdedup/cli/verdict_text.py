"""Why two indexed articles are in one cluster or not, in words."""

from rich.console import Console
from rich.markup import escape

from esdedup.cli.explanation_text import measured, print_explanation
from esdedup.cli.output import print_stage, printable
from esdedup.maintenance import ArticleState, IndexedExplanation
from esdedup.reading.verdict import NodeState, RootComparison, verdict

_NODE_STATES: dict[NodeState, str] = {
    "live": "live",
    "expired": "expired",
    "gone": "not in the forest: expired and deleted, or written since the last refresh",
}


def print_verdict(screen: Console, found: IndexedExplanation) -> None:
    """Print the comparison of the texts, the state of both articles, and the outcome."""
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
    elif found.learned_missing is not None:
        print_stage(screen, "What is boilerplate is not known", [("", found.learned_missing)])
    if found.retention_days is not None:
        screen.print(f"The forest is {escape(found.forest)}; nodes live {found.retention_days:g} days.")
    screen.print(escape(verdict(found)))


def _article_lines(article: ArticleState, found: IndexedExplanation) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    if article.also_in:
        lines.append(("", f"also in {', '.join(article.also_in)}; this one arrived last"))
    if article.root is None:
        return [*lines, ("root", "none: it was indexed without esdedup")]
    when = "" if article.seen is None else f", when the forest's time was {article.seen}"
    lines.append(("arrival", ("unknown" if article.seq is None else f"{article.seq:,}") + when))
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
        by = article.neighbour.article or f"{article.neighbour.fingerprint}, which no article has now"
        lines.append(("neighbour", printable(by)))
    if article.to_other_root is not None:
        lines.append(("with the other's root", _root_comparison(article.to_other_root)))
    return lines


def _profile(article: ArticleState, found: IndexedExplanation) -> str:
    if article.profile == found.comparison.profile:
        return article.profile or "none"
    return f"{article.profile}, which is not the profile of the comparison above"


def _fingerprint(article: ArticleState) -> str:
    if article.fingerprint is None:
        remembered = "; its page is remembered as one without, so it gets none if it comes again"
        return f"none{remembered}" if article.stays_without else "none"
    return article.fingerprint + (
        "; its present text has another one: it has changed, or is in another field"
        if article.text_is_same is False
        else ""
    )


def _node_root(article: ArticleState) -> str:
    if article.node_root in {None, article.root}:
        return ""
    return f", under another root than the article: {article.node_root}; `esdedup verify` reports why"


def _root_comparison(compared: RootComparison) -> str:
    by = "the root's signature; its text is gone" if compared.article is None else printable(compared.article)
    line = f"nearest representatives {compared.nearest_bits} bits apart"
    if compared.whole_texts is not None:
        line += f"; resemblance {measured(compared.whole_texts)}, "
        line += f"{compared.whole_texts.needed_for_root:.2f} is needed to join a root: "
        line += "it may join" if compared.may_join else "it may not join"
    return f"{line} (by {by})"
