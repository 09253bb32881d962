"""The memory for counting boilerplate by site is limited, and it is said if not all was counted."""

from typing import Any, cast

import numpy as np

from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.maintenance import LearnedPassage
from esdedup.maintenance.stored_texts import BoilerplateCounts
from esdedup.sites import RawPage


class AllLearned:
    """Takes every passage for boilerplate."""

    def are_learned(self, hashes: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> object:
        return np.ones(len(hashes), bool)


def count(texts: list[str], **limits: Any) -> BoilerplateCounts:
    counts = BoilerplateCounts(learned=cast("LearnedCopy", AllLearned()), max_length=1_000, **limits)
    for text in texts:
        counts.add(RawPage(text, "a.example"))
    return counts


def test_a_passage_counts_once_an_article_and_dates_do_not_part_it() -> None:
    (site,) = count(["In 2001.\n\nIn 2002.\n\nHome", "In 2003.", ""]).result(1).sites
    assert (site.articles, site.learned) == (3, 2)
    assert site.passages == (LearnedPassage(text="In 2001.", articles=2),)


def test_further_passages_are_not_counted_and_long_ones_not_shown() -> None:
    found = count(["Home\n\nWeather", "Home\n\nSports"], most_passages=2, longest_shown=5).result(9)
    assert found.sites[0].passages == (
        LearnedPassage(text="Home", articles=2),
        LearnedPassage(text=None, articles=1),
    )
    assert not found.is_complete
