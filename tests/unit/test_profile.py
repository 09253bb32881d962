"""Profiles: labels, and settings that are refused or accepted."""

import dataclasses
from typing import Any

import pytest

from esdedup import CLASSIC, KEYWORDS, VERIFIED, Profile, SettingError, get_profile
from esdedup.fingerprint.agreement import Agreement
from esdedup.text.weights import Tf, WordTable


def test_different_profiles_have_different_labels() -> None:
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
        VERIFIED,
        VERIFIED.with_changes(resemblance=0.4),
        VERIFIED.with_changes(resemblance=0.95),
    ]
    assert len({profile.label for profile in changed}) == len(changed)
    assert CLASSIC.label == "classic-4"
    assert VERIFIED.with_changes(resemblance=Agreement.resemblance).label == "verified-5"


def test_labels_do_not_change() -> None:
    """A changed profile has a different label, which identifies the data made with the profile.

    The digests cover every threshold. If the label in an unchanged line differs, a released profile has
    changed: raise its `version` (CONTRIBUTING.md), or existing forests are refused because of their label.
    """
    assert KEYWORDS.with_changes(keyword_count=5).label == "keywords-4-46a1578a"
    assert dataclasses.replace(VERIFIED, min_letters=9).label == "verified-5-eeda1ac8"


@pytest.mark.parametrize(
    ("profile", "resemblance", "message"),
    [
        (VERIFIED, 0.39, "resemblance is 0.39; it must be from 0.4 to 0.95"),
        (VERIFIED, 0.96, "resemblance is 0.96"),
        (VERIFIED, float("nan"), "resemblance is nan"),
        (CLASSIC, 0.7, "a resemblance applies to the profile verified, not to classic"),
    ],
)
def test_an_invalid_resemblance_is_refused(profile: Profile, resemblance: float, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        profile.with_changes(resemblance=resemblance)


def test_an_unknown_profile_is_refused() -> None:
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
        (VERIFIED, {"zero_bit": 1}, "zero_bit is 1; it must be 0"),
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
        # The label identifies a weighting only by its name.
        (CLASSIC, {"weighting": Tf("tf-idf")}, "'tf-idf' already exists: give yours another name"),
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
def test_the_bounds_of_ranges_are_inclusive(profile: Profile, change: dict[str, Any]) -> None:
    changed = dataclasses.replace(profile, **change)
    assert {name: getattr(changed, name) for name in change} == change
