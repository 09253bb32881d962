"""Invented stories in invented words of many scripts."""

import dataclasses
import itertools
import random
from collections.abc import Sequence

_VOCABULARY = 3_000
# Word frequencies follow Zipf's law, flattened for the most frequent words.
_FLATTENED_RANKS = 8
_SHORTEST_SENTENCE, _LONGEST_SENTENCE = 6, 34
_MEAN_WORDS, _DEVIATION_WORDS = 17, 7
# The shares of words that are names, are numbers, or have a comma after them.
_NAMES, _NUMBERS, _COMMAS = 0.12, 0.03, 0.08


@dataclasses.dataclass(frozen=True, kw_only=True)
class Script:
    """How words are formed and joined."""

    # A word consists of syllables, and each syllable consists of one part of every kind.
    parts: Sequence[Sequence[str]]
    syllables: tuple[int, int] = (1, 4)
    between: str = " "
    comma: str = ","
    stop: str = "."
    # The separator between two sentences of a paragraph.
    after: str = " "
    has_capitals: bool = False


def _range(first: int, last: int, count: int = 10_000) -> list[str]:
    """Return characters that are evenly spaced in a range of code points."""
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
    # Thai has no full stops; a space ends a sentence.
    "thai": Script(
        parts=(_range(0xE01, 0xE2E), "ะาิีึืุู", ["", "น", "ง"]), between="", comma=" ", stop="", after=" "
    ),
}


class Language:
    """A vocabulary, and sentences made from it."""

    def __init__(self, name: str, seed: int) -> None:
        chance = random.Random(f"{name} {seed}")
        self.name = name
        self.script = SCRIPTS[name]
        self._words = [self.word(chance) for _ in range(_VOCABULARY)]
        self._weights = list(
            itertools.accumulate(1 / (rank + _FLATTENED_RANKS) for rank in range(len(self._words)))
        )
        # Sentences that unrelated stories share.
        self.stock = [self.sentence(chance) for _ in range(40)]
        # Banners that many sites share.
        self.banners = [self.prose(chance, 2) for _ in range(5)]

    def word(self, chance: random.Random) -> str:
        """Return a new word, such as a name."""
        syllables = range(chance.randint(*self.script.syllables))
        # This is much faster than `choice`.
        return "".join(
            part[int(chance.random() * len(part))] for _ in syllables for part in self.script.parts
        )

    def words(self, chance: random.Random, count: int) -> list[str]:
        return chance.choices(self._words, cum_weights=self._weights, k=count)

    def phrase(self, chance: random.Random, least: int, most: int) -> str:
        """Return some words for a menu or a headline."""
        return self._capital(self.script.between.join(self.words(chance, chance.randint(least, most))))

    def sentence(self, chance: random.Random, names: Sequence[str] = ()) -> str:
        """Return a sentence with some of the names, and some numbers."""
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


# The shares of short notes and of long stories; other stories have a usual length. Lengths are in sentences.
_NOTES, _LONG = 0.25, 0.2
_NOTE_SENTENCES, _USUAL_SENTENCES, _LONG_SENTENCES = (2, 5), (7, 20), (25, 70)
# The share of sentences that also occur in unrelated stories.
_STOCK = 0.015
# The share of reprints without edits; then, for each kind of edit, its share of the other reprints. Edits are
# independent of each other.
_EXACT = 0.4
_OTHER_WORDS, _DROPPED, _ADDED, _OTHER_TITLE, _OTHER_PARAGRAPHS = 0.6, 0.3, 0.2, 0.3, 0.2
# The largest share of a version's sentences that one edit changes.
_MOST_TOUCHED = 0.08
_TRUNCATED = 0.04
_PARAGRAPH = (1, 4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Story:
    language: Language
    title: str
    sentences: Sequence[str]
    # The number of sentences in each paragraph.
    paragraphs: Sequence[int]
    # The names that its sentences mention.
    names: Sequence[str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Version:
    """A story as a site prints it."""

    title: str
    # The sentences of each paragraph.
    paragraphs: Sequence[Sequence[str]]

    def cut_to(self, paragraphs: int) -> "Version":
        return dataclasses.replace(self, paragraphs=self.paragraphs[:paragraphs])

    @property
    def sentences(self) -> list[str]:
        return [sentence for paragraph in self.paragraphs for sentence in paragraph]


def tell(language: Language, chance: random.Random) -> Story:
    drawn = chance.random()
    lengths = (
        _NOTE_SENTENCES if drawn < _NOTES else _LONG_SENTENCES if drawn > 1 - _LONG else _USUAL_SENTENCES
    )
    names = [language.word(chance) + language.word(chance) for _ in range(chance.randint(3, 12))]
    sentences = [
        chance.choice(language.stock) if chance.random() < _STOCK else language.sentence(chance, names)
        for _ in range(chance.randint(*lengths))
    ]
    return Story(
        language=language,
        title=language.phrase(chance, 5, 12),
        sentences=sentences,
        paragraphs=_lengths(len(sentences), chance),
        names=names,
    )


def original(story: Story) -> Version:
    return _version(story.title, list(story.sentences), story.paragraphs)


def reprint(story: Story, chance: random.Random) -> Version:
    """Return a version as another site prints it."""
    title, sentences, paragraphs = story.title, list(story.sentences), story.paragraphs
    if chance.random() >= _EXACT:
        most = max(1, int(len(sentences) * _MOST_TOUCHED))
        if chance.random() < _OTHER_TITLE:
            title = story.language.phrase(chance, 5, 12)
        if chance.random() < _OTHER_WORDS:
            for place in chance.sample(range(len(sentences)), most):
                sentences[place] = _reworded(sentences[place], story, chance)
        if chance.random() < _OTHER_PARAGRAPHS:
            paragraphs = _lengths(len(sentences), chance)
        # A note is too short to lose or gain a sentence.
        if len(sentences) >= _USUAL_SENTENCES[0]:
            if chance.random() < _DROPPED:
                first = chance.choice((len(sentences) - most, chance.randrange(len(sentences) - most)))
                del sentences[first : first + most]
            if chance.random() < _ADDED:
                sentences.insert(
                    chance.randrange(len(sentences)), story.language.sentence(chance, story.names)
                )
    version = _version(title, sentences, paragraphs)
    if chance.random() < _TRUNCATED:
        version = version.cut_to(chance.randint(1, len(version.paragraphs)))
    return version


def _reworded(sentence: str, story: Story, chance: random.Random) -> str:
    """Replace one word of a sentence, or one character in a script without spaces."""
    words = sentence.split(" ")
    if len(words) > 1:
        words[chance.randrange(len(words) - 1)] = story.language.words(chance, 1)[0]
        return " ".join(words)
    place = chance.randrange(len(sentence) - 1)
    return sentence[:place] + story.language.word(chance)[0] + sentence[place + 1 :]


def _lengths(sentences: int, chance: random.Random) -> list[int]:
    """Return lengths of paragraphs that add up to at least `sentences`."""
    lengths: list[int] = []
    while sum(lengths) < sentences:
        lengths.append(chance.randint(*_PARAGRAPH))
    return lengths


def _version(title: str, sentences: list[str], paragraphs: Sequence[int]) -> Version:
    rest = iter(sentences)
    found = [list(itertools.islice(rest, length)) for length in paragraphs]
    # An added sentence makes the list longer than the sum of `paragraphs`.
    found.append(list(rest))
    return Version(title=title, paragraphs=[each for each in found if each])
