"""An explanation in words."""

from rich.console import Console

from esdedup.cli.output import passage, print_stage
from esdedup.neighbours.explanation import Explanation, Pair, Representative, Rule, Text, WholeTextComparison

_MOST_PAIRS = 6

RULES = {
    Rule.NO_FINGERPRINT: (
        "One of them has no fingerprint. It stands alone, whatever the other is: two texts alone would not "
        "be in one cluster."
    ),
    Rule.EQUAL: "All that is compared of them is equal: they have one fingerprint, and one cluster.",
    Rule.NOTHING_IN_COMMON: (
        "Nothing that represents one is near anything that represents the other, so nobody looks any "
        "further: two texts alone would not be in one cluster."
    ),
    Rule.WITHIN_DISTANCE: (
        "Their fingerprints are near each other, and this profile asks for no more: two texts alone would "
        "be in one cluster."
    ),
    Rule.RESEMBLE: (
        "They have a representative in common, and resemble each other enough: two texts alone would be in "
        "one cluster."
    ),
    Rule.CONTAINED: (
        "They have a representative in common, and the smaller one is contained in the other: two texts "
        "alone would be in one cluster."
    ),
    Rule.IN_THE_FIRST: (
        "They have a representative in common, and B is contained in A. But A would be the root, and a root "
        "takes in nothing that it only contains: two texts alone would not be in one cluster; they would if "
        "B came first."
    ),
    Rule.UNLIKE: (
        "They have a representative in common, but as a whole they resemble each other too little: two "
        "texts alone would not be in one cluster."
    ),
}


def print_explanation(screen: Console, found: Explanation) -> None:
    """Print the stages that the two texts alone decide, for people."""
    texts = {"A": found.one, "B": found.other}
    screen.print(f"profile {found.profile}\n")
    print_stage(
        screen,
        "1 The texts",
        [(name, _length(text, found.min_letters)) for name, text in texts.items()],
    )
    represented = [
        (f"{name}{place}", each.simhash, _passage(each))
        for name, text in texts.items()
        for place, each in enumerate(text.representatives, 1)
    ]
    print_stage(screen, "2 What represents them", represented or [("", "", "nothing")])
    print_stage(
        screen,
        f"3 Pairs of those that differ in {found.max_distance_bits} bits at most, of 64",
        _pairs(found),
    )
    print_stage(screen, "4 The whole texts", _whole_texts(found))
    print_stage(screen, "5 What decides", [("", RULES[found.rule])])


def measured(whole_texts: WholeTextComparison) -> str:
    """Say how much two texts resemble each other."""
    exact = whole_texts.exact_resemblance
    counted = "" if exact is None else f", {exact:.2f} when counted"
    return f"{whole_texts.resemblance:.2f} as estimated{counted}"


def _length(text: Text, min_letters: int) -> str:
    length = f"{text.letters:,} letters and digits"
    if text.letters < min_letters:
        return f"{length}: too short, it takes {min_letters}"
    return length if text.fingerprint else f"{length}, but no words that tell anything"


def _passage(representative: Representative) -> str:
    if representative.passage is None:
        return "a minhash of the wording"
    told = passage(representative.passage)
    return f"the heaviest words: {told}" if representative.kind == "words" else told


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
        asked = "not compared" if found.nearest is None else "this profile does not look at them"
        return [("", asked)]
    if whole_texts.contained_counts:
        contained = (
            f"{whole_texts.contained:.2f} of the smaller one is in the other as estimated "
            f"({_share(whole_texts.exact_contained)} when counted); "
            f"{whole_texts.contained_needed:.2f} counts as contained"
        )
    else:
        contained = "not considered: one of them is too long for that"
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
        lines.append(("", "(For the record: with no pair near each other, nobody asks for these.)"))
    return lines


def _share(share: float | None) -> str:
    return "nothing" if share is None else f"{share:.2f}"
