"""Versions of an article stay in its story; a text that returns after the retention begins a new story."""

from collections.abc import Sequence
from typing import Any

import pytest

from esdedup import CLASSIC, VERIFIED, Profile
from esdedup.fields import Fields
from esdedup.sites import Provenance
from tests.support.assign import assigned
from tests.support.wording import numbers, words

PAGE = "https://news.example/fire-at-the-quay"


def roots(
    texts: Sequence[list[str]],
    links: Sequence[str],
    *,
    days: Sequence[int] | None = None,
    ids: Sequence[str | None] | None = None,
    profile: Profile = VERIFIED,
) -> list[str]:
    """Return the root of each text when the texts arrive in this order."""
    named = zip(links, ids or [None] * len(texts), strict=True)
    origins = [Provenance.of({"url": link}, Fields(), article).origin for link, article in named]
    joined = [" ".join(text) for text in texts]
    given = [each.root for each in assigned(joined, profile, days=days, origins=origins)]
    assert None not in given
    return [root or "" for root in given]


def joined(*args: Any, **named: Any) -> list[int]:
    """Return for each text the position of the first text with the same root."""
    given = roots(*args, **named)
    return [given.index(root) for root in given]


@pytest.mark.parametrize("seed", range(3))
def test_an_updated_page_stays_one_story(seed: int) -> None:
    """A version joins only if it still contains at least 30 % of the first version."""
    story = words(1_000, seed)
    # Each version replaces 50 of 300 words.
    versions = [story[at : at + 300] for at in range(0, 400, 50)]
    found = joined(versions, [PAGE] * 8)
    assert found[:4] == [0] * 4
    assert 0 < found[-1] <= 5
    assert joined(versions, [f"{PAGE}-{at}" for at in range(8)])[3] != 0
    # An equal id is also sufficient, for example if an update has no link.
    assert joined(versions[:4], [PAGE, "", PAGE, ""], ids=["1"] * 4) == [0] * 4


def test_the_hundredth_version_stays_in_its_story() -> None:
    story = words(1_500, 7)
    assert joined([story[: 200 + 13 * at] for at in range(100)], [PAGE] * 100) == [0] * 100


def test_a_report_that_replaces_a_news_flash_joins_it() -> None:
    report = words(300, 1)
    assert joined([report[:60], report], [PAGE, PAGE]) == [0, 0]
    assert joined([report[:60], report], [PAGE, f"{PAGE}-2"]) == [0, 1]


def test_different_figures_do_not_separate_versions() -> None:
    text = words(100, 3)
    ours, theirs = ([*text[:50], *numbers(8, issue), *text[50:]] for issue in (100, 200))
    assert joined([ours, theirs], [PAGE, PAGE]) == [0, 0]
    assert joined([ours, theirs], [PAGE, f"{PAGE}-2"]) == [0, 1]
    # An address at which unrelated texts appear is ignored.
    assert joined([words(100, 4), ours, theirs], [PAGE] * 3) == [0, 1, 2]
    # The address of a front page or a section is ignored too, but an id is not.
    for link in ("https://news.example/", "https://news.example/local/sport"):
        assert joined([ours, theirs], [link] * 2) == [0, 1]
        assert joined([ours, theirs], [link] * 2, ids=["1", "1"]) == [0, 0]


def test_a_story_outlives_its_expired_versions() -> None:
    """It does so as long as a later version with the same root is still live."""
    story = words(1_000, 2)
    versions = [story[at : at + 300] for at in (0, 100, 180, 200)]
    assert joined(versions, [PAGE] * 4, days=[0, 0, 4, 8]) == [0] * 4


def test_an_error_page_does_not_end_a_story() -> None:
    """Four versions must precede the error page, or one if the page is less than half a version long."""
    story = words(1_000, 2)
    versions = [story[at : at + 300] for at in range(0, 240, 40)]
    for length, needed in ((160, 4), (140, 1)):
        odd = words(length, 3)
        for before in range(1, 5):
            texts = [*versions[:before], odd, versions[before + 1]]
            own = 0 if before >= needed else before + 1
            assert joined(texts, [PAGE] * len(texts))[before:] == [before, own]
    short = [words(20, at) for at in (4, 5)]
    assert joined([short[0], versions[0], versions[2]], [PAGE] * 3) == [0, 1, 1]
    assert joined([versions[0], *short, versions[2]], [PAGE] * 4) == [0, 1, 2, 3]


def test_a_version_stays_despite_resembling_another_story() -> None:
    story = words(1_000, 5)
    versions = [story[at : at + 300] for at in (0, 80, 160)]
    # Another site has published the third version with an edit.
    texts = [versions[0], versions[1], [*versions[2], "indeed"], versions[2]]
    assert joined(texts, [PAGE, PAGE, "https://other.example/1", PAGE]) == [0, 0, 2, 0]


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        (PAGE, "http://www.NEWS.example:80/fire-at-the%2Dquay/#top", True),
        (PAGE, f"{PAGE}?page=2", False),
        (PAGE, "https://other.example/fire-at-the-quay", False),
        ("", "", True),
        ("https://news.example", "", True),
        ("https://news.example/news/science-and-art?page=2", "", True),
    ],
)
def test_equivalent_addresses_have_the_same_origin(one: str, other: str, are_one: bool) -> None:
    ours, theirs = (Provenance.of({"url": each}, Fields(), None).origin for each in (one, other))
    assert (ours == theirs) is are_one
    assert bool(ours) is (one == PAGE)


@pytest.mark.parametrize(("profile", "rows"), [(VERIFIED, 3), (CLASSIC, 1)])
def test_only_verified_gives_expired_texts_a_new_root(profile: Profile, rows: int) -> None:
    """With `classic`, the root is the simhash, which is always the same."""
    text = words(100, 6)
    found = roots([text] * 5, [PAGE] * 5, days=[0, 3, 60, 61, 200], profile=profile)
    assert len(set(found)) == rows
    assert (found[0], found[2]) == (found[1], found[3])
    # The roots are the same in every run.
    assert found == roots([text] * 5, [PAGE] * 5, days=[0, 3, 60, 61, 200], profile=profile)


def test_reread_articles_get_the_same_roots() -> None:
    """Articles may be re-read after a crash, when the watermark has passed the first article's retention."""
    texts, days = [words(100, seed) for seed in range(4)], [0, 3, 30, 60]
    found = roots(texts * 2, [""] * 8, days=days * 2)
    assert found[:4] == found[4:]
