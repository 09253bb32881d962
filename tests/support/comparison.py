"""The comparison of whole texts once more, in numpy, as it was before the crate."""

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.agreement import Agreement, Comparison
from esdedup.fingerprint.signature import Signatures

Sketches = npt.NDArray[np.uint64]
_CODES = 15
_NIBBLES = np.uint64(0x1111_1111_1111_1111)


def compare(one: Signatures, other: Signatures, rules: Agreement) -> Comparison:
    similarity = resemblance(one["sketch"], other["sketch"])
    shorter = np.maximum(np.minimum(one["letters"], other["letters"]), 1)
    longer = np.maximum(one["letters"], other["letters"])
    excess = (rules.most_resemblance - rules.least_resemblance) * rules.short_letters / shorter
    needed = np.minimum(rules.most_resemblance, rules.least_resemblance + excess)
    runs = one["runs"].astype(np.float64) + other["runs"]
    fewer_runs = np.maximum(np.minimum(one["runs"], other["runs"]), 1)
    # Squared twice: unlike a power, the same bits on every machine.
    tininess = np.square(np.square(np.minimum(rules.tiny_runs / fewer_runs, 1.0)))
    excess_of_tiny = (rules.tiny_resemblance - rules.least_resemblance) * tininess
    needed = np.maximum(needed, rules.least_resemblance + excess_of_tiny)
    # With J = shared / (runs - shared), shared is J * runs / (1 + J).
    contained = np.minimum(similarity * runs / (1 + similarity) / fewer_runs, 1.0)
    may_contain = (longer <= rules.contained_letters) & (fewer_runs >= rules.contained_runs)
    is_contained = (
        may_contain & (contained >= rules.least_contained) & (similarity >= rules.contained_resemblance)
    )
    return Comparison(
        resemblance=similarity,
        needed=needed,
        contained=contained,
        may_contain=may_contain,
        agree=(similarity >= needed) | is_contained,
        # Texts that contain the root have the root in common; texts that it contains may share nothing.
        may_join=(similarity >= needed - rules.root_slack) | (is_contained & (other["runs"] <= one["runs"])),
    )


def resemblance(one: Sketches, other: Sketches) -> npt.NDArray[np.float64]:
    """Estimate the resemblance of pairs of texts, row by row: float64 ``(n,)``, 0 to 1.

    The root mean square error is about 0.05; see `test_the_estimate_is_near_the_truth`.

    Args:
        one: ``(n, WORDS)``.
        other: ``(n, WORDS)``.
    """
    in_one, in_other = _filled(one), _filled(other)
    either = _count(in_one | in_other)
    same = either - _count(_filled(one ^ other))
    # Different runs have equal codes by chance once in 15 times.
    chance = _count(in_one & in_other) / _CODES
    share = (same - chance) / (1 - 1 / _CODES) / np.maximum(either, 1)
    return np.clip(share, 0.0, 1.0)


def _filled(sketches: Sketches) -> Sketches:
    """Return 1 for each nibble that is not 0, in its place."""
    pairs = sketches | sketches >> np.uint64(1)
    lowest: Sketches = (pairs | pairs >> np.uint64(2)) & _NIBBLES
    return lowest


def _count(words: Sketches) -> npt.NDArray[np.int64]:
    counts: npt.NDArray[np.int64] = np.bitwise_count(words).sum(axis=-1, dtype=np.int64)
    return counts
