"""The ids of texts as pages: hashes of their letters and digits that nobody can choose a text for.

Whoever could find another text with the id of a given one could have it put into that one's cluster. Sums and
products, as hashes of passages are, can be solved for such a text; a cryptographic hash cannot.
"""

import hashlib
import itertools

import numpy as np
import numpy.typing as npt

from esdedup.text.characters import SEPARATOR
from esdedup.text.tokens import Tokens

_ID_BYTES = 8
_FIRST_PAIR = 0x10000
"""From this code point on, a character is two units of UTF-16."""


def page_ids(
    points: npt.NDArray[np.uint32], roles: npt.NDArray[np.uint8], tokens: Tokens
) -> npt.NDArray[np.uint64]:
    """Return the id of each text: uint64 ``(t,)``, 0 for a text without letters and digits.

    Texts with the same tokens in the same order have the same id.

    Args:
        points: The code points of a batch, each text followed by a `SEPARATOR`, ``(p,)``.
        roles: Of the points, as `roles_in_tokens` returns them, ``(p,)``.
        tokens: Of the batch.
    """
    units = _utf_16(_without_gaps(points, roles, tokens))
    ends = (units == ord(SEPARATOR)).nonzero()[0]
    data, bounds = memoryview(units.tobytes()), [0, *((ends + 1) * units.itemsize).tolist()]
    hashes = [_hash(data[start:end]) for start, end in itertools.pairwise(bounds)]
    return np.frombuffer(b"".join(hashes), ">u8").astype(np.uint64)


def _without_gaps(
    points: npt.NDArray[np.uint32], roles: npt.NDArray[np.uint8], tokens: Tokens
) -> npt.NDArray[np.uint32]:
    """Return the points that are in tokens, and a space where two tokens would be one without it."""
    kept, points = roles > 0, points.copy()
    spaces = tokens.starts_of_parted - 1
    kept[spaces] = True
    points[spaces] = ord(" ")
    return points.compress(kept)


def _utf_16(points: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
    """Return code points in UTF-16, in which East Asian texts are shortest: ``(u,)``."""
    if points.max(initial=0) < _FIRST_PAIR:
        return points.astype("<u2")
    text = points.astype("<u4").tobytes().decode("utf-32-le")
    return np.frombuffer(text.encode("utf-16-le"), "<u2")


def _hash(text: memoryview) -> bytes:
    """Return the hash of a text in UTF-16 with the separator after it."""
    if len(text) <= len(SEPARATOR.encode("utf-16-le")):
        return bytes(_ID_BYTES)
    # Processors have instructions for this one.
    return hashlib.sha256(text).digest()[:_ID_BYTES]
