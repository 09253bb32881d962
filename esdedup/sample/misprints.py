"""Misprints: two letters swapped, or a Chinese character replaced by one that sounds alike."""

import random
import re

# Not in a gap or a name: a misprinted name would read as another name.
_LONG_WORD = re.compile(r"(?<![\w{'])[a-z]{6,}(?![\w}:'])")
_SOUND_ALIKE = (("的", "地"), ("在", "再"), ("做", "作"), ("已", "己"), ("即", "既"), ("像", "象"))


def misprint(wording: str, chance: random.Random) -> str:
    """Return a sentence, its gaps still open, with one misprint; unchanged if none fits."""
    if words := [word.start() for word in _LONG_WORD.finditer(wording)]:
        at = chance.choice(words) + chance.randint(1, 3)
        return wording[:at] + wording[at + 1] + wording[at] + wording[at + 2 :]
    right, wrong = chance.choice(_SOUND_ALIKE)
    return wording.replace(right, wrong, 1)
