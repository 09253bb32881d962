"""Segmenters cut normalised text into words: as jieba does, by Unicode, into n-grams, or by a function."""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from esdedup import _core
from esdedup.errors import SettingError
from esdedup.text.hashing import murmur64
from esdedup.text.normalise import normal_form

MAX_GRAM_LENGTH = 64
"""The most letters of an n-gram."""

# rjieba keeps compounds such as `long-term` and `m.weibo.cn` whole. jieba cuts them at these
# places, except for two that are in its dictionary.
_WHOLE = frozenset({"c#", "c++"})
_COMPOUND = re.compile(r"[a-zA-Z0-9][+#&._%-]|[+#&._%-][a-zA-Z0-9]")
_PARTS = re.compile(r"([a-zA-Z0-9]+(?:\.\d+)?%?)")
# Copied from jieba's regular expressions.
_HAN = re.compile("[\u4e00-\u9fd5]")
_GRAMS = re.compile(r"([1-9]\d?)-grams")
# Lines of a dictionary, as jieba reads them: a word, perhaps its frequency, perhaps its part of speech.
_LINE = re.compile(r"(.+?)(?:\s+([0-9]+))?(?:\s+([a-z]+))?")
# Those of jieba's dictionary, and what it calls English words and punctuation.
_PART_OF_SPEECH = re.compile(
    "a[dgn]?|b|c|d[fg]?|e(ng)?|f|g|h|i|j|k|l|m[gq]?|n(g|r|rfg|rt|s|t|z)?|o|p|q|r[grz]?|s|tg?|u[dgjlvz]?|"
    "v[dginq]?|w|x|y|zg?"
)
_MAX_FREQUENCY = 2**31 - 1
# No word is longer. jieba takes minutes for one of 60,000 characters, such as a line of a wrong file.
_MAX_LENGTH = 256


class Segmenter(Protocol):
    """How a text is cut into words."""

    @property
    def name(self) -> str:
        """Identifies the segmenter in a profile's label: different segmenters have different names."""

    def cut(self, text: str) -> Sequence[str]:
        """Cut normalised text into words. Those without letters and digits are ignored."""

    def can_yield(self, word: str) -> bool:
        """Return whether a word, in its normal form, is cut as such from some text."""


@dataclasses.dataclass(frozen=True)
class Dictionary:
    """Words for jieba in addition to its own dictionary; of duplicate entries, the last counts.

    Raises:
        SettingError: There are none, which would change the profile's label and nothing else.
    """

    # Words in normal form, with their frequencies. None: as high as it takes for jieba to keep the word
    # whole. 0: the word is split.
    entries: tuple[tuple[str, int | None], ...]

    def __post_init__(self) -> None:
        if not self.entries:
            raise SettingError("the dictionary has no words: leave it out")

    @classmethod
    def of_words(cls, words: Iterable[str]) -> "Dictionary":
        """Make a dictionary of words without frequencies."""
        return cls(tuple((normal_form(word), None) for word in words))

    @classmethod
    def of_lines(cls, lines: Iterable[str], *, name: str) -> "Dictionary":
        """Read the lines of one of jieba's user dictionaries: a word, its frequency, its part of speech.

        The last two may be missing, and the part of speech has no effect. Empty lines are ignored.

        Args:
            lines: In any order.
            name: Of the dictionary, for messages.

        Raises:
            SettingError: There is no word; a frequency is too large; a word has more than 256 characters; or
                a word is followed by another one, which jieba itself takes for its part of speech.
        """
        entries: list[tuple[str, int | None]] = []
        for number, line in enumerate(lines, start=1):
            found = _LINE.fullmatch(line.strip())
            if found is None:
                continue
            word, frequency, part_of_speech = found.groups()
            if len(word) > _MAX_LENGTH:
                raise SettingError(
                    f"{name}:{number}: a word of {len(word):,} characters, which begins {word[:20]!r}; write "
                    f"one word a line, of {_MAX_LENGTH} characters at most"
                )
            if not (frequency or part_of_speech is None or _PART_OF_SPEECH.fullmatch(part_of_speech)):
                raise SettingError(
                    f"{name}:{number}: {part_of_speech!r} is not a part of speech of jieba's; write one word "
                    "a line, without blanks, since jieba cuts at them anyway"
                )
            # Python refuses to read thousands of digits.
            if frequency is not None and (len(frequency) > 20 or int(frequency) > _MAX_FREQUENCY):
                raise SettingError(
                    f"{name}:{number}: the frequency {frequency:.20} is more than {_MAX_FREQUENCY:,}"
                )
            entries.append((normal_form(word), None if frequency is None else int(frequency)))
        if not entries:
            raise SettingError(f"{name} has no words: leave it out")
        return cls(tuple(entries))

    @property
    def digest(self) -> str:
        """A hash of the contents, in 16 hex digits."""
        lines = (f"{word}\t{frequency}\n" for word, frequency in self.entries)
        return f"{murmur64(''.join(lines).encode()):016x}"


@dataclasses.dataclass(frozen=True)
class Jieba:
    """Words as jieba cuts them; white space and punctuation are words too."""

    # The user's words, beside those of jieba's own dictionary.
    dictionary: Dictionary | None = None

    @functools.cached_property
    def name(self) -> str:
        """The name: jieba, and a hash of the user's dictionary."""
        return "jieba" if self.dictionary is None else f"jieba-{self.dictionary.digest}"

    def cut(self, text: str) -> Sequence[str]:
        """Cut normalised text into words."""
        words: Sequence[str] = self._cut(text, True)
        if self._never:
            words = [part for word in words for part in self._letters(word)]
        if not _COMPOUND.search(text):
            return words
        return [part for word in words for part in self._parts(word) if part]

    def can_yield(self, word: str) -> bool:
        """Return whether a word is cut as such from some text.

        jieba takes the likeliest sequence of dictionary words. If that splits this word, it does so in every
        context. Only where single characters remain does jieba guess words (by a hidden Markov model), which
        depend on the context.
        """
        if list(self.cut(word)) == [word]:
            return True
        return word not in self._never and all(map(_HAN.fullmatch, self._cut(word, False)))

    def __reduce__(self) -> tuple[type["Jieba"], tuple[Dictionary | None]]:
        """Leave out the compiled dictionary, which cannot be sent to another process."""
        return Jieba, (self.dictionary,)

    def _letters(self, word: str) -> Sequence[str]:
        """Split a word that jieba must not guess into its characters."""
        return word if word in self._never and all(map(_HAN.fullmatch, word)) else (word,)

    def _parts(self, word: str) -> Sequence[str]:
        if word in self._whole or not _COMPOUND.search(word):
            return (word,)
        return _PARTS.split(word)

    @functools.cached_property
    def _whole(self) -> frozenset[str]:
        own = () if self.dictionary is None else self.dictionary.entries
        return _WHOLE.union(word for word, _ in own) - self._never

    @functools.cached_property
    def _never(self) -> frozenset[str]:
        own = () if self.dictionary is None else self.dictionary.entries
        return frozenset(word for word, frequency in dict(own).items() if frequency == 0)

    @functools.cached_property
    def _cut(self) -> Callable[[str, bool], list[str]]:
        """Cuts a text; the second argument is whether words are guessed that no dictionary has."""
        # Imported on first use: it unpacks its dictionary, 0.16 s of CPU time; most commands cut no words.
        import rjieba

        if self.dictionary is None:
            return rjieba.cut
        # A private instance: words added to the shared one would affect every profile.
        own = rjieba.Jieba()
        for word, frequency in self.dictionary.entries:
            own.add_word(word, frequency, None)
        return own.cut


@dataclasses.dataclass(frozen=True)
class UnicodeWords:
    """Runs of letters, digits and the marks that belong to them, for scripts with spaces between words.

    Where there are none, as in Chinese, all between two punctuation marks is one word. Signs within a
    number, as in 1,000.5, belong to it.
    """

    name: str = "words"

    def cut(self, text: str) -> Sequence[str]:
        """Cut normalised text into words."""
        return _core.words(text)

    def can_yield(self, word: str) -> bool:
        """Return whether a word is cut as such from some text."""
        return self.cut(word) == [word]


@dataclasses.dataclass(frozen=True)
class NGrams:
    """All runs of `size` letters and digits, whatever stands between them; for any script.

    A text with fewer is one word. Vowel signs and accents count as letters.

    Raises:
        SettingError: The size is not from 1 to 64.
    """

    size: int

    def __post_init__(self) -> None:
        if not 1 <= self.size <= MAX_GRAM_LENGTH:
            raise SettingError(
                f"the length of n-grams is {self.size}; it must be from 1 to {MAX_GRAM_LENGTH}"
            )

    @property
    def name(self) -> str:
        """Such as 3-grams."""
        return f"{self.size}-grams"

    def cut(self, text: str) -> Sequence[str]:
        """Cut normalised text into words."""
        letters = _core.letters(text)
        if len(letters) <= self.size:
            return [letters] if letters else []
        return [letters[at : at + self.size] for at in range(len(letters) - self.size + 1)]

    def can_yield(self, word: str) -> bool:
        """Return whether a word is cut as such from some text that is not shorter."""
        return len(word) == self.size and self.cut(word) == [word]


@dataclasses.dataclass(frozen=True)
class CustomSegmenter:
    """A function of the user's, under a name that belongs to the profile's label.

    Another function needs another name.

    Raises:
        SettingError: The name is empty, or that of another segmenter.
    """

    name: str
    # From normalised text (NFKC, case folded, simplified characters) to its words.
    function: Callable[[str], Iterable[str]]

    def __post_init__(self) -> None:
        if not self.name:
            raise SettingError("a segmenter of one's own needs a name: it belongs to the profile's label")
        if self.name.startswith(JIEBA.name) or segmenter_named(self.name) is not None:
            raise SettingError(f"the segmenter {self.name!r} exists: choose another name for your own")

    def cut(self, text: str) -> Sequence[str]:
        """Cut normalised text into words.

        Raises:
            SettingError: The function returned something else.
        """
        found: object = self.function(text)
        # The letters of a string would be its words.
        if isinstance(found, str) or not isinstance(found, Iterable):
            raise SettingError(
                f"the segmenter {self.name!r} returned {found!r:.60}, which is not a list of words"
            )
        words = list(found)
        for word in words:
            if not isinstance(word, str):
                raise SettingError(f"the segmenter {self.name!r} returned {word!r}, which is not a string")
        return words

    def can_yield(self, word: str) -> bool:
        """Return whether a word is cut as such where it stands alone."""
        return self.cut(word) == [word]


JIEBA = Jieba()
UNICODE_WORDS = UnicodeWords()


def get_segmenter(name: str) -> Segmenter:
    """Return the segmenter of that name: jieba, words, or 3-grams and the like.

    Raises:
        SettingError: There is no such segmenter.
    """
    found = segmenter_named(name)
    if found is None:
        raise SettingError(
            f"no segmenter {name!r}; there are {JIEBA.name}, {UNICODE_WORDS.name}, and 1-grams to "
            f"{MAX_GRAM_LENGTH}-grams"
        )
    return found


def segmenter_named(name: str) -> Segmenter | None:
    """Return the segmenter of that name, None if there is none."""
    for segmenter in (JIEBA, UNICODE_WORDS):
        if name == segmenter.name:
            return segmenter
    grams = _GRAMS.fullmatch(name)
    return NGrams(int(grams[1])) if grams and int(grams[1]) <= MAX_GRAM_LENGTH else None
