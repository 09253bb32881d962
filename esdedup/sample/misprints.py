"""Slips of the typesetter: two letters that changed places, or a character that sounds like the right one."""

import random
import re

# No part of a gap or of a name, which a reader would take for another one.
_LONG_WORD = re.compile(r"(?<![\w{'])[a-z]{6,}(?![\w}:'])")
_SOUND_ALIKE = (("的", "地"), ("在", "再"), ("做", "作"), ("已", "己"), ("即", "既"), ("像", "象"))


def misprint(wording: str, chance: random.Random) -> str:
    """Return a sentence with open gaps and one slip; unchanged where there is nothing to confuse."""
    if words := [word.start() for word in _LONG_WORD.finditer(wording)]:
        at = chance.choice(words) + chance.randint(1, 3)
        return wording[:at] + wording[at + 1] + wording[at] + wording[at + 2 :]
    right, wrong = chance.choice(_SOUND_ALIKE)
    return wording.replace(right, wrong, 1)
