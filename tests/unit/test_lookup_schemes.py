"""The look-up schemes of the benchmark `layouts` find all near fingerprints at the predicted costs.

The tests also repeat the calculations with which docs/lookup.md corrects the literature.
"""

import re
from math import comb
from pathlib import Path

import numpy as np
import pytest

from benchmarks.lookup.draw import draw
from benchmarks.lookup.fingerprints import arriving, uniform
from benchmarks.lookup.in_memory import HashTable, Tables
from benchmarks.lookup.rows import UNIFORM, Lookup, calculated, figure, number
from benchmarks.lookup.schemes import (
    ALL_VARIANTS,
    BLOCKS,
    EXHAUSTIVE,
    EXPANSION,
    LEVELS,
    SCHEMES,
    TABLES,
    THREE_OF_SIX,
    TWO_HALVES,
    TWO_OF_FIVE,
    Scheme,
)
from benchmarks.results import ROOT

# 2^34 is 17 billion, although the literature usually calls it 8 billion or 1 billion.
LITERATURE = 2**34


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_a_scheme_finds_everything_within_three_bits(scheme: Scheme) -> None:
    random = np.random.default_rng(1)
    held = uniform(20, random)
    held = np.concatenate([held, *(arriving(held, uniform, 40, random)[::2] for _ in range(5))])
    batch = arriving(held, uniform, 20, random)
    apart = np.bitwise_count(batch[:, None] ^ held)
    expected = {(at, int(held[row])) for at, row in zip(*np.nonzero(apart <= 3), strict=True)}
    read, found = Tables(scheme, held).search(batch)
    assert found == expected
    assert read >= len(expected) >= 10


@pytest.mark.parametrize("scheme", [EXHAUSTIVE, *TABLES], ids=lambda scheme: scheme.name)
def test_costs_of_uniform_fingerprints_match_the_formulas(scheme: Scheme) -> None:
    random, count = np.random.default_rng(2), 1 << 18
    tables, arrivals = Tables(scheme, uniform(count, random)), 4_000
    read, found = tables.search(uniform(arrivals, random)) if scheme != EXHAUSTIVE else (count * arrivals, ())
    assert not found
    # The number of candidates has approximately a Poisson distribution.
    expected = scheme.candidates(count) * arrivals
    assert abs(read - expected) <= 5 * expected**0.5 + 5
    assert 0.9 * scheme.memory_bytes(count) <= tables.size_bytes / count <= scheme.memory_bytes(count) + 0.01


def test_a_hash_table_reads_each_requested_bucket() -> None:
    keys = np.array([5, 5, 7, 9], np.uint64)
    table = HashTable(keys, np.arange(4, dtype=np.uint64), width_bits=4)
    read = [
        (int(asked), int(value))
        for positions, values in table.read(np.array([9, 3, 5], np.uint64))
        for asked, value in zip(positions, values, strict=True)
    ]
    assert {(0, 3), (2, 0), (2, 1)} <= set(read)
    assert list(table.read(np.array([], np.uint64))) == []


def test_calculated_costs_add_keys_and_candidates() -> None:
    def row(scheme: Scheme, size: int, candidates: float, lookup_us: float) -> Lookup:
        return Lookup(
            table="",
            kind=UNIFORM,
            scheme=scheme.name,
            fingerprints=size,
            candidates=candidates,
            lookup_us=lookup_us,
        )

    measured = [row(scheme, 2**16, 0, 2) for scheme in SCHEMES if scheme not in (BLOCKS, EXHAUSTIVE)]
    measured += [row(BLOCKS, 2**16, 4, 3), row(BLOCKS, 2**20, 64, 9), row(EXHAUSTIVE, 1_000, 1_000, 4)]
    found = {(each.scheme, each.fingerprints): each.lookup_us for each in calculated(measured)}
    # A candidate costs 0.1 µs, and the keys of four blocks cost 2.6 µs.
    assert found[BLOCKS.name, 10**9] == pytest.approx(2.6 + 0.1 * 4 * 10**9 / 2**16)
    assert found[TWO_HALVES.name, 10**9] == pytest.approx(2 + 0.1 * 66 * 10**9 / 2**32)
    assert found[EXHAUSTIVE.name, 10**6] == pytest.approx(4_000)


@pytest.mark.parametrize("value", [0.0, 1.5e-9, 0.25, 12.5, 262_000.0, 17_200_000_000.0])
def test_shown_figures_can_be_read_back(value: float) -> None:
    assert number(figure(value)) == value
    assert (figure(None), number("")) == ("", None)


@pytest.mark.parametrize(
    ("scheme", "stored_keys", "candidates"),
    [
        # Each of the four tables holds every fingerprint once, so a bucket has 2^34 / 2^16 = 2^18 entries.
        (BLOCKS, 4, 4 * 2**18),
        # Six pairs of 13-bit blocks, and four pairs with the 12-bit block.
        (TWO_OF_FIVE, 10, 6 * 2**8 + 4 * 2**9),
        # With four 11-bit and two 10-bit blocks, 4 keys have 33 bits, 12 have 32 and 4 have 31.
        (THREE_OF_SIX, 20, 4 * 2 + 12 * 2**2 + 4 * 2**3),
        (LEVELS, 16, 16 * 2**6),
        (TWO_HALVES, 2, 2 * 33 * 2**2),
    ],
    ids=lambda each: each.name if isinstance(each, Scheme) else "",
)
def test_longer_keys_give_fewer_candidates_of_2_34_fingerprints(
    scheme: Scheme, stored_keys: int, candidates: int
) -> None:
    assert (scheme.stored_keys, scheme.candidates(LITERATURE)) == (stored_keys, candidates)


def test_calculations_in_the_lookup_document_are_right() -> None:
    bucket, in_one_store = LITERATURE // 2**16, 4 * 2**37 // 2**16
    assert [LITERATURE, 8 * LITERATURE, bucket, 2**32 // 2**16] == [
        17_179_869_184,
        128 << 30,
        262_144,
        65_536,
    ]
    assert [LITERATURE // 2**20, 2**30 // 2**20, 2**18 // 3] == [16_384, 1_024, 87_381]
    assert [10 * LITERATURE // 2**26, in_one_store] == [2_560, 8_388_608]
    # The saving of t tables with keys of w bits is 2^w / t, not 2^m / (m (k + 1)) for k + 1 blocks of m bits.
    assert [LITERATURE / scheme.candidates(LITERATURE) for scheme in (BLOCKS, LEVELS)] == [16_384, 2**24]
    assert [2**16 // (16 * 4), 2**20 // 12, 2**24 // 12] == [1_024, 87_381, 1_398_101]
    assert EXPANSION.candidates(10**9) == pytest.approx(0.000_002, rel=0.2)
    # Keys without the number of their block find four times as many candidates.
    assert 4 * in_one_store == 4 * BLOCKS.candidates(2**37)


def test_no_schemes_differ_by_a_factor_of_87_381() -> None:
    """Some descriptions claim a saving of 87,381, which is 2^18 / 3; see docs/lookup.md."""
    read = [LITERATURE, *(scheme.candidates(LITERATURE) for scheme in SCHEMES)]
    quotients = [one / other for one in read for other in read]
    assert not [each for each in quotients if each == pytest.approx(87_381, rel=0.01)]


def test_expansion_within_three_bits_looks_up_43_745_values() -> None:
    assert EXPANSION.search_keys == ALL_VARIANTS.stored_keys == sum(comb(64, bits) for bits in range(4))


@pytest.mark.slow
def test_charts_in_the_lookup_document_come_from_the_results(tmp_path: Path) -> None:
    draw(tmp_path)
    page = (ROOT / "docs/lookup.md").read_text(encoding="utf-8")
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == set(re.findall(r"\((lookup-[a-z-]+\.svg)\)", page))
    assert drawn <= {path.name for path in (ROOT / "docs").iterdir()}
    times = (tmp_path / "lookup-time.svg").read_text(encoding="utf-8")
    assert all(scheme.name in times for scheme in SCHEMES)
