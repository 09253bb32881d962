"""Random signatures of any profile, and near copies of them, for measurements."""

from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import REPRESENTATIVES, Fingerprints
from esdedup.fingerprint.simhash import pack64
from esdedup.fingerprint.sketch import BINS, WORDS
from esdedup.forest import Arrivals
from esdedup.neighbours.relation import relation_of

Signatures = npt.NDArray[Any]

_NEAR_COPIES = 0.2
# The share in a near copy; far less than would make whole texts disagree.
_CHANGED_BINS = 0.2
_KEPT_REPRESENTATIVES = 0.5
# Of an article of average length.
_LETTERS = 1_000


def random_ones(profile: Profile, count: int, random: np.random.Generator) -> Signatures:
    if profile.agreement is None:
        return random.integers(0, 2**64, count, np.uint64)
    signatures = np.zeros(count, profile.signature_dtype)
    signatures["representatives"] = random.integers(0, 2**64, (count, REPRESENTATIVES), np.uint64)
    signatures["sketch"] = _packed(random.integers(1, 16, (count, BINS), np.uint8))
    signatures["letters"] = signatures["runs"] = _LETTERS
    relation = relation_of(profile)
    return relation.mark_indexed(signatures, relation.are_distinct(signatures))


def biased(count: int, random: np.random.Generator) -> npt.NDArray[np.uint64]:
    """Make simhashes whose bits are 1 with probabilities of 0.3 to 0.7, each its own."""
    return pack64(random.random((count, 64), np.float32) < random.uniform(0.3, 0.7, 64))


def batch_of(profile: Profile, count: int, held: Signatures, random: np.random.Generator) -> Signatures:
    """Make a batch; a fifth of it lies one to three bits from what is held, and agrees with it."""
    copies = int(count * _NEAR_COPIES)
    batch = random_ones(profile, count, random)
    originals = random.choice(held, copies)
    flips = np.bitwise_or.reduce(np.uint64(1) << random.integers(0, 64, (copies, 3), np.uint64), axis=1)
    if profile.agreement is None:
        batch[:copies] = originals ^ flips
        return batch
    representatives = np.where(
        random.random((copies, REPRESENTATIVES)) < _KEPT_REPRESENTATIVES,
        originals["representatives"],
        batch["representatives"][:copies],
    )
    representatives[:, 0] = originals["representatives"][:, 0] ^ flips
    changed = _packed((random.random((copies, BINS)) < _CHANGED_BINS).astype(np.uint8) * np.uint8(15))
    batch["representatives"][:copies] = representatives
    batch["sketch"][:copies] = originals["sketch"] & ~changed | batch["sketch"][:copies] & changed
    return batch


def arrivals_of(profile: Profile, signatures: Signatures) -> Arrivals:
    """Let signatures arrive, all at the time 0."""
    count = len(signatures)
    fingerprints = Fingerprints(
        signatures=signatures,
        exists=np.ones(count, bool),
        letters=np.zeros(count, np.int64),
        are_cut=np.zeros(count, bool),
        pages=_pages(signatures),
    )
    return Arrivals.of(fingerprints, times_ms=[0] * count, relation=relation_of(profile))


def _pages(signatures: Signatures) -> npt.NDArray[np.uint64]:
    """Give each distinct signature a page of its own."""
    words = np.ascontiguousarray(signatures).view(np.uint64).reshape(len(signatures), -1)
    odd = np.random.default_rng(1).integers(0, 2**63, words.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    return (words * odd).sum(axis=1, dtype=np.uint64)


def as_bytes(profile: Profile, signatures: Signatures) -> npt.NDArray[np.uint8]:
    """Return one simhash of each as faiss wants it: the one that a near copy has nearly the same."""
    simhashes = np.ascontiguousarray(relation_of(profile).simhashes(signatures)[:, 0])
    return simhashes.view(np.uint8).reshape(-1, 8)


def _packed(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    pairs = codes[:, 0::2] << np.uint8(4) | codes[:, 1::2]
    return np.ascontiguousarray(pairs).view(np.uint64).reshape(len(codes), WORDS)
