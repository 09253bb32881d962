"""The normal form of whole texts."""

import sys
from collections.abc import Sequence

from esdedup import _core


def normalise(texts: Sequence[str]) -> list[str]:
    """Return raw texts of any length without markup, in their normal form."""
    return _core.normalise(texts, max_length=sys.maxsize)[0]
