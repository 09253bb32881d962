"""The explanation of two texts, in words."""

from rich.console import Console

from esdedup.cli.output import left_out_words, passage, print_stage
from esdedup.neighbours.explanation import Explanation, Pair, Representative, Text, WholeTextComparison
from esdedup.reading.verdict import RULES
from esdedup.text.left_out import LeftOut

_MOST_PAIRS = 6
_MOST_LINES = 20


def print_explanation(screen: Console, found: Explanation) -> None:
    """Print each stage of the comparison of two texts."""
    texts = {"A": found.one, "B": found.other}
    screen.print(f"profile {found.profile}\n")
    print_stage(
        screen,
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
        print_stage(screen, "  Left out of them", marked)
    represented = [
        (f"{name}{place}", each.simhash, _passage(each))
        for name, text in texts.items()
        for place, each in enumerate(text.representatives, 1)
    ]
    print_stage(screen, "2 Their representatives", represented or [("", "", "none")])
    print_stage(
        screen,
        f"3 Representatives in common: pairs that differ in at most {found.max_distance_bits} of 64 bits",
        _pairs(found),
    )
    print_stage(screen, "4 The whole texts", _whole_texts(found))
    print_stage(screen, "5 The decision for these two texts alone", [("", RULES[found.rule])])


def measured(whole_texts: WholeTextComparison) -> str:
    """Return how much two texts resemble each other, in words."""
    exact = whole_texts.exact_resemblance
    counted = "" if exact is None else f" ({exact:.2f} exactly)"
    return f"{whole_texts.resemblance:.2f} by estimate{counted}"


def left_out_lines(left_out: LeftOut) -> list[str]:
    """Return what is left out of a text, line by line, after a line that says how much it is."""
    lines = [line for span in left_out.spans for line in span.text.splitlines() if line.strip()]
    more = len(lines) - _MOST_LINES
    shown = [left_out_words(left_out), *map(passage, lines[:_MOST_LINES])]
    return [*shown, f"and {more:,} more lines"] if more > 0 else shown


def _text_lines(text: Text, min_letters: int) -> list[str]:
    if text.is_todays:
        return [_length(text, min_letters)]
    return [
        f"{text.letters:,} letters and digits",
        "compared without a fingerprint, as it had none when it came: today it would get one, since what is "
        "left out changes. That is no damage, as its page stays without one"
        if text.fingerprint is None
        else "compared by its stored signature: today it would get another, or none, since what is left out "
        "changes. That is no damage, as a page keeps its node",
    ]


def _length(text: Text, min_letters: int) -> str:
    length = f"{text.letters:,} letters and digits"
    if text.fingerprint is not None:
        return length
    left = text.letters - (0 if text.left_out is None else text.left_out.letters)
    if left >= min_letters:
        return f"{length}, but no words with a weight"
    needed = f"{min_letters} are needed"
    return (
        f"{length}: too short, {needed}" if left == text.letters else f"{length}; {left:,} remain, {needed}"
    )


def _passage(representative: Representative) -> str:
    if representative.kind is None:
        return "not known: made when other passages were left out"
    if representative.passage is None:
        return "a minhash of the text"
    shown = passage(representative.passage)
    return f"the heaviest words: {shown}" if representative.kind == "words" else shown


def _pairs(found: Explanation) -> list[tuple[str, str]]:
    if found.nearest is None:
        return [("", "not compared")]
    if not found.pairs:
        return [
            ("", f"none; the nearest are {_name(found.nearest)}, {found.nearest.distance_bits} bits apart")
        ]
    lines = [(_name(pair), f"{pair.distance_bits} bits apart") for pair in found.pairs[:_MOST_PAIRS]]
    more = len(found.pairs) - _MOST_PAIRS
    return lines + [("", f"and {more} more")] * (more > 0)


def _name(pair: Pair) -> str:
    return f"A{pair.one + 1} and B{pair.other + 1}"


def _whole_texts(found: Explanation) -> list[tuple[str, str]]:
    whole_texts = found.whole_texts
    if whole_texts is None:
        reason = "not compared" if found.nearest is None else "this profile does not compare them"
        return [("", reason)]
    if whole_texts.contained_counts:
        contained = (
            f"{whole_texts.contained:.2f} of the smaller one is in the other as estimated "
            f"({_share(whole_texts.exact_contained)} when counted); "
            f"{whole_texts.contained_needed:.2f} counts as contained"
        )
    else:
        contained = "not considered: one of them is too long or too short for that"
    lines = [
        ("resemblance", measured(whole_texts)),
        ("needed", f"{whole_texts.needed:.2f} at this length"),
        (
            "numbers",
            f"{_share(found.one.number_share)} of A and {_share(found.other.number_share)} of B; without "
            f"them the resemblance is {_share(whole_texts.exact_resemblance_of_words)}",
        ),
        ("contained", contained),
    ]
    if not found.pairs:
        lines.append(
            ("", "(Not decisive: without a representative in common, whole texts are not compared.)")
        )
    return lines


def _share(share: float | None) -> str:
    return "nothing" if share is None else f"{share:.2f}"
