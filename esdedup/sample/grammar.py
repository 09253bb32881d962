"""Sentences with choices and gaps.

``The [ship|vessel] {ship} lay off {town} for {hours:3-9} hours.`` Brackets hold alternative
wordings. Braces hold the name of a fact, which is the same throughout a story; a number of this plot alone
also has its range: ``LEAST-MOST`` or ``LEAST-MOST/STEP``.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Self

GAP = re.compile(r"\{(\w+)(?::([^}]*))?\}")
_CHOICE = re.compile(r"\[([^][]*)\]")
_FIRST_LETTER = re.compile(r"^\W*[a-z]")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeioAEIO8]|1[18]\b)(?!one\b|eu|Eu)")


class Fact(NamedTuple):
    """The words for a fact: at its first mention in a text, at later ones, and in a title."""

    first: str
    again: str
    in_title: str
    # Of a whole number; None for other facts.
    value: int | None = None

    @classmethod
    def plain(cls, words: str, value: int | None = None) -> Self:
        """Return a fact with the same words everywhere."""
        return cls(words, words, words, value)


def choose(template: str, chance: random.Random) -> str:
    """Settle the wording of a template; its gaps stay."""
    return _CHOICE.sub(lambda choice: chance.choice(choice[1].split("|")), template)


def gaps(templates: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each gap of the templates: the fact's name, and its range or an empty string."""
    for template in templates:
        yield from GAP.findall(template)


def fill_title(wording: str, facts: Mapping[str, Fact]) -> str:
    """Fill the gaps of a title."""
    return _polish(GAP.sub(lambda gap: facts[gap[1]].in_title, wording))


def fill(wording: str, facts: Mapping[str, Fact], named: set[str]) -> str:
    """Fill the gaps of a sentence; `named` has the facts mentioned so far, and grows."""

    def words(gap: re.Match[str]) -> str:
        fact = facts[gap[1]]
        if gap[1] in named:
            return fact.again
        named.add(gap[1])
        return fact.first

    return _polish(GAP.sub(words, wording))


def _polish(sentence: str) -> str:
    """Begin with a capital, and turn `a` into `an` before vowels; Chinese stays as it is."""
    sentence = _FIRST_LETTER.sub(lambda start: start[0].upper(), sentence)
    # The check is faster than the pattern: most sentences have no `a`.
    return _ARTICLE.sub(r"\1n ", sentence) if "a " in sentence or "A " in sentence else sentence
