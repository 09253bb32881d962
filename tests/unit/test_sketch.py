"""Sketches and minhashes, of texts made of words that occur once: a run is two of them."""

import itertools
import random

import numpy as np

from esdedup import VERIFIED
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.signature import BINS, Signatures
from tests.support.comparison import resemblance


def signatures(*texts: list[str]) -> Signatures:
    """Return the signatures of texts without full stops: one sentence, and then minhashes."""
    return Fingerprinter(VERIFIED).fingerprint([" ".join(text) for text in texts]).signatures


def words(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=10)) for _ in range(count)]


def numbers(count: int, seed: int) -> list[str]:
    return [str(random.Random(f"{seed} {place}").randrange(10**9, 10**10)) for place in range(count)]


def test_the_estimate_is_near_the_truth() -> None:
    errors = []
    for seed in range(300):
        size = (20, 60, 150, 1_000)[seed % 4]
        shared = size * (1 + seed % 9) // 10
        run = words(2 * size - shared + 1, seed)
        sketches = signatures(run[: size + 1], run[size - shared :])["sketch"]
        errors.append(resemblance(sketches[:1], sketches[1:])[0] - shared / (2 * size - shared))
    assert np.sqrt(np.mean(np.square(errors))) < 0.055
    assert abs(np.mean(errors)) < 0.01


def test_equal_and_different_texts() -> None:
    sketches = signatures(words(500, 1), words(500, 2))["sketch"]
    assert resemblance(sketches, sketches).tolist() == [1, 1]
    assert resemblance(sketches[:1], sketches[1:])[0] < 0.1


def test_numbers_weigh_by_how_much_of_the_text_they_are() -> None:
    text, ours, theirs = words(301, 1), numbers(30, 2), numbers(30, 3)
    long = signatures(text + ours, text + theirs)
    short = signatures(text[:61] + ours, text[:61] + theirs)
    plain = signatures(text[:61] + words(30, 4), text[:61] + words(30, 5))
    of_long, of_short, of_plain = (
        resemblance(each["sketch"][:1], each["sketch"][1:])[0] for each in (long, short, plain)
    )
    # 300 of 300 + 2 * 150; 60 of 60 + 300; 60 of 120.
    assert abs(of_long - 0.5) < 0.1
    assert abs(of_short - 1 / 6) < 0.1
    assert abs(of_plain - 0.5) < 0.1
    assert long["runs"].tolist() == [450, 450]


def test_neither_order_nor_repetition_of_runs_counts() -> None:
    """Two words by turns are two runs, however often; parts that one word stands between are in any order."""
    one, other, *parts = words(2 + 60, 1)
    by_turns = signatures([one, other] * 3, [other, one] * 7)
    assert by_turns["sketch"][0].tolist() == by_turns["sketch"][1].tolist()
    rows = [[one, *parts[at : at + 2]] for at in range(0, 60, 2)]
    ordered = [list(itertools.chain(*order, [one])) for order in (rows, rows[::-1], [*rows, rows[0]])]
    found = signatures(*ordered)
    assert found["sketch"].tolist() == [found["sketch"][0].tolist()] * 3
    minhashes = [[each for each in row if each & 1] for row in found["representatives"].tolist()]
    assert minhashes[0] == minhashes[1] == minhashes[2] != []


def test_minhashes_are_shared_as_often_as_three_runs_are() -> None:
    shared = trials = 0
    for seed in range(300):
        run = words(141, seed)
        # A resemblance of 100 / 140: three runs are the same in both about 0.36 of the time.
        minhashes = signatures(run[:121], run[20:])["representatives"][:, 1:]
        shared += int((minhashes[0] == minhashes[1]).sum())
        trials += minhashes.shape[1]
    assert 0.3 < shared / trials < 0.42


def test_where_a_third_run_is_missing_two_make_a_minhash() -> None:
    def count(run: list[str]) -> int:
        minhashes = signatures(run)["representatives"][0, 1:]
        return int(np.count_nonzero(minhashes & np.uint64(1)))

    shared = sum(count(words(13, seed)) for seed in range(100))
    # Of 12 runs in 24 groups, a given one is there with a probability of 0.4, two with 0.16, three with 0.06.
    assert 0.11 < shared / 100 / 8 < 0.21


def test_too_few_runs_have_no_minhashes() -> None:
    found = signatures(words(2, 1))
    assert not (found["representatives"][:, 1:] & np.uint64(1)).any()
    assert found["sketch"].shape == (1, BINS // 16)
