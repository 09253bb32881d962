"""Sentences with choices and gaps, and the facts that fill them: people, places, days and numbers.

``The [ship|vessel] {ship} lay off {town} for {hours:3-9} hours.`` Brackets contain alternative wordings.
Braces contain the name of a fact, whose value is the same throughout a story. The name of a number may be
followed by its range, ``LEAST-MOST`` or ``LEAST-MOST/STEP``, which applies to this plot only.
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
    """The words for a fact: at its first mention in a text, at later mentions, and in a title."""

    first: str
    again: str
    in_title: str
    # The value of a whole number; None for other facts.
    value: int | None = None

    @classmethod
    def plain(cls, words: str, value: int | None = None) -> Self:
        """Return a fact with the same words everywhere."""
        return cls(words, words, words, value)


def choose(template: str, chance: random.Random) -> str:
    """Choose a wording of a template; its gaps remain."""
    return _CHOICE.sub(lambda choice: chance.choice(choice[1].split("|")), template)


def gaps(templates: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each gap of the templates: the fact's name, and its range or an empty string."""
    for template in templates:
        yield from _GAP.findall(template)


def fill_title(wording: str, facts: Mapping[str, Fact]) -> str:
    """Fill the gaps of a title."""
    return _polish(_GAP.sub(lambda gap: facts[gap[1]].in_title, wording))


def fill(wording: str, facts: Mapping[str, Fact], named: set[str]) -> str:
    """Fill the gaps of a sentence; `named` contains the facts mentioned so far, and is updated."""

    def words(gap: re.Match[str]) -> str:
        fact = facts[gap[1]]
        if gap[1] in named:
            return fact.again
        named.add(gap[1])
        return fact.first

    return _polish(_GAP.sub(words, wording))


def _polish(sentence: str) -> str:
    """Capitalise the first letter, and turn `a` into `an` before vowels; leave Chinese unchanged."""
    sentence = _FIRST_LETTER.sub(lambda start: start[0].upper(), sentence)
    # This check is faster than the pattern, and most sentences do not contain the word `a`.
    return _ARTICLE.sub(r"\1n ", sentence) if "a " in sentence or "A " in sentence else sentence


class Range(NamedTuple):
    """Numbers from `least` to `most`, inclusive."""

    least: float
    most: float
    step: int
    decimals: int


Pool = Range | list[str]
"""The numbers or words from which a fact is drawn.

In words, ``@`` stands for a person's name. ``//`` separates the first mention from later ones. Later mentions
of a person always use the name.
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
    """The facts of one story. A fact is drawn on first use; words repeat only after all words were drawn.

    The fact `town2` is another `town`, unless there is a pool named `town2`.
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
        for key in (name, name.rstrip(_DIGITS)):
            for pools in self._pools:
                if key in pools:
                    return pools[key]
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
    """Return the pools of facts from their notation in the grammar."""
    return {
        name: each if isinstance(each, list) else _range(each) if _RANGE.fullmatch(each) else [each]
        for name, each in facts.items()
    }


def ranges(templates: Iterable[str]) -> dict[str, Pool]:
    """Return the ranges of numbers in templates, by name."""
    return {name: _range(text) for name, text in gaps(templates) if text}


def _range(text: str) -> Range:
    found = _RANGE.fullmatch(text)
    assert found is not None, text
    limits, _, step = text.partition("/")
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
