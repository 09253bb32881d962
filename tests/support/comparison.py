"""Reference implementation of the comparison of whole texts, in numpy."""

import math

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.agreement import Agreement, Comparison
from esdedup.fingerprint.signature import Signatures

Sketches = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
_CODES = 3
_NAMES = 2**30 - 1


def compare(one: Signatures, other: Signatures, rules: Agreement) -> Comparison:
    similarity = resemblance(one["sketch"], other["sketch"])
    units, runs, figures = (
        np.sort([_counts(each[name]) for each in (one, other)], axis=0)
        for name in ("units", "runs", "figures")
    )
    shorter = units[0]
    excess = (1 - rules.resemblance) * rules.short_excess
    needed = rules.resemblance + excess * np.minimum(rules.short_units / np.maximum(shorter, 1), 1)
    # Subtract one text's surplus of figures; each text has half of the remaining unshared figures.
    more = figures[1] - figures[0]
    replaced, pairs = (
        np.maximum(unshared(one[name], other[name]) - more, 0) / 2
        for name in ("figure_sketch", "pair_sketch")
    )
    # A replaced figure changes two pairs; an insertion changes only one.
    replaced = np.maximum(replaced, np.where(pairs > 1, pairs / 2, 0))
    replaceable = np.maximum(shorter / rules.units_a_figure, figures[0] * rules.figure_share + 0.5)
    smaller, larger = np.maximum(runs, 1)
    # J = shared / (all - shared), so shared = J * all / (1 + J).
    shared = similarity * (smaller + larger) / (1 + similarity)
    own, own_of_larger = smaller - shared, larger - shared
    runs_per_word = np.clip(2 * smaller / np.maximum(shorter, 1), 1, 2)
    enough = own >= np.maximum(rules.form_runs * runs_per_word, smaller * rules.form_run_share)
    most = np.maximum(rules.few_figures, figures[0] / 2)
    of_form = figures[0] * rules.form_figure_share
    most = np.where(enough & (own >= rules.form_balance * own_of_larger), of_form, most)
    reissued = np.minimum(most, figures[0] * rules.reissue_difference * smaller / np.where(enough, own, 1))
    most = np.where(enough & (own >= rules.reissue_balance * own_of_larger), reissued, most)
    replaceable = np.minimum(np.minimum(replaceable, most), rules.most_figures)
    contained = np.minimum(shared / smaller, 1)
    share = smaller / larger
    # The share that texts of equal length have in common at the threshold. Excerpts need at least this share.
    in_common = np.maximum(rules.least_contained, 2 * needed / (1 + needed))
    is_form = _are_forms(one, other, own, runs_per_word, np.where(replaced > 0, 1, rules.names), rules)
    is_form &= (
        (similarity >= rules.name_resemblance) & (one["name_sketch"] != 0) & (other["name_sketch"] != 0)
    )
    have_figures = (replaced <= replaceable) & ~is_form

    def agree(slack: float) -> npt.NDArray[np.bool_]:
        is_excerpt = (
            (contained >= in_common - slack)
            & (share >= rules.excerpt_share - slack)
            & (shorter >= rules.contained_units)
        )
        agreed: npt.NDArray[np.bool_] = have_figures & ((similarity >= needed - slack) | is_excerpt)
        return agreed

    is_close = agree(0) & (similarity >= rules.member_resemblance)
    shared = similarity * (smaller + larger) / (1 + similarity)
    of_other = np.minimum(shared / smaller, 1) * smaller / np.maximum(_counts(other["runs"]), 1)
    shares = [(one["origin"] >> shift) % 2**26 for shift in (38, 12)]
    others = [(other["origin"] >> shift) % 2**26 for shift in (38, 12)]
    same = np.any(
        [(ours != 0) & (ours == theirs) for ours, theirs in zip(shares, others, strict=True)], axis=0
    )
    goes_on = same & (similarity >= rules.version_resemblance) & (of_other >= rules.version_share)
    has_root = have_figures & (similarity >= rules.resemblance - rules.member_slack)
    return Comparison(
        resemblance=similarity,
        needed=needed,
        replaced=replaced,
        replaceable=replaceable,
        is_form=is_form,
        contained=contained,
        share=share,
        agree=agree(0),
        may_join=agree(rules.root_slack),
        is_part=have_figures
        & (contained >= rules.part_contained)
        & (share >= rules.part_share)
        & (shorter >= rules.part_units),
        by_member=_ways(agree(0), is_close, goes_on),
        to_root=_ways(agree(rules.root_slack), has_root, of_other >= rules.version_root),
    )


def _are_forms(
    one: Signatures,
    other: Signatures,
    own: Floats,
    runs_per_word: Floats,
    least: npt.NDArray[np.int64],
    rules: Agreement,
) -> npt.NDArray[np.bool_]:
    """Return which pairs differ only in names, according to the three parts of their name sketches.

    The parts have 30, 30 and 4 bits.
    """
    sketches = list(zip(one["name_sketch"].tolist(), other["name_sketch"].tolist(), strict=True))
    differ = [((ours ^ theirs) >> 30 & _NAMES, (ours ^ theirs) & _NAMES) for ours, theirs in sketches]
    words = np.array([has.bit_count() for has, _ in differ])
    names = np.array([(has & repeats).bit_count() for has, repeats in differ])
    others = np.array([(~has & repeats).bit_count() for has, repeats in differ])
    more = np.array([((ours >> 60) - (theirs >> 60) + 8) % 16 - 8 for ours, theirs in sketches])
    longer = _counts(one["units"]) - _counts(other["units"])
    units_per_word = 2 / runs_per_word
    # A word that one text repeats and the other lacks is assumed to occur two to six times.
    unexplained = np.abs(longer - 4 * more * units_per_word)
    forms: npt.NDArray[np.bool_] = (
        (names - np.abs(more) >= least)
        & (words >= rules.name_words)
        & (words <= rules.most_name_words)
        & (others <= rules.other_repeated)
        & (own <= rules.name_runs * runs_per_word * names)
        & (unexplained <= (rules.other_words + 2 * np.abs(more)) * units_per_word)
    )
    return forms


def _ways(*ways: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    bits: npt.NDArray[np.uint8] = np.zeros(len(ways[0]), np.uint8)
    for at, way in enumerate(ways):
        bits |= way.astype(np.uint8) << at
    return bits


def _counts(packed: npt.NDArray[np.uint16]) -> Floats:
    """Decode 16-bit counts; codes of 32,768 and above count in steps of 32."""
    numbers = packed.astype(np.float64)
    counts: Floats = np.where(packed < 2**15, numbers, (numbers - 2**15) * 32)
    return counts


def resemblance(one: Sketches, other: Sketches) -> Floats:
    """Estimate the resemblance of pairs of texts, row by row: float64 ``(n,)``, 0 to 1.

    Args:
        one: ``(n, WORDS)``.
        other: ``(n, WORDS)``.
    """
    ours, theirs = _codes(one), _codes(other)
    either = ((ours != 0) | (theirs != 0)).sum(axis=-1)
    same = ((ours == theirs) & (ours != 0)).sum(axis=-1)
    # Different runs have equal codes with probability 1/3.
    both = ((ours != 0) & (theirs != 0)).sum(axis=-1)
    share: Floats = np.clip((_CODES * same - both) / ((_CODES - 1) * np.maximum(either, 1)), 0.0, 1.0)
    return share


def _codes(sketches: Sketches) -> npt.NDArray[np.uint64]:
    """Return the 2-bit codes of each sketch, in no particular order."""
    shifts = np.arange(0, 64, 2, dtype=np.uint64)
    codes = (sketches[..., None] >> shifts) & np.uint64(3)
    flat: npt.NDArray[np.uint64] = codes.reshape(*sketches.shape[:-1], 32 * sketches.shape[-1])
    return flat


def unshared(one: Sketches, other: Sketches) -> Floats:
    """Estimate a lower bound on the number of unshared figures from parity sketches: float64 ``(n,)``."""
    bits = [(first ^ second).bit_count() for first, second in zip(one.tolist(), other.tolist(), strict=True)]
    return np.array([_fewest_figures(each) for each in bits], np.float64)


def _fewest_figures(odd_bits: int) -> int:
    """Return the smallest number of figures that plausibly sets this many of 64 parity bits.

    A number is plausible if the bits exceed their expected number by at most one standard deviation.
    """
    if odd_bits == 0:
        return 0
    for count in range(100):
        # The probability that a bit is even minus the probability that it is odd, and the probability that
        # two bits are equal minus the probability that they differ.
        even, equal = (1 - 2 / 64) ** count, (1 - 4 / 64) ** count
        variance = 64 / 4 * (1 - even**2) + 64 * 63 / 4 * (equal - even**2)
        if odd_bits - 0.5 - 32 * (1 - even) <= math.sqrt(max(variance - 1, 0)):
            return count
    return 100
