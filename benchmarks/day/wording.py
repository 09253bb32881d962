"""Invented languages: words without a meaning, in the scripts of real ones, and sentences made of them."""

import dataclasses
import itertools
import random
from collections.abc import Sequence

_VOCABULARY = 3_000
# Frequent words are as frequent as in real languages, but for the first few.
_FLATTENED_RANKS = 8
_SHORTEST_SENTENCE, _LONGEST_SENTENCE = 6, 34
_MEAN_WORDS, _DEVIATION_WORDS = 17, 7
# Shares of the words of a sentence.
_NAMES, _NUMBERS, _COMMAS = 0.12, 0.03, 0.08


@dataclasses.dataclass(frozen=True, kw_only=True)
class Script:
    """How words are made, and written one after the other."""

    # A word is some syllables, each of one part of every kind.
    parts: Sequence[Sequence[str]]
    syllables: tuple[int, int] = (1, 4)
    between: str = " "
    comma: str = ","
    stop: str = "."
    # Between two sentences of a paragraph.
    after: str = " "
    has_capitals: bool = False


def _range(first: int, last: int, count: int = 10_000) -> list[str]:
    """Return characters, evenly from a range of code points."""
    points = range(first, last + 1)
    return [chr(each) for each in points[:: max(1, len(points) // count)]]


SCRIPTS = {
    "latin": Script(parts=("bcdfghjklmnprstvw", "aeiou", ["", "", "n", "r", "s", "t"]), has_capitals=True),
    "chinese": Script(
        parts=[_range(0x4E00, 0x9FA0, 2_500)], syllables=(1, 3), between="", comma="，", stop="。", after=""
    ),
    "latin with marks": Script(
        parts=(["b", "d", "f", "g", "h", "kr", "l", "m", "n", "r", "sch", "st", "w"], "aeiouäöüå", "nrst"),
        has_capitals=True,
    ),
    "cyrillic": Script(parts=("бвгджзклмнпрстфх", "аеиоуыэюя", ["", "", "н", "р", "с"]), has_capitals=True),
    "arabic": Script(parts=(_range(0x628, 0x63A), ["", "ا", "و", "ي"]), syllables=(2, 4), comma="،"),
    "devanagari": Script(parts=(_range(0x915, 0x928), _range(0x93E, 0x943)), stop="।"),
    "korean": Script(parts=[_range(0xAC00, 0xD7A0, 900)], syllables=(1, 4)),
    # Without full stops; a space ends a sentence.
    "thai": Script(
        parts=(_range(0xE01, 0xE2E), "ะาิีึืุู", ["", "น", "ง"]), between="", comma=" ", stop="", after=" "
    ),
}


class Language:
    """A vocabulary, and sentences of it."""

    def __init__(self, name: str, seed: int) -> None:
        chance = random.Random(f"{name} {seed}")
        self.name = name
        self.script = SCRIPTS[name]
        self._words = [self.word(chance) for _ in range(_VOCABULARY)]
        self._weights = list(
            itertools.accumulate(1 / (rank + _FLATTENED_RANKS) for rank in range(len(self._words)))
        )
        # What people say on every occasion.
        self.stock = [self.sentence(chance) for _ in range(40)]
        # Services that many sites have in common.
        self.banners = [self.prose(chance, 2) for _ in range(5)]

    def word(self, chance: random.Random) -> str:
        """Return a new word, such as a name."""
        syllables = range(chance.randint(*self.script.syllables))
        # Much faster than `choice`.
        return "".join(
            part[int(chance.random() * len(part))] for _ in syllables for part in self.script.parts
        )

    def words(self, chance: random.Random, count: int) -> list[str]:
        return chance.choices(self._words, cum_weights=self._weights, k=count)

    def phrase(self, chance: random.Random, least: int, most: int) -> str:
        """Return some words as they stand in a menu or a headline."""
        return self._capital(self.script.between.join(self.words(chance, chance.randint(least, most))))

    def sentence(self, chance: random.Random, names: Sequence[str] = ()) -> str:
        """Return a sentence, with some of these names and numbers."""
        length = round(chance.gauss(_MEAN_WORDS, _DEVIATION_WORDS))
        words = self.words(chance, min(max(length, _SHORTEST_SENTENCE), _LONGEST_SENTENCE))
        for place in range(len(words)):
            drawn = chance.random()
            if drawn < _NUMBERS:
                words[place] = str(chance.randint(2, 3_000))
            elif names and drawn < _NUMBERS + _NAMES:
                words[place] = chance.choice(names)
            elif place and drawn > 1 - _COMMAS:
                words[place - 1] += self.script.comma
        return self._capital(self.script.between.join(words)) + self.script.stop

    def prose(self, chance: random.Random, sentences: int, names: Sequence[str] = ()) -> str:
        return self.script.after.join(self.sentence(chance, names) for _ in range(sentences))

    def _capital(self, text: str) -> str:
        return text[:1].upper() + text[1:] if self.script.has_capitals else text
