"""Random signatures as faiss wants them."""

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.profile import Profile
from esdedup.neighbours.relation import relation_of
from esdedup.plan.signatures import Signatures


def as_bytes(profile: Profile, signatures: Signatures) -> npt.NDArray[np.uint8]:
    """Return one simhash of each as faiss wants it: the one that a near copy has nearly the same."""
    simhashes = np.ascontiguousarray(relation_of(profile).representatives(signatures)[:, 0])
    return simhashes.view(np.uint8).reshape(-1, 8)
