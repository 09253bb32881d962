"""Words that the user adds to jieba's dictionary."""

import dataclasses
import re
from collections.abc import Iterable

from esdedup.errors import SettingError
from esdedup.text.hashing import murmur64
from esdedup.text.normalise import normal_form

# As jieba reads them: a word, perhaps its frequency, perhaps its part of speech.
_LINE = re.compile(r"(.+?)(?:\s+([0-9]+))?(?:\s+([a-z]+))?")
# Those of jieba's dictionary, and what it calls English words and punctuation.
_PART_OF_SPEECH = re.compile(
    "a[dgn]?|b|c|d[fg]?|e(ng)?|f|g|h|i|j|k|l|m[gq]?|n(g|r|rfg|rt|s|t|z)?|o|p|q|r[grz]?|s|tg?|u[dgjlvz]?|"
    "v[dginq]?|w|x|y|zg?"
)
_MAX_FREQUENCY = 2**31 - 1
# No word is longer. jieba takes minutes for one of 60,000 characters, such as a line of a wrong file.
_MAX_LENGTH = 256


@dataclasses.dataclass(frozen=True)
class Dictionary:
    """Words for jieba beside those of its own dictionary; of entries with the same word, the last counts.

    Raises:
        SettingError: There are none, which would change the profile's label and nothing else.
    """

    # Each word in its normal form, as texts are when they are cut, and how often it occurs, as in jieba's own
    # dictionary. None: as often as it takes for jieba to keep the word whole. 0: never.
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

        The last two may be missing, and the part of speech has no effect. Empty lines count nothing.

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
                    f"{name}:{number}: {part_of_speech!r} is no part of speech of jieba's; write one word "
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
