"""The changes that a batch of pages makes to learned boilerplate, as stored bytes."""

import itertools
import operator
import struct
import zlib
from collections.abc import Sequence

import numpy as np

from esdedup._core import Changes

__all__ = ["COLUMNS", "Changes", "bytes_of", "read_changes"]

COLUMNS: dict[str, tuple[type[np.generic], int | None]] = {
    # The last page of the last complete block, the last page overall, then `Boilerplate.periods`.
    "numbers": (np.int64, None),
    # The marks (hashes of the longest passages) of the new pages; and their origins, with the pages' numbers
    # within their sites if their block is complete.
    "marks": (np.uint32, 3),
    "origins": (np.uint32, 3),
    # The last column of `origins`, for the pages of complete blocks.
    "site_numbers": (np.uint32, None),
    # The passages of the new pages whose block is incomplete, their letters (0 for omitted passages), and the
    # number of passages of each page.
    "hashes": (np.uint64, None),
    "letters": (np.uint32, None),
    "counts": (np.uint32, None),
    # Additions to tables; if a key occurs several times, the last entry wins.
    # By content hash of a page: the page's number.
    "pages_keys": (np.uint64, None),
    "pages_values": (np.uint32, 1),
    # By hash of a site: the last page of the last block with pages of the site, and the site's page count.
    "sites_keys": (np.uint64, None),
    "sites_values": (np.uint32, 2),
    # By local hash of a passage (`local_hash` in `core/src/boilerplate/pages.rs`): the last page that was a
    # new context; for boilerplate, 2^31 plus any page of the period in which it was last seen.
    "passages_keys": (np.uint64, None),
    "passages_values": (np.uint32, 1),
    # For passages that were seen again: the first page; the sets, in bits, of the articles that have their
    # own text around the passage and of all articles; the number of pages; then the pages of up to four
    # contexts.
    "contexts_keys": (np.uint64, None),
    "contexts_values": (np.uint32, 8),
}
"""The stored arrays, in order, with their types, and their number of columns if they are two-dimensional."""


_FORMAT = b"changes2"
_LENGTHS = f"<{len(COLUMNS)}I"


def bytes_of(columns: Sequence[bytes]) -> bytes:
    """Return columns as bytes: a checksum, then the length of each column, then the columns."""
    body = struct.pack(_LENGTHS, *map(len, columns)) + b"".join(columns)
    return _FORMAT + zlib.crc32(body).to_bytes(4, "little") + body


def read_changes(content: bytes) -> Changes:
    """Read the output of `bytes_of`; raise `ValueError` if it is damaged, or not the changes of any batch."""
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
