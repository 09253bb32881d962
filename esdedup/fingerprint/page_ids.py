"""The ids of pages: whole texts as they came, whatever a fingerprint leaves out of them."""

import hashlib

import numpy as np
import numpy.typing as npt

from esdedup.text.characters import ALNUM

_ID_BYTES = 8
# A text is hashed in the narrowest width, 1, 2 or 4 bytes, that holds all of its letters, which takes less
# time: the highest code point of each width but the last.
_HIGHEST = np.array([0xFF, 0xFFFF], np.uint32)
# Hashed with the letters, so that no text of one width has the bytes of another.
_WIDTHS = (b"u1", b"<u2", b"<u4")


def page_ids(
    points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], letters: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Return the ids of the pages of a batch: uint64 ``(n,)``, hashes of their letters and digits.

    Args:
        points: The code points of the normalised texts, uint32 ``(p,)``.
        kinds: The `classes` of the points, uint8 ``(p,)``.
        letters: The number of letters and digits of each text, int64 ``(n,)``.
    """
    kept = points.take((kinds & ALNUM).view(bool).nonzero()[0])
    ends = letters.cumsum()
    starts = ends - letters
    has_letters = letters > 0
    # The place in `_WIDTHS` of each text's width.
    widths = np.zeros(len(letters), np.int64)
    widths[has_letters] = _HIGHEST.searchsorted(np.maximum.reduceat(kept, starts[has_letters]))
    places = widths.tolist(), (starts << widths).tolist(), (ends << widths).tolist()
    encoded = {width: kept.astype(_WIDTHS[width].decode()).tobytes() for width in set(places[0])}
    digests = [
        hashlib.blake2b(encoded[width][start:end], digest_size=_ID_BYTES, person=_WIDTHS[width]).digest()
        for width, start, end in zip(*places, strict=True)
    ]
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)
