import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from esdedup.fingerprint.sketch import BINS, MINHASHES, Sketched, resemblance, sketch
from esdedup.text.tokens import Runs


def sketched(*texts: list[int], numbers: set[int] = frozenset(), weight: int = 5) -> Sketched:  # type: ignore[assignment]
    """Sketch texts given as the hashes of their runs."""
    flat = [run for text in texts for run in text]
    runs = Runs(
        hashes=np.array(flat, np.uint64),
        have_number=np.array([run in numbers for run in flat], bool),
        counts=np.array([len(text) for text in texts]),
    )
    return sketch(runs, number_weight=weight)


def hashes(count: int, seed: int) -> list[int]:
    found: list[int] = np.random.default_rng(seed).integers(0, 2**64, count, np.uint64).tolist()
    return found


def test_the_estimate_is_near_the_truth() -> None:
    errors = []
    for seed in range(300):
        size = (20, 60, 150, 1_000)[seed % 4]
        shared = size * (1 + seed % 9) // 10
        run = hashes(2 * size - shared, seed)
        one, other = run[:size], run[size - shared :]
        both = sketched(one, other).sketches
        errors.append(resemblance(both[:1], both[1:])[0] - shared / (2 * size - shared))
    assert np.sqrt(np.mean(np.square(errors))) < 0.055
    assert abs(np.mean(errors)) < 0.01


def test_equal_and_different_texts() -> None:
    one, other = hashes(500, 1), hashes(500, 2)
    both = sketched(one, other, list(reversed(one))).sketches
    assert resemblance(both[[0, 0]], both[[2, 0]]).tolist() == [1, 1]
    assert resemblance(both[:1], both[1:2])[0] < 0.1


def test_numbers_weigh_by_how_much_of_the_text_they_are() -> None:
    words, numbers, others = hashes(300, 1), hashes(30, 2), hashes(30, 3)
    marked = {*numbers, *others}
    long = sketched(words + numbers, words + others, numbers=marked).sketches
    short = sketched(words[:60] + numbers, words[:60] + others, numbers=marked).sketches
    plain = sketched(words[:60] + numbers, words[:60] + others).sketches
    of_long, of_short, of_plain = (resemblance(each[:1], each[1:])[0] for each in (long, short, plain))
    # 300 of 300 + 2 * 150; 60 of 60 + 300; 60 of 120.
    assert abs(of_long - 0.5) < 0.1
    assert abs(of_short - 1 / 6) < 0.1
    assert abs(of_plain - 0.5) < 0.1
    assert sketched(words + numbers, numbers=marked).runs.tolist() == [450]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40), st.randoms())
def test_neither_order_nor_repetition_counts(run: list[int], chance: object) -> None:
    mixed = run + run[:3]
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    both = sketched(run, mixed)
    assert both.sketches[0].tolist() == both.sketches[1].tolist()
    assert both.minhashes[0].tolist() == both.minhashes[1].tolist()


def test_minhashes_are_shared_as_often_as_three_runs_are() -> None:
    shared = trials = 0
    for seed in range(300):
        run = hashes(140, seed)
        # A resemblance of 100 / 140: three runs are the same in both about 0.36 of the time.
        minhashes = sketched(run[:120], run[20:]).minhashes
        shared += int((minhashes[0] == minhashes[1]).sum())
        trials += minhashes.shape[1]
    assert 0.3 < shared / trials < 0.42


def test_where_a_third_run_is_missing_two_make_a_minhash() -> None:
    shared = sum(
        int((sketched(run[:12], run[1:]).minhashes[0] != 0).sum())
        for run in (hashes(13, seed) for seed in range(100))
    )
    # Of 12 runs in 24 groups, a given one is there with a probability of 0.4, two with 0.16, three with 0.06.
    assert 0.11 < shared / 100 / MINHASHES < 0.21


def test_too_few_runs_have_no_minhashes() -> None:
    assert sketched([1]).minhashes.tolist() == [[0] * MINHASHES]
    assert sketched([1]).sketches.shape == (1, BINS // 16)
