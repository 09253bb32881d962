"""How representatives are compared, and the keys by which they are looked up.

A simhash is near another within some bits, and has a band key for each table of a layout. A minhash is equal
to another or has nothing to do with it, so one key is enough.
"""

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.bands import WIDTH_BITS, Layout

Representatives = npt.NDArray[np.uint64]


class Kinds(Protocol):
    """What tells the kinds of a profile's representatives apart."""

    def are_exact(self, representatives: Representatives) -> npt.NDArray[np.bool_]:
        """Return which of them are near equal ones only: bool of the same shape."""


def distances_bits(one: Representatives, other: Representatives, kinds: Kinds) -> npt.NDArray[np.uint8]:
    """Return the bits in which representatives differ, elementwise; 64 if they are not equal and must be."""
    distances: npt.NDArray[np.uint8] = np.bitwise_count(one ^ other)
    is_far = (kinds.are_exact(one) | kinds.are_exact(other)) & (distances != 0)
    return np.where(is_far, np.uint8(WIDTH_BITS), distances)


def terms(representatives: Representatives, kinds: Kinds, layout: Layout) -> list[list[str]]:
    """Return the keys of each representative, ``(n,)``, as terms for an inverted index."""
    are_exact = kinds.are_exact(representatives)
    return _mixed(representatives, are_exact, layout, layout.terms(representatives[~are_exact]))


def asked_terms(representatives: Representatives, kinds: Kinds, layout: Layout) -> list[list[str]]:
    """Return the terms to search for: whatever is near a representative, ``(n,)``, has one of them."""
    are_exact = kinds.are_exact(representatives)
    return _mixed(representatives, are_exact, layout, layout.asked_terms(representatives[~are_exact]))


def _mixed(
    representatives: Representatives,
    are_exact: npt.NDArray[np.bool_],
    layout: Layout,
    bands: Iterable[list[str]],
) -> list[list[str]]:
    exact, others = iter(layout.exact_terms(representatives[are_exact])), iter(bands)
    return [[next(exact)] if is_exact else next(others) for is_exact in are_exact.tolist()]
