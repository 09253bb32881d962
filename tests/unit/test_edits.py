"""Edits spread over a whole text, as optical character recognition makes them, and single typos."""

from random import Random

import numpy as np
import pytest

from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from esdedup.neighbours.relation import NeighbourIndex, relation_of
from esdedup.sample import articles

_RELATION = relation_of(VERIFIED)
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_TEXTS = [article["text"] for article in articles(1_500)]
CHINESE = [text for text in _TEXTS if "的" in text][:300]
ENGLISH = [text for text in _TEXTS if " the " in text][:300]
_HAN = sorted({character for text in CHINESE for character in text if character > "一"})


def _exchanged(text: str, share: float, random: Random) -> str:
    """Return a text with a share of its letters, at least one, exchanged for others of its script."""
    letters = [at for at, character in enumerate(text) if character.isalpha()]
    characters = list(text)
    for at in random.sample(letters, max(1, round(share * len(letters)))):
        characters[at] = random.choice(_LATIN if text[at].isascii() else _HAN)
    return "".join(characters)


@pytest.mark.parametrize(
    ("texts", "share", "least"),
    [
        (CHINESE, 0.04, 0.95),
        ([text[:100] for text in CHINESE], 0, 0.95),
        (ENGLISH, 0.02, 0.95),
        ([text[:200] for text in ENGLISH], 0, 0.95),
        (ENGLISH, 0.04, 0.5),
    ],
    ids=[
        *("Chinese, 4 percent", "short Chinese, a typo", "English, 2 percent"),
        *("short English, a typo", "English, 4 percent"),
    ],
)
def test_edited_texts_are_near(texts: list[str], share: float, least: float) -> None:
    random, fingerprinter = Random(1), Fingerprinter(VERIFIED)
    signatures = fingerprinter.fingerprint(texts).signatures
    edited = fingerprinter.fingerprint([_exchanged(text, share, random) for text in texts]).signatures
    index = NeighbourIndex(_RELATION)
    index.add(_RELATION.mark_indexed(signatures, _RELATION.are_distinct(signatures)).tobytes())
    positions, rows = index.find_pairs(edited)
    near = np.unique(rows[rows == positions])
    assert len(near) / len(texts) >= least
