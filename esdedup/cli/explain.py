"""`esdedup explain`: explains why two articles are, or are not, in one cluster."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.files import read_text
from esdedup.cli.output import left_out_lines, passage, print_stage, printable, show
from esdedup.ingest.records import check_readable
from esdedup.maintenance import ArticleState, IndexedExplanation, Maintenance
from esdedup.neighbours.explanation import Explanation, Representative, Text
from esdedup.neighbours.relation import Way
from esdedup.reading.explanation import explain as explain_texts
from esdedup.reading.verdict import RULES, NodeState, RootComparison, facts, verdict

_NODE_STATES: dict[NodeState, str] = {
    "live": "live",
    "expired": "expired",
    "gone": "not in the forest: expired and deleted, or written since the last refresh",
}

_MAY_JOIN: dict[Way | None, str] = {
    "root": "it may join",
    "member": "it may join through an almost equal text",
    "address": "it may join as a version of its article",
    None: "it may not join",
}
_WAYS: dict[Way, str] = {
    "root": "joined through this article, and resembles the root enough",
    "member": "joined through this article, which is almost equal, and still resembles the root",
    "address": "joined as a later version of this article, with most of its text",
}


@command("explain", example="esdedup explain one.txt other.txt, or: esdedup explain 4711 4712 --index news")
def explain(
    one: Annotated[str, typer.Argument(metavar="A", show_default=False)],
    other: Annotated[str, typer.Argument(metavar="B", show_default=False)],
    *,
    index: str | None = None,
    json: options.Json = False,
    fingerprinting: options.Fingerprinting,
    where: options.Where,
) -> None:
    """Explain, stage by stage, why two articles are or are not in one cluster.

    Also shows what is left out of each text as boilerplate: for articles of an index, what its forest has
    learned so far; for files, what `esdedup cluster` would leave out of these two files. B is treated as the
    later article, and as a possible version of A if both are JSON with the same address (or `id`).

    With --index, articles are compared by the profile they were indexed with, unless --profile names
    another profile. The exit code does not depend on the result.

    Options:
        one: A file with one article, plain text or JSON with the text field; - is standard input. With
            --index: an id.
        other: The other article.
        index: Index of the articles, or an alias; A and B are then ids.
    """
    overrides = fingerprinting.overrides()
    if index is None:
        fields = where.fields()
        paths = [Path(one), Path(other)]
        profile = fingerprinting.read_profile()
        check_readable(paths)
        texts = [read_text(path, fields) for path in paths]
        compared = explain_texts(texts[0], texts[1], profile, overrides=overrides)
        output.print_answer(compared, _print_explanation, json=json)
        return
    given = fingerprinting.given_profile()
    with where.connect() as client:
        maintenance = Maintenance(client, forest=where.forest, fields=where.fields_of(client, index))
        indexed = maintenance.explain(index, one, other, profile=given, overrides=overrides)
    output.print_answer(indexed, _print_verdict, json=json)


def _print_explanation(found: Explanation) -> None:
    texts = {"A": found.one, "B": found.other}
    show(f"profile {found.profile}\n")
    print_stage(
        "1 The texts",
        [(name, line) for name, text in texts.items() for line in _text_lines(text, found.min_letters)],
    )
    marked = [
        (name, line)
        for name, text in texts.items()
        if text.left_out is not None
        for line in left_out_lines(text.left_out)
    ]
    if marked:
        print_stage("  Left out", marked)
    represented = [
        (f"{name}{place}", each.simhash, _passage(each))
        for name, text in texts.items()
        for place, each in enumerate(text.representatives, 1)
    ]
    print_stage("2 Their representatives", represented or [("", "", "none")])
    print_stage("3 What they have in common", [*facts(found)] or [("", "not compared")])
    print_stage("4 The decision for these two texts alone", [("", RULES[found.rule])])


def _print_verdict(found: IndexedExplanation) -> None:
    _print_explanation(found.comparison)
    for name, article in (("A", found.one), ("B", found.other)):
        print_stage(
            f"5 In the index: {name} is {printable(article.id)} in {article.index}",
            _article_lines(article, found),
        )
    if found.forest_missing is not None:
        print_stage("The forest", [("", found.forest_missing)])
    elif found.learned_missing is not None:
        print_stage("The learned boilerplate is not available", [("", found.learned_missing)])
    if found.retention_days is not None:
        show(f"The forest is {escape(found.forest)}; nodes live {found.retention_days:g} days.")
    show(escape(verdict(found)))


def _text_lines(text: Text, min_letters: int) -> list[str]:
    length = f"{text.letters:,} letters and digits"
    if not text.is_todays:
        how = (
            "without a fingerprint, since it had none on arrival. It would get one today, because other "
            "passages are left out. This is not damage: its content hash stays without a fingerprint"
            if text.fingerprint is None
            else "by its stored signature. It would get another one or none today, because other passages "
            "are left out. This is not damage: its content hash keeps its node"
        )
        return [length, f"compared {how}"]
    if text.fingerprint is not None:
        return [length]
    left = text.letters - (0 if text.left_out is None else text.left_out.letters)
    if left >= min_letters:
        return [f"{length}, but no words with a weight"]
    return [
        f"{length}: too short, at least {min_letters} are needed"
        if left == text.letters
        else f"{length}; {left:,} remain, at least {min_letters} are needed"
    ]


def _passage(representative: Representative) -> str:
    if representative.kind is None:
        return "unknown: computed when other passages were left out"
    if representative.passage is None:
        return "a minhash of the text"
    shown = passage(representative.passage)
    return f"the heaviest words: {shown}" if representative.kind == "words" else shown


def _article_lines(article: ArticleState, found: IndexedExplanation) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    if article.also_in:
        lines.append(("", f"also in {', '.join(article.also_in)}; this one arrived last"))
    if article.root is None:
        return [*lines, ("root", "none: it was indexed without esdedup")]
    when = "" if article.seen is None else f", when the forest's time was {article.seen}"
    profile = article.profile or "none"
    if article.profile != found.comparison.profile:
        profile = f"{article.profile}, which is not the profile of the comparison above"
    fingerprint = article.fingerprint or "none"
    if article.fingerprint is None and article.stays_without:
        fingerprint += "; its content hash is remembered, so the text gets none if it arrives again"
    elif article.fingerprint is not None and article.text_is_same is False:
        fingerprint += "; its current text has a different one: the text has changed, or is in another field"
    lines += [
        ("arrival", ("unknown" if article.seq is None else f"{article.seq:,}") + when),
        ("profile", profile),
        ("fingerprint", fingerprint),
        ("root", article.root + (", itself" if article.root == article.fingerprint else "")),
    ]
    if article.node is not None:
        state = _NODE_STATES[article.node]
        if article.node_root not in {None, article.root}:
            state += f", under a different root from the article's: {article.node_root}; "
            state += "`esdedup verify` reports why"
        lines.append(("its node", state))
    if article.root_node is not None:
        state = _NODE_STATES[article.root_node]
        if article.live_leaves is not None:
            state += f"; the cluster has {article.live_leaves:,} live leaves"
        lines.append(("its root", state))
    if article.to_root is not None:
        lines.append(("with its root", _root_comparison(article.to_root)))
    if article.neighbour is not None:
        by = article.neighbour.article or f"{article.neighbour.fingerprint}, which no article has now"
        way = article.neighbour.way
        lines.append(("neighbour", printable(by) + ("" if way is None else f": {_WAYS[way]}")))
    if article.to_other_root is not None:
        lines.append(("with the other's root", _root_comparison(article.to_other_root)))
    return lines


def _root_comparison(compared: RootComparison) -> str:
    by = "the root's signature; its text is gone" if compared.article is None else printable(compared.article)
    line = f"nearest representatives {compared.nearest_bits} bits apart"
    if (whole := compared.whole_texts) is not None:
        exactly = "" if whole.exact_resemblance is None else f" (exactly {whole.exact_resemblance:.2f})"
        line += f"; estimated resemblance {whole.resemblance:.2f}{exactly}, "
        line += f"{whole.needed_for_root:.2f} is needed to join a root: {_MAY_JOIN[compared.way]}"
    return f"{line} (by {by})"
