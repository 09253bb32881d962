"""What was learned from a batch of pages, as stored bytes."""

import itertools
import operator
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup._core import Changes

__all__ = ["COLUMNS", "LEARNED", "Changes", "arrays_of", "bytes_of", "read_changes"]

LEARNED = 1 << 31
"""Flag in the values of "passages", added to the page's number if the passage is boilerplate."""

COLUMNS: dict[str, tuple[type[np.generic], int | None]] = {
    # The last page that was learned from and the last of all, then the fields of `Window`.
    "numbers": (np.int64, None),
    # The marks of the new pages; and where these come from, with their numbers among the pages of their sites
    # once they have been learned from.
    "marks": (np.uint32, 3),
    "origins": (np.uint32, 3),
    # The last column of `origins`, for the pages that were learned from.
    "site_numbers": (np.uint32, None),
    # The passages of new pages that were not learned from yet, their letters (0 if they are left out), and
    # how many each page has.
    "hashes": (np.uint64, None),
    "letters": (np.uint32, None),
    "counts": (np.uint32, None),
    # Additions to tables; if a key occurs several times, the last one counts.
    # By the ids of pages: the page.
    "pages_keys": (np.uint64, None),
    "pages_values": (np.uint32, 1),
    # By the hashes of sites: the last page of the last block with pages of theirs, and the number of these.
    "sites_keys": (np.uint64, None),
    "sites_values": (np.uint32, 2),
    # By the hashes by which sites know passages (`local_hash` in `core/src/boilerplate/pages.rs`): the last
    # page that was a new context; for boilerplate, a page of the period in which it was last seen.
    "passages_keys": (np.uint64, None),
    "passages_values": (np.uint32, 1),
    # For passages that were seen again: the first page; the articles that have the passage amid text of their
    # own, and all articles, both in bits; how many pages; then the pages of up to four contexts.
    "contexts_keys": (np.uint64, None),
    "contexts_values": (np.uint32, 8),
}
"""The stored values in order: their types, and their number of columns, if several."""


_FORMAT = b"changes2"
_LENGTHS = f"<{len(COLUMNS)}I"


def arrays_of(changes: Changes) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that `COLUMNS` names."""
    return {
        name: np.frombuffer(content, dtype).reshape((-1,) if width is None else (-1, width))
        for (name, (dtype, width)), content in zip(COLUMNS.items(), changes.columns(), strict=True)
    }


def bytes_of(columns: Sequence[bytes]) -> bytes:
    """Return the columns of changes as bytes: a checksum, then the length of each column, and the columns."""
    body = struct.pack(_LENGTHS, *map(len, columns)) + b"".join(columns)
    return _FORMAT + zlib.crc32(body).to_bytes(4, "little") + body


def read_changes(content: bytes) -> Changes:
    """Read what `bytes_of` has returned.

    Raises:
        ValueError: The bytes are something else, or the changes are impossible for a batch.
    """
    start = len(_FORMAT) + 4
    body, at = content[start:], struct.calcsize(_LENGTHS)
    expected = _FORMAT + zlib.crc32(body).to_bytes(4, "little")
    if len(body) < at or content[:start] != expected:
        raise ValueError("wrong format or checksum")
    lengths = struct.unpack_from(_LENGTHS, body)
    sizes = [np.dtype(dtype).itemsize * (width or 1) for dtype, width in COLUMNS.values()]
    ends = list(itertools.accumulate(lengths, initial=at))
    if ends[-1] != len(body) or any(map(operator.mod, lengths, sizes)):
        raise ValueError("wrong length of a column")
    return Changes.of_columns([body[start:end] for start, end in itertools.pairwise(ends)])
