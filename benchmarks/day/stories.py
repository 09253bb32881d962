"""Stories, and the versions of them that sites print: reprints with edits, and cut ones."""

import dataclasses
import itertools
import random
from collections.abc import Sequence

from benchmarks.day.wording import Language

# Shares of the stories: notes and long pieces, by their numbers of sentences; the others are between.
_NOTES, _LONG = 0.25, 0.2
_NOTE_SENTENCES, _USUAL_SENTENCES, _LONG_SENTENCES = (2, 5), (7, 20), (25, 70)
# Shares of the sentences that are on every occasion.
_STOCK = 0.015
# Shares of the reprints: without any edit, and with each of the edits; these independently of each other.
_EXACT = 0.4
_OTHER_WORDS, _DROPPED, _ADDED, _OTHER_TITLE, _OTHER_PARAGRAPHS = 0.6, 0.3, 0.2, 0.3, 0.2
# Of the sentences of a version, each edit touches at most this share.
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
    # What it is about.
    names: Sequence[str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Version:
    """A story as a site prints it."""

    title: str
    # Paragraphs of sentences.
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
        # One sentence of a note is too much of it.
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
    """Exchange one word of a sentence, or one character of a script without spaces."""
    words = sentence.split(" ")
    if len(words) > 1:
        words[chance.randrange(len(words) - 1)] = story.language.words(chance, 1)[0]
        return " ".join(words)
    place = chance.randrange(len(sentence) - 1)
    return sentence[:place] + story.language.word(chance)[0] + sentence[place + 1 :]


def _lengths(sentences: int, chance: random.Random) -> list[int]:
    """Return lengths of paragraphs, of at least so many sentences together."""
    lengths: list[int] = []
    while sum(lengths) < sentences:
        lengths.append(chance.randint(*_PARAGRAPH))
    return lengths


def _version(title: str, sentences: list[str], paragraphs: Sequence[int]) -> Version:
    rest = iter(sentences)
    cut = [list(itertools.islice(rest, length)) for length in paragraphs]
    # What was added stands at the end.
    cut.append(list(rest))
    return Version(title=title, paragraphs=[each for each in cut if each])
