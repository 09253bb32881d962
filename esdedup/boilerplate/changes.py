"""What a batch of pages has taught, as bytes that are stored."""

import io
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup._core import Changes

__all__ = ["COLUMNS", "LEARNED", "Changes", "arrays_of", "bytes_of", "read_changes"]

LEARNED = 1 << 31
"""In the values of "passages": added to the page if the passage is boilerplate."""

COLUMNS: dict[str, tuple[type[np.generic], int | None]] = {
    # The last page that was learned from and the last of all, then the fields of `Window`.
    "numbers": (np.int64, None),
    # Of the new pages: their marks; and where they come from, with their numbers among the pages of their
    # sites once they have been learned from.
    "marks": (np.uint32, 3),
    "origins": (np.uint32, 3),
    # Of the pages that were learned from: the last column of `origins`.
    "site_numbers": (np.uint32, None),
    # Of the new pages that were not learned from yet: passages, their letters (0 if they are left out), and
    # how many each page has.
    "hashes": (np.uint64, None),
    "letters": (np.uint32, None),
    "counts": (np.uint32, None),
    # What was put into tables; of a key that comes several times, the last counts.
    # By the ids of pages: the page.
    "pages_keys": (np.uint64, None),
    "pages_values": (np.uint32, 1),
    # By the hashes of sites: the last page of the last block with pages of theirs, and the number of these.
    "sites_keys": (np.uint64, None),
    "sites_values": (np.uint32, 2),
    # By the hashes of passages: the last page that was a new context; of boilerplate a page of the period in
    # which it was last seen.
    "passages_keys": (np.uint64, None),
    "passages_values": (np.uint32, 1),
    # By the hashes of passages that were seen again: the first page that is observed of a site, the articles
    # with the passage amid text of their own and all articles, both in bits, the pages of the site and of
    # others; then the pages of up to four contexts.
    "contexts_keys": (np.uint64, None),
    "contexts_values": (np.uint32, 9),
}
"""What is stored, in its order: the type of each value, and how many columns it has, if several."""


_FORMAT = b"changes1"
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
    """Read what `bytes_of` has returned, or the archive of arrays that forests of format 10 have.

    Raises:
        ValueError: The bytes are something else, or no batch has such changes.
    """
    return Changes.of_columns(
        _columns(content) if content.startswith(_FORMAT) else _columns_of_archive(content)
    )


def _columns(content: bytes) -> list[bytes]:
    start = len(_FORMAT) + 4
    body, at = content[start:], struct.calcsize(_LENGTHS)
    if len(body) < at or zlib.crc32(body).to_bytes(4, "little") != content[len(_FORMAT) : start]:
        raise ValueError("it cannot be read")
    columns: list[bytes] = []
    for (dtype, width), length in zip(COLUMNS.values(), struct.unpack_from(_LENGTHS, body), strict=True):
        columns.append(body[at : at + length])
        at += length
        if length % (np.dtype(dtype).itemsize * (width or 1)):
            raise ValueError("its columns have other lengths")
    if at != len(body):
        raise ValueError("its columns have other lengths")
    return columns


def _columns_of_archive(content: bytes) -> list[bytes]:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in COLUMNS}
    except Exception as error:  # damaged archives fail in many ways
        raise ValueError("it cannot be read") from error
    for name, (dtype, width) in COLUMNS.items():
        array, row = arrays[name], () if width is None else (width,)
        if array.dtype != dtype or array.ndim == 0 or array.shape[1:] != row:
            raise ValueError("its arrays have other types or shapes")
    return [array.tobytes() for array in arrays.values()]
