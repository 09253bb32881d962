"""The memory for counting boilerplate by site is limited, and what was not counted is told."""

from typing import cast

import numpy as np
import pytest

from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.maintenance import LearnedPassage, site_boilerplate
from esdedup.maintenance.site_boilerplate import _Counted


class AllLearned:
    """Takes every passage for boilerplate."""

    def are_learned(self, hashes: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> object:
        return np.ones(len(hashes), bool)


def count(texts: list[str]) -> _Counted:
    counted = _Counted()
    batch = [("a.example", text) for text in texts]
    counted.add(batch, cast("LearnedCopy", AllLearned()), max_length=1_000)
    return counted


def test_a_passage_counts_once_an_article_and_dates_do_not_part_it() -> None:
    (site,) = count(["In 2001.\n\nIn 2002.\n\nHome", "In 2003.", ""]).result(1).sites
    assert (site.articles, site.learned) == (3, 2)
    assert site.passages == (LearnedPassage(text="In 2001.", articles=2),)


def test_further_passages_are_not_counted_and_long_ones_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_boilerplate, "_MOST_PASSAGES", 2)
    monkeypatch.setattr(site_boilerplate, "_LONGEST_SHOWN", 5)
    found = count(["Home\n\nWeather", "Home\n\nSports"]).result(9)
    assert found.sites[0].passages == (
        LearnedPassage(text="Home", articles=2),
        LearnedPassage(text=None, articles=1),
    )
    assert not found.is_complete
