"""Sentences with choices and gaps, and the facts that fill them: people, places, days and numbers.

``The [ship|vessel] {ship} lay off {town} for {hours:3-9} hours.`` Brackets hold alternative
wordings. Braces hold the name of a fact, which is the same throughout a story; a number of this plot alone
also has its range: ``LEAST-MOST`` or ``LEAST-MOST/STEP``.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple, Self

_GAP = re.compile(r"\{(\w+)(?::([^}]*))?\}")
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
    """Choose the wording of a template; its gaps stay."""
    return _CHOICE.sub(lambda choice: chance.choice(choice[1].split("|")), template)


def gaps(templates: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each gap of the templates: the fact's name, and its range or an empty string."""
    for template in templates:
        yield from _GAP.findall(template)


def fill_title(wording: str, facts: Mapping[str, Fact]) -> str:
    """Fill the gaps of a title."""
    return _polish(_GAP.sub(lambda gap: facts[gap[1]].in_title, wording))


def fill(wording: str, facts: Mapping[str, Fact], named: set[str]) -> str:
    """Fill the gaps of a sentence; `named` has the facts mentioned so far, and grows."""

    def words(gap: re.Match[str]) -> str:
        fact = facts[gap[1]]
        if gap[1] in named:
            return fact.again
        named.add(gap[1])
        return fact.first

    return _polish(_GAP.sub(words, wording))


def _polish(sentence: str) -> str:
    """Begin with a capital, and turn `a` into `an` before vowels; Chinese stays as it is."""
    sentence = _FIRST_LETTER.sub(lambda start: start[0].upper(), sentence)
    # The check is faster than the pattern: most sentences have no `a`.
    return _ARTICLE.sub(r"\1n ", sentence) if "a " in sentence or "A " in sentence else sentence


class Range(NamedTuple):
    """Numbers from `least` to `most`, inclusive."""

    least: float
    most: float
    step: int
    decimals: int


Pool = Range | list[str]
"""What a fact is drawn from: numbers, or words.

In words, ``@`` stands for a person's name. ``//`` separates the first mention from later ones; later
mentions of a person use the name anyway.
"""

_RANGE = re.compile(r"(\d+(?:\.\d+)?)-\d+(?:\.(\d+))?(?:/\d+)?")
_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DIGITS = "0123456789"
_WEEKDAYS = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "zh": ("周一", "周二", "周三", "周四", "周五", "周六", "周日"),
}
_MONTHS = {
    "en": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
    "zh": tuple(f"{month}月" for month in range(1, 13)),
}
_SEASONS = {"en": ("winter", "spring", "summer", "autumn"), "zh": ("冬", "春", "夏", "秋")}
_FOLLOWING_DAYS = 3


class Facts(dict[str, Fact]):
    """The facts of one story. A fact is drawn on first use; words are drawn once, until none are left.

    `town2` is another `town`, unless it has a pool of its own.
    """

    def __init__(
        self, pools: Iterable[Mapping[str, Pool]], *, language: str, when: datetime, chance: random.Random
    ) -> None:
        super().__init__(_calendar(when, language))
        self._pools = list(pools)
        self._language = language
        self._chance = chance
        self._taken: set[str] = set()

    def __missing__(self, name: str) -> Fact:
        pool = self._pool(name)
        if isinstance(pool, Range):
            self[name] = self._number(pool)
        else:
            self[name] = self._words(self._pick(pool))
        return self[name]

    def _pool(self, name: str) -> Pool:
        for wanted in (name, name.rstrip(_DIGITS)):
            for pools in self._pools:
                if wanted in pools:
                    return pools[wanted]
        raise KeyError(name)

    def _number(self, pool: Range) -> Fact:
        least, most, step, decimals = pool
        if decimals:
            value = self._chance.uniform(least, most)
            return Fact.plain(f"{value:{_thousands(self._language)}.{decimals}f}")
        return number(self._chance.randrange(int(least), int(most) + 1, step), language=self._language)

    def _words(self, words: str) -> Fact:
        words = _GAP.sub(lambda gap: self[gap[1]].in_title, words)
        first, _, again = words.partition("//")
        if "@" not in words:
            return Fact(first, again or first, first)
        given, family = self._pick(self._pool("given")), self._pick(self._pool("family"))
        name, called = (f"{given} {family}", family) if self._language == "en" else (family + given,) * 2
        return Fact(first.replace("@", name), called, called)

    def _pick(self, pool: Pool) -> str:
        assert isinstance(pool, list)
        left = [each for each in pool if each not in self._taken]
        picked = self._chance.choice(left or pool)
        self._taken.add(picked)
        return picked


def number(value: int, *, language: str) -> Fact:
    """Return a whole number as newspapers write it."""
    if language == "en" and value < len(_SMALL):
        return Fact.plain(_SMALL[value], value)
    return Fact.plain(f"{value:{_thousands(language)}}", value)


def pools(facts: Mapping[str, str | list[str]]) -> dict[str, Pool]:
    """Return the pools of facts, as the grammar writes them."""
    return {
        name: each if isinstance(each, list) else _range(each) if _RANGE.fullmatch(each) else [each]
        for name, each in facts.items()
    }


def ranges(templates: Iterable[str]) -> dict[str, Pool]:
    """Return the ranges that templates give for numbers."""
    return {name: _range(said) for name, said in gaps(templates) if said}


def _range(said: str) -> Range:
    found = _RANGE.fullmatch(said)
    assert found is not None, said
    limits, _, step = said.partition("/")
    least, most = map(float, limits.split("-"))
    return Range(least, most, int(step or 1), len(found[2] or ""))


def _thousands(language: str) -> str:
    return "," if language == "en" else ""


def _calendar(when: datetime, language: str) -> dict[str, Fact]:
    weekdays, months = _WEEKDAYS[language], _MONTHS[language]

    def month(ahead: int) -> str:
        return months[(when.month - 1 + ahead) % len(months)]

    words = {
        "weekday": weekdays[when.weekday()],
        "weekday2": weekdays[(when + timedelta(days=_FOLLOWING_DAYS)).weekday()],
        "date": f"{when.day} {month(0)}" if language == "en" else f"{month(0)}{when.day}日",
        "month": month(-1),
        "last_month": month(-2),
        "next_month": month(1),
        "season": _SEASONS[language][when.month % 12 // 3],
        "last_year": str(when.year - 1),
        "next_year": str(when.year + 1),
    }
    return {name: Fact.plain(each) for name, each in words.items()}
