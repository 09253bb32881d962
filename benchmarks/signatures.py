"""Makes random signatures of any profile, realistic arrivals near them, and the documents of nodes."""

import dataclasses
import functools
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.elastic.forest.stored import Document, Stored, json_documents
from esdedup.fingerprint.bands import TRIPLES
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import (
    BINS,
    MINHASH,
    PLACES,
    REPRESENTATIVES,
    SIGNATURE,
    WORDS,
    Fingerprints,
)
from esdedup.forest import Arrivals, Store
from esdedup.neighbours.relation import Relation, relation_of
from tests.support.assign import assign

Signatures = npt.NDArray[Any]

# Of the labelled articles, up to 5.5% have a content hash that was seen before, up to 6.7% join a cluster,
# and up to 0.04% may join several clusters. Here, more arrivals join clusters, which is slow.
_COPIES, _NEAR_COPIES, _BETWEEN_TWO = 0.055, 0.2, 0.002
# The share of stored nodes that have a sibling: another root, such that an arrival can be near both.
_SIBLINGS = 0.02
_SIBLING_BITS = 5
_BETWEEN_BITS = 2
# The number of an article's representatives that are simhashes of sentences; the rest are minhashes.
_SENTENCES = 2
# The share of bins that differ in a near copy, far less than would make whole texts disagree.
_CHANGED_BINS = 0.2
_KEPT_REPRESENTATIVES = 0.5
# The length of an average article.
_UNITS = 1_000
# Stored nodes arrived over ten days, and then a thousand articles arrive every half hour. Therefore nothing
# expires, and many nodes are seen again after more than the hour to which `seen` is rounded.
_HELD_MS = 10 * 24 * 3_600_000
_ARRIVAL_MS = 1_800
# The number of nodes that are written to a forest at once.
_FILLED_AT_ONCE = 5_000
NOW_MS = 2 * _HELD_MS
"""The current time, later than the times of all nodes and arrivals."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Held:
    """The nodes of a forest before a measurement."""

    profile: Profile
    signatures: Signatures
    # The number of nodes that have siblings. These nodes are at the beginning, their siblings at the end.
    siblings: int

    @classmethod
    def random(
        cls, profile: Profile, count: int, random: np.random.Generator, *, are_biased: bool = False
    ) -> "Held":
        """Make random signatures.

        Args:
            profile: The profile of the signatures.
            count: The number of signatures.
            random: The generator that draws them.
            are_biased: In profiles without sketches, whether each bit has its own probability of being 1,
                from 0.3 to 0.7.
        """
        siblings = int(count * _SIBLINGS)
        signatures = _biased(count, random) if are_biased else random_ones(profile, count, random)
        originals = signatures[:siblings]
        if profile.agreement is None:
            signatures[count - siblings :] = originals ^ np.uint64((1 << _SIBLING_BITS) - 1)
        else:
            signatures["sketch"][count - siblings :] = _changed(originals["sketch"], random)
        return cls(profile=profile, signatures=signatures, siblings=siblings)

    def __len__(self) -> int:
        return len(self.signatures)

    def arrivals(self, start: int, stop: int) -> Arrivals:
        """Return the arrivals that made some of the nodes."""
        times_ms = np.arange(start, stop) * _HELD_MS // len(self)
        return _arrivals(self.signatures[start:stop], times_ms)

    def fill(self, store: Store, start: int = 0, stop: int | None = None) -> None:
        """Assign the arrivals that made some of the nodes, by default all."""
        stop = len(self) if stop is None else stop
        for at in range(start, stop, _FILLED_AT_ONCE):
            assign(store, self.arrivals(at, min(at + _FILLED_AT_ONCE, stop)), now_ms=NOW_MS)

    def batch(
        self, count: int, random: np.random.Generator, *, fresh: Signatures | None = None
    ) -> Signatures:
        """Make signatures of later arrivals: mostly new, some copies or near copies, a few near two roots.

        The new ones are from `fresh`, or random.
        """
        copies, near, between = (round(count * share) for share in (_COPIES, _NEAR_COPIES, _BETWEEN_TWO))
        batch = random_ones(self.profile, count, random) if fresh is None else fresh.copy()
        batch[:copies] = random.choice(self.signatures, copies)
        self.make_near(batch[copies : copies + near], random)
        if self.siblings:
            self._put_between(batch[copies + near : copies + near + max(1, between)], random)
        # Mix the kinds.
        return random.permutation(batch)

    def arrivals_after(self, batch: Signatures, number: int) -> Arrivals:
        """Return the arrivals of the `number`-th batch, counted from 0; all batches have the same size."""
        first = number * len(batch)
        return _arrivals(batch, _HELD_MS + np.arange(first, first + len(batch)) * _ARRIVAL_MS)

    def make_near(
        self, batch: Signatures, random: np.random.Generator, *, originals: Signatures | None = None
    ) -> None:
        """Move each signature to within one to three bits of its original, which it then resembles.

        The originals are stored signatures, by default any of them.
        """
        count = len(batch)
        originals = random.choice(self.signatures, count) if originals is None else originals
        # The lowest bit is kept, because it distinguishes simhashes from minhashes.
        flips = np.bitwise_or.reduce(np.uint64(1) << random.integers(1, 64, (count, 3), np.uint64), axis=1)
        if self.profile.agreement is None:
            batch[:] = originals ^ flips
            return
        kept = random.random((count, REPRESENTATIVES)) < _KEPT_REPRESENTATIVES
        np.copyto(batch["representatives"], originals["representatives"], where=kept)
        batch["representatives"][:, 0] = originals["representatives"][:, 0] ^ flips
        batch["sketch"] = _changed(originals["sketch"], random)

    def _put_between(self, batch: Signatures, random: np.random.Generator) -> None:
        """Move each signature near two roots."""
        chosen = random.integers(0, self.siblings, len(batch))
        one, other = self.signatures[chosen], self.signatures[len(self) - self.siblings + chosen]
        if self.profile.agreement is None:
            batch[:] = one ^ np.uint64((1 << _BETWEEN_BITS) - 1)
            return
        batch["representatives"][:, 0] = one["representatives"][:, 0]
        batch["representatives"][:, 1] = other["representatives"][:, 1]
        batch["sketch"] = one["sketch"]


def _biased(count: int, random: np.random.Generator) -> Signatures:
    signs = random.random((count, 64), np.float32) < random.uniform(0.3, 0.7, 64)
    simhashes: npt.NDArray[np.uint64] = np.packbits(signs, axis=1).view(">u8")[:, 0].astype(np.uint64)
    return simhashes


def random_ones(profile: Profile, count: int, random: np.random.Generator) -> Signatures:
    """Make random signatures with nothing in common."""
    if profile.agreement is None:
        return random.integers(0, 2**64, count, np.uint64)
    signatures = np.zeros(count, profile.signature_dtype)
    signatures["representatives"] = random.integers(0, 2**64, (count, REPRESENTATIVES), np.uint64)
    signatures["representatives"][:, :_SENTENCES] &= ~MINHASH
    signatures["representatives"][:, _SENTENCES:] |= MINHASH
    signatures["sketch"] = _packed(random.integers(1, 4, (count, BINS), np.uint8))
    signatures["units"] = signatures["runs"] = _UNITS
    return as_nodes(signatures)


def as_nodes(signatures: Signatures, indexed: npt.NDArray[np.bool_] | None = None) -> Signatures:
    """Mark signatures as indexed under all distinct representatives, or under those in `indexed`, ``(n, s)``.

    Simhashes of `classic` and `keywords` are returned unchanged.
    """
    if signatures.dtype != SIGNATURE:
        return signatures
    if indexed is None:
        indexed = are_distinct(signatures["representatives"])
    marked = signatures.copy()
    marked["indexed"] = (indexed * PLACES).sum(axis=1)
    return marked


def are_distinct(simhashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return which values do not repeat an earlier value of their row: bool ``(n, s)``."""
    first = np.ones(simhashes.shape, bool)
    for place in range(1, simhashes.shape[1]):
        first[:, place] = (simhashes[:, :place] != simhashes[:, place, None]).all(axis=1)
    return first


def arrivals_of(signatures: Signatures) -> Arrivals:
    """Return arrivals of signatures, all at time 0."""
    return _arrivals(signatures, np.zeros(len(signatures), np.int64))


def _arrivals(signatures: Signatures, times_ms: npt.NDArray[np.int64]) -> Arrivals:
    count = len(signatures)
    fingerprints = Fingerprints(
        signatures=signatures,
        exists=np.ones(count, bool),
        alphanumerics=np.zeros(count, np.int64),
        boilerplate_letters=np.zeros(count, np.int64),
        are_cut=np.zeros(count, bool),
        content_hashes=_content_hashes(signatures),
        faults=np.full(count, "", object),
    )
    return Arrivals.of(fingerprints, times_ms=times_ms.tolist())


def _content_hashes(signatures: Signatures) -> npt.NDArray[np.uint64]:
    """Return a different content hash for each distinct signature."""
    words = np.ascontiguousarray(signatures).view(np.uint64).reshape(len(signatures), -1)
    odd = np.random.default_rng(1).integers(0, 2**63, words.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    hashes: npt.NDArray[np.uint64] = (words * odd).sum(axis=1, dtype=np.uint64)
    return hashes


def _changed(sketches: npt.NDArray[np.uint64], random: np.random.Generator) -> npt.NDArray[np.uint64]:
    """Return sketches with random codes in some bins."""
    chosen = random.random((len(sketches), BINS)) < _CHANGED_BINS
    are_changed = _packed(chosen.astype(np.uint8) * np.uint8(3))
    others = _packed(random.integers(1, 4, (len(sketches), BINS), np.uint8))
    changed: npt.NDArray[np.uint64] = sketches & ~are_changed | others & are_changed
    return changed


def _packed(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    parts = (codes[:, at::4] << np.uint8(2 * at) for at in range(4))
    octets = functools.reduce(np.bitwise_or, parts)
    packed: npt.NDArray[np.uint64] = np.ascontiguousarray(octets).view(np.uint64).reshape(len(codes), WORDS)
    return packed


def as_bytes(profile: Profile, signatures: Signatures) -> npt.NDArray[np.uint8]:
    """Return a simhash of each signature in the format of faiss; near copies have almost the same simhash."""
    simhashes = np.ascontiguousarray(relation_of(profile).representatives(signatures)[:, 0])
    return simhashes.view(np.uint8).reshape(-1, 8)


def documents(stored: Iterable[Stored], relation: Relation) -> list[Document]:
    """Return the documents of nodes and content hashes."""
    written = json_documents(map(relation.core.pack, stored), relation, TRIPLES)
    return [(document_id, json.loads(source)) for document_id, source in written]
