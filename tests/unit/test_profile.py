"""Profiles: what decides a fingerprint, and when two whole texts agree."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup import CLASSIC, KEYWORDS, VERIFIED, Profile, SettingError, get_profile
from esdedup.fingerprint.agreement import Agreement, Comparison
from esdedup.fingerprint.signature import BINS, SIGNATURE
from esdedup.text.weights import Tf, WordTable
from tests.support import comparison


def test_labels_tell_profiles_apart() -> None:
    changed = [
        KEYWORDS,
        KEYWORDS.with_changes(keyword_count=5),
        KEYWORDS.with_changes(weighting=Tf()),
        KEYWORDS.with_changes(weighting=WordTable({"a": 1})),
        KEYWORDS.with_changes(weighting=WordTable({"a": 2})),
        CLASSIC,
        CLASSIC.with_changes(weighting=Tf()),
        CLASSIC.with_changes(zero_bit=1),
        CLASSIC.with_changes(max_distance_bits=0),
        CLASSIC.with_changes(max_distance_bits=2),
        CLASSIC.with_changes(keep_boilerplate=True),
    ]
    assert len({profile.label for profile in changed}) == len(changed)
    assert CLASSIC.label == "classic-3"


def test_labels_do_not_change() -> None:
    """Data that was made with a changed profile is found again by its label.

    The digests cover every threshold. If one changes here without a change to the line, a released profile
    has changed: raise its `version` (CONTRIBUTING.md), or forests made before would be refused by their own
    label.
    """
    assert KEYWORDS.with_changes(keyword_count=5).label == "keywords-3-4addc4c8"
    assert dataclasses.replace(VERIFIED, min_letters=9).label == "verified-3-9f91d39f"


def test_an_unknown_profile() -> None:
    with pytest.raises(SettingError, match="classic"):
        get_profile("nonsense")


@pytest.mark.parametrize(
    ("profile", "change", "message"),
    [
        (CLASSIC, {"name": ""}, "name .* empty"),
        (CLASSIC, {"version": 0}, "version is 0; it must be at least 1"),
        (CLASSIC, {"representation": "first-sentence"}, "one of halves, longest-sentence, keywords"),
        (CLASSIC, {"max_distance_bits": 4}, "max_distance_bits is 4; it must be from 0 to 3"),
        (CLASSIC, {"max_distance_bits": -1}, "max_distance_bits is -1"),
        (CLASSIC, {"zero_bit": 2}, "zero_bit is 2; it must be from 0 to 1"),
        (VERIFIED, {"zero_bit": 1}, "zero_bit is 1; it must be from 0 to 0"),
        (CLASSIC, {"min_letters": 0}, "min_letters"),
        (CLASSIC, {"max_sentence_length": 0}, "max_sentence_length"),
        (VERIFIED, {"max_sentence_length": 65_536}, "from 1 to 65,535"),
        (CLASSIC, {"max_sentence_length": 5}, "max_sentence_length is 5; it must be at least min_letters, 6"),
        (KEYWORDS, {"min_letters": 2_001}, "max_sentence_length is 2000; .* min_letters, 2001"),
        (VERIFIED, {"max_text_length": 5}, "max_text_length is 5; it must be from 6 to 10,000,000"),
        (VERIFIED, {"max_text_length": 10_000_001}, "max_text_length is 10000001"),
        (KEYWORDS, {"keyword_count": 0}, "keyword_count is 0; it must be from 1 to 10,000"),
        (KEYWORDS, {"keyword_count": 10_001}, "keyword_count is 10001"),
        (CLASSIC, {"keyword_count": 3}, "keyword_count contradicts .* 'longest-sentence'"),
        (VERIFIED, {"keyword_count": 3}, "keyword_count contradicts .* 'halves'"),
        (VERIFIED, {"weighting": Tf()}, "the weighting 'tf' contradicts .* 'halves'"),
        # The label has only its name.
        (CLASSIC, {"weighting": Tf("tf-idf")}, "the weighting 'tf-idf' exists: give your own another name"),
        (CLASSIC, {"agreement": Agreement()}, "an agreement contradicts .* 'longest-sentence'"),
        (VERIFIED, {"representation": "keywords"}, "an agreement contradicts .* 'keywords'"),
        (VERIFIED, {"agreement": None}, "'halves' needs an agreement"),
    ],
)
def test_a_profile_that_contradicts_itself_is_refused(
    profile: Profile, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        dataclasses.replace(profile, **change)


@pytest.mark.parametrize(
    ("profile", "change"),
    [
        (CLASSIC, {"max_distance_bits": 0}),
        (CLASSIC, {"min_letters": 1, "max_sentence_length": 1}),
        (CLASSIC, {"max_sentence_length": 6}),
        (VERIFIED, {"max_sentence_length": 65_535}),
        (VERIFIED, {"max_sentence_length": 5}),
        (KEYWORDS, {"keyword_count": 10_000, "weighting": Tf()}),
        (VERIFIED, {"representation": "keywords", "agreement": None, "keyword_count": 1}),
    ],
)
def test_the_ends_of_ranges_are_inclusive(profile: Profile, change: dict[str, Any]) -> None:
    changed = dataclasses.replace(profile, **change)
    assert {name: getattr(changed, name) for name in change} == change


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
