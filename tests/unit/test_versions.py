"""Versions of one article stay in its story; a text that comes again after the retention begins another."""

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
    """Return each text's root, if they arrive in this order."""
    named = zip(links, ids or [None] * len(texts), strict=True)
    origins = [Provenance.of({"url": link}, Fields(), article).origin for link, article in named]
    joined = [" ".join(text) for text in texts]
    given = [each.root for each in assigned(joined, profile, days=days, origins=origins)]
    assert None not in given
    return [root or "" for root in given]


def joined(*args: Any, **named: Any) -> list[int]:
    """Return the number of the first text with each text's root."""
    given = roots(*args, **named)
    return [given.index(root) for root in given]


@pytest.mark.parametrize("seed", range(3))
def test_a_page_that_goes_on_is_one_story(seed: int) -> None:
    """While three tenths of its first version are left."""
    story = words(1_000, seed)
    # Of 300 words, 50 are new in each version.
    versions = [story[at : at + 300] for at in range(0, 400, 50)]
    found = joined(versions, [PAGE] * 8)
    assert found[:4] == [0] * 4
    assert 0 < found[-1] <= 5
    assert joined(versions, [f"{PAGE}-{at}" for at in range(8)])[3] != 0
    # Its id alone suffices too, as where an update brings no link.
    assert joined(versions[:4], [PAGE, "", PAGE, ""], ids=["1"] * 4) == [0] * 4


def test_the_hundredth_version_is_of_its_story() -> None:
    story = words(1_500, 7)
    assert joined([story[: 200 + 13 * at] for at in range(100)], [PAGE] * 100) == [0] * 100


def test_a_report_that_follows_its_flash_is_its_version() -> None:
    report = words(300, 1)
    assert joined([report[:60], report], [PAGE, PAGE]) == [0, 0]
    assert joined([report[:60], report], [PAGE, f"{PAGE}-2"]) == [0, 1]


def test_figures_make_no_other_article_of_a_version() -> None:
    text = words(100, 3)
    ours, theirs = ([*text[:50], *numbers(8, issue), *text[50:]] for issue in (100, 200))
    assert joined([ours, theirs], [PAGE, PAGE]) == [0, 0]
    assert joined([ours, theirs], [PAGE, f"{PAGE}-2"]) == [0, 1]
    # An address under which unrelated texts come is none.
    assert joined([words(100, 4), ours, theirs], [PAGE] * 3) == [0, 1, 2]
    # Nor is that of a front page, or a section; an id is one.
    for link in ("https://news.example/", "https://news.example/local/sport"):
        assert joined([ours, theirs], [link] * 2) == [0, 1]
        assert joined([ours, theirs], [link] * 2, ids=["1", "1"]) == [0, 0]


def test_versions_that_have_expired_end_no_story() -> None:
    """While a later one with its root lives."""
    story = words(1_000, 2)
    versions = [story[at : at + 300] for at in (0, 100, 180, 200)]
    assert joined(versions, [PAGE] * 4, days=[0, 0, 4, 8]) == [0] * 4


def test_an_error_page_ends_no_story() -> None:
    """If there are four versions for each, or one for each that is less than half as long."""
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


def test_a_version_keeps_its_story_whatever_else_it_resembles() -> None:
    story = words(1_000, 5)
    versions = [story[at : at + 300] for at in (0, 80, 160)]
    # Elsewhere, somebody has the third version with an edit.
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
def test_addresses_of_one_page_are_one(one: str, other: str, are_one: bool) -> None:
    ours, theirs = (Provenance.of({"url": each}, Fields(), None).origin for each in (one, other))
    assert (ours == theirs) is are_one
    assert bool(ours) is (one == PAGE)


@pytest.mark.parametrize(("profile", "rows"), [(VERIFIED, 3), (CLASSIC, 1)])
def test_a_copy_after_the_retention_has_another_root(profile: Profile, rows: int) -> None:
    """In the literature, the root is the simhash."""
    text = words(100, 6)
    found = roots([text] * 5, [PAGE] * 5, days=[0, 3, 60, 61, 200], profile=profile)
    assert len(set(found)) == rows
    assert (found[0], found[2]) == (found[1], found[3])
    # The same in every run.
    assert found == roots([text] * 5, [PAGE] * 5, days=[0, 3, 60, 61, 200], profile=profile)


def test_articles_that_are_read_again_get_their_roots() -> None:
    """As after a kill, when the later ones have moved the forest's time beyond the retention of the first."""
    texts, days = [words(100, seed) for seed in range(4)], [0, 3, 30, 60]
    found = roots(texts * 2, [""] * 8, days=days * 2)
    assert found[:4] == found[4:]
