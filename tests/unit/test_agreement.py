import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup import SettingError
from esdedup.fingerprint.agreement import Agreement, Comparison
from esdedup.fingerprint.signature import BINS, SIGNATURE
from tests.support import comparison

RULES = Agreement()


def signature(
    changed: int = 0, *, letters: int = 10_000, runs: int = 1_000, filled: int = BINS
) -> np.ndarray:
    """Make a text whose sketch differs in so many bins from that of another one made here."""
    codes = np.ones(BINS, np.uint8)
    codes[:changed] = 2
    codes[filled:] = 0
    made = np.zeros(1, SIGNATURE)
    made["sketch"] = (codes[0::2] << 4 | codes[1::2]).view(">u8").astype(np.uint64)
    made["letters"], made["runs"] = letters, runs
    return made


def compare(one: np.ndarray, other: np.ndarray) -> Comparison:
    return Comparison.of(one, other, RULES)


def test_the_shorter_the_stricter() -> None:
    needed = [
        compare(signature(letters=each), signature()).needed[0] for each in (10, 200, 400, 2_000, 10_000)
    ]
    assert needed == pytest.approx([0.72, 0.72, 0.625, 0.549, 0.5338])


def test_the_fewer_runs_the_stricter() -> None:
    needed = [compare(signature(runs=each), signature()).needed[0] for each in (1, 80, 160, 800)]
    assert needed == pytest.approx([0.78, 0.78, 0.545625, 0.5338])
    # What is short by both measures needs the more of the two.
    assert compare(signature(letters=200, runs=160), signature()).needed[0] == pytest.approx(0.72)


@pytest.mark.parametrize("letters", [80, 300, 10_000])
def test_the_threshold_is_inclusive(letters: int) -> None:
    least = [compare(signature(at, letters=letters), signature(letters=letters)) for at in range(BINS)]
    for each in least:
        assert each.agree[0] == (each.resemblance[0] >= each.needed[0])
        assert each.may_join[0] == (each.resemblance[0] >= each.needed[0] - RULES.root_slack)
    assert {bool(each.agree[0]) for each in least} == {True, False}


def test_a_short_text_may_be_contained_in_another() -> None:
    # Half of the bins: a resemblance of 0.47, with chance taken off; of 400 runs together 127 shared.
    half = BINS // 2
    inside = compare(signature(half, letters=100, runs=130), signature(letters=300, runs=270))
    assert inside.agree[0]
    assert inside.contained[0] == pytest.approx(0.976, abs=0.01)
    assert not compare(signature(half, letters=100, runs=200), signature(letters=300, runs=200)).agree[0]
    assert not compare(signature(half, letters=100, runs=130), signature(letters=301, runs=270)).agree[0]
    # A greeting, which may be in anything.
    assert compare(signature(half, letters=60, runs=60), signature(letters=300, runs=120)).agree[0]
    assert not compare(signature(half, letters=60, runs=59), signature(letters=300, runs=118)).agree[0]
    # One of many parts of a long list.
    most = BINS - BINS // 5
    assert not compare(signature(most, letters=50, runs=60), signature(letters=300, runs=340)).agree[0]


@given(st.data())
def test_comparison_is_symmetric_but_for_joining(data: st.DataObject) -> None:
    def draw() -> np.ndarray:
        made = np.zeros(1, SIGNATURE)
        made["sketch"] = [data.draw(st.sampled_from([0, 1, 0x1111, 2**64 - 1, 0xF0F0])) for _ in range(8)]
        made["letters"] = data.draw(st.sampled_from([6, 100, 300, 301, 5_000]))
        made["runs"] = data.draw(st.integers(1, 5_000))
        return made

    one, other = draw(), draw()
    there, back = compare(one, other), compare(other, one)
    plain = comparison.compare(one, other, RULES)
    for field in dataclasses.fields(Comparison):
        assert getattr(there, field.name).tobytes() == getattr(plain, field.name).tobytes()
    for field in dataclasses.fields(Comparison):
        if field.name != "may_join":
            assert getattr(there, field.name) == getattr(back, field.name)
    # One of the two may join the other.
    assert there.agree <= there.may_join | back.may_join
    assert 0 <= there.resemblance[0] <= 1
    assert 0 <= there.contained[0] <= 1


@pytest.mark.parametrize(
    "wrong", [{"number_weight": 0}, {"least_resemblance": 1.1}, {"root_slack": -0.1}, {"short_letters": 0}]
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        Agreement(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"least_resemblance": 0.73}, "least_resemblance is 0.73; it must be at most most_resemblance, 0.72"),
        ({"most_resemblance": 0.5}, "least_resemblance is 0.53; it must be at most most_resemblance, 0.5"),
        ({"tiny_resemblance": 0.5}, "least_resemblance is 0.53; it must be at most tiny_resemblance, 0.5"),
        ({"root_slack": 0.54}, "root_slack is 0.54; it must be at most least_resemblance, 0.53"),
        ({"contained_resemblance": 0.8}, "contained_resemblance is 0.8; .* most_resemblance, 0.72"),
    ],
)
def test_thresholds_that_contradict_each_other_are_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Agreement(**wrong)  # type: ignore[arg-type]


def test_thresholds_may_be_equal() -> None:
    rules = Agreement(least_resemblance=0.5, most_resemblance=0.5, root_slack=0.5, contained_resemblance=0.5)
    same = Comparison.of(signature(), signature(), rules)
    assert same.agree[0]
    assert same.may_join[0]
