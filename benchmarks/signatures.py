"""The random signatures of `esdedup.plan`, and what only benchmarks need of them."""

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.profile import Profile
from esdedup.neighbours.relation import relation_of
from esdedup.plan.signatures import NOW_MS, Held, Signatures, arrivals_of, random_ones

__all__ = ["NOW_MS", "Held", "Signatures", "arrivals_of", "as_bytes", "random_ones"]


def as_bytes(profile: Profile, signatures: Signatures) -> npt.NDArray[np.uint8]:
    """Return one simhash of each as faiss wants it: the one that a near copy has nearly the same."""
    simhashes = np.ascontiguousarray(relation_of(profile).representatives(signatures)[:, 0])
    return simhashes.view(np.uint8).reshape(-1, 8)
