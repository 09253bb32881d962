"""Segmenters divide normalised text into words: by jieba, by Unicode, into n-grams, or by a function."""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from esdedup import _core
from esdedup._core import normal_form
from esdedup.errors import SettingError
from esdedup.text.hashing import murmur64

MAX_GRAM_LENGTH = 64
"""The maximum length of n-grams."""

# rjieba keeps compounds such as `long-term` and `m.weibo.cn` whole. jieba splits them at the symbols, except
# for two words in its dictionary.
_WHOLE = frozenset({"c#", "c++"})
_COMPOUND = re.compile(r"[a-zA-Z0-9][+#&._%-]|[+#&._%-][a-zA-Z0-9]")
_PARTS = re.compile(r"([a-zA-Z0-9]+(?:\.\d+)?%?)")
# Copied from jieba's regular expressions.
_HAN = re.compile("[\u4e00-\u9fd5]")
_GRAMS = re.compile(r"([1-9]\d?)-grams")
# A line of a dictionary, as jieba reads it: a word, an optional frequency, an optional part of speech.
_LINE = re.compile(r"(.+?)(?:\s+([0-9]+))?(?:\s+([a-z]+))?")
# The parts of speech in jieba's dictionary, and its names for English words and punctuation.
_PART_OF_SPEECH = re.compile(
    "a[dgn]?|b|c|d[fg]?|e(ng)?|f|g|h|i|j|k|l|m[gq]?|n(g|r|rfg|rt|s|t|z)?|o|p|q|r[grz]?|s|tg?|u[dgjlvz]?|"
    "v[dginq]?|w|x|y|zg?"
)
_MAX_FREQUENCY = 2**31 - 1
# The maximum length of a word: jieba takes minutes for a line of 60,000 characters from some other file.
_MAX_LENGTH = 256


class Segmenter(Protocol):
    """Divides texts into words."""

    @property
    def name(self) -> str:
        """The name in a profile's label; different segmenters must have different names."""

    def cut(self, text: str) -> Sequence[str]:
        """Divide normalised text into words. Words without letters and digits are ignored."""


@dataclasses.dataclass(frozen=True)
class Dictionary:
    """Words for jieba in addition to its own dictionary; of duplicate entries, the last is used.

    Raises:
        SettingError: There are no words, so only the profile's label would change.
    """

    # Words in normal form, with their frequencies. None is a frequency so high that jieba keeps the word
    # whole; with 0, the word is split.
    entries: tuple[tuple[str, int | None], ...]

    def __post_init__(self) -> None:
        if not self.entries:
            raise SettingError("the dictionary has no words: leave it out")

    @classmethod
    def of_words(cls, words: Iterable[str]) -> "Dictionary":
        """Create a dictionary of words without frequencies."""
        return cls(tuple((normal_form(word), None) for word in words))

    @classmethod
    def of_lines(cls, lines: Iterable[str], *, name: str) -> "Dictionary":
        """Read the lines of a user dictionary of jieba: a word, its frequency, its part of speech.

        The last two are optional, and the part of speech has no effect. Empty lines are ignored.

        Args:
            lines: In any order.
            name: The name of the dictionary in error messages.

        Raises:
            SettingError: There are no words; a frequency is too large; a word has more than 256 characters;
                or a line has a second word, which jieba itself would read as the part of speech.
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
                    f"one word per line, with at most {_MAX_LENGTH} characters"
                )
            if not (frequency or part_of_speech is None or _PART_OF_SPEECH.fullmatch(part_of_speech)):
                raise SettingError(
                    f"{name}:{number}: {part_of_speech!r} is not a part of speech known to jieba; write one "
                    "word per line, without blanks, since jieba splits at blanks anyway"
                )
            # `int` rejects thousands of digits.
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
    """Divides texts into words as jieba does; white space and punctuation are words too."""

    # The user's words, in addition to jieba's own dictionary.
    dictionary: Dictionary | None = None

    @functools.cached_property
    def name(self) -> str:
        """The name: jieba, with a hash of the user's dictionary if there is one."""
        return "jieba" if self.dictionary is None else f"jieba-{self.dictionary.digest}"

    def cut(self, text: str) -> Sequence[str]:
        """Cut normalised text into words."""
        words: Sequence[str] = self._cut(text, True)
        # Split words into their characters if jieba must not guess them.
        for never in self._never.intersection(words):
            if all(map(_HAN.fullmatch, never)):
                words = [part for word in words for part in (word if word == never else (word,))]
        if not _COMPOUND.search(text):
            return words
        return [part for word in words for part in self._parts(word) if part]

    def can_yield(self, word: str) -> bool:
        """Return whether `cut` can return this word.

        jieba chooses the most likely sequence of dictionary words. If that sequence splits the word, jieba
        splits it in every context. jieba guesses words (by a hidden Markov model) only from the remaining
        single characters, and these guesses depend on the context.
        """
        if list(self.cut(word)) == [word]:
            return True
        return word not in self._never and all(map(_HAN.fullmatch, self._cut(word, False)))

    def __reduce__(self) -> tuple[type["Jieba"], tuple[Dictionary | None]]:
        """Omit the compiled dictionary, which cannot be pickled."""
        return Jieba, (self.dictionary,)

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
        """A function that divides a text; its second argument says whether to guess unknown words."""
        # Imported on first use, since unpacking the dictionary takes 0.16 s and most commands do not need it.
        import rjieba

        if self.dictionary is None:
            return rjieba.cut
        # Words added to the shared instance would affect every profile.
        own = rjieba.Jieba()
        for word, frequency in self.dictionary.entries:
            own.add_word(word, frequency, None)
        return own.cut


@dataclasses.dataclass(frozen=True)
class UnicodeWords:
    """Words are runs of letters, digits and their marks, for scripts with spaces between words.

    Without spaces, as in Chinese, the text between two punctuation marks is one word. Punctuation inside a
    number, as in 1,000.5, belongs to the number.
    """

    name: str = "words"

    def cut(self, text: str) -> Sequence[str]:
        """Divide normalised text into words."""
        return _core.words(text)


@dataclasses.dataclass(frozen=True)
class NGrams:
    """Words are all sequences of `size` letters and digits, ignoring other characters; for any script.

    A text with fewer letters and digits is one word. Vowel signs and accents count as letters.

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
        """The name, such as 3-grams."""
        return f"{self.size}-grams"

    def cut(self, text: str) -> Sequence[str]:
        """Divide normalised text into words."""
        letters = _core.letters(text)
        if len(letters) <= self.size:
            return [letters] if letters else []
        return [letters[at : at + self.size] for at in range(len(letters) - self.size + 1)]


@dataclasses.dataclass(frozen=True)
class CustomSegmenter:
    """A custom function, with a name that is part of the profile's label.

    Different functions need different names.

    Raises:
        SettingError: The name is empty, or is the name of another segmenter.
    """

    name: str
    # Divides normalised text (NFKC, case folded, simplified characters) into words.
    function: Callable[[str], Iterable[str]]

    def __post_init__(self) -> None:
        if not self.name:
            raise SettingError("a custom segmenter needs a name, which becomes part of the profile's label")
        if self.name.startswith(JIEBA.name) or segmenter_named(self.name) is not None:
            raise SettingError(f"the segmenter {self.name!r} already exists: give yours another name")

    def cut(self, text: str) -> Sequence[str]:
        """Divide normalised text into words; raise `SettingError` if the function returns anything else."""
        found: object = self.function(text)
        # Iterating over a string would return its characters as words.
        if isinstance(found, str) or not isinstance(found, Iterable):
            raise SettingError(
                f"the segmenter {self.name!r} returned {found!r:.60}, which is not a list of words"
            )
        words = list(found)
        for word in words:
            if not isinstance(word, str):
                raise SettingError(f"the segmenter {self.name!r} returned {word!r}, which is not a string")
        return words


JIEBA = Jieba()
UNICODE_WORDS = UnicodeWords()


def can_yield(segmenter: Segmenter, word: str) -> bool:
    """Return whether a segmenter can return this word, which is in normal form, from a longer text."""
    if isinstance(segmenter, Jieba):
        return segmenter.can_yield(word)
    if isinstance(segmenter, NGrams) and len(word) != segmenter.size:
        return False
    return list(segmenter.cut(word)) == [word]


def get_segmenter(name: str) -> Segmenter:
    """Return the segmenter jieba, words, or n-grams such as 3-grams; raise `SettingError` for other names."""
    found = segmenter_named(name)
    if found is None:
        raise SettingError(
            f"no segmenter {name!r}; there are {JIEBA.name}, {UNICODE_WORDS.name}, and 1-grams to "
            f"{MAX_GRAM_LENGTH}-grams"
        )
    return found


def segmenter_named(name: str) -> Segmenter | None:
    """Return the segmenter of the given name, or None."""
    for segmenter in (JIEBA, UNICODE_WORDS):
        if name == segmenter.name:
            return segmenter
    grams = _GRAMS.fullmatch(name)
    return NGrams(int(grams[1])) if grams and int(grams[1]) <= MAX_GRAM_LENGTH else None
