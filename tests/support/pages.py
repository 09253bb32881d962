"""Articles as crawlers bring them: invented news amid the boilerplate of invented sites."""

import random
from collections.abc import Iterator
from typing import Any

from esdedup import sample

_MENU = ("Home", "Politics", "Weather", "Sport", "Contact us", "Sign in")
_OWNERS = ("Harbour House", "the Lowland Group", "Valley Media", "the Ferry Trust")
_NOTES = (
    "{} publishes this paper for readers who care about what happens next door to them.",
    "Every word printed by {} may be quoted in schools if the name of the paper stands beside it.",
    "Readers of {} pay nothing for their first month, and may end a subscription by post.",
    "Complaints about {} are answered by an editor within one week, except in the summer.",
    "Pictures that {} has bought from others must not be copied without their own permission.",
    "Anybody who writes to {} agrees that the letter may be shortened before it is printed.",
    "Prices that {} names contain all taxes, but not what it costs to bring goods to you.",
)
_MOST_LETTERS = 500


def pages(count: int, *, sites: int = 3, seed: int = 10) -> Iterator[dict[str, Any]]:
    """Yield the beginnings of articles of the sample corpus, each on a page of one of some sites.

    The boilerplate of a site is longer than its articles: until it is learned, unrelated pages of a site are
    near each other.
    """
    chance = random.Random(seed)
    # Of as many that follow each other, most would be of a few stories.
    articles = chance.sample(list(sample.articles(4 * count)), count)
    for number, article in enumerate(articles):
        site = chance.randrange(sites)
        owner = _OWNERS[site % len(_OWNERS)]
        beginning = article["text"][:_MOST_LETTERS].rpartition(". ")[0]
        notes = [note.format(owner) for note in _NOTES]
        text = "\n".join([*_MENU[site:], f"By our staff, page {number}", f"{beginning}.", *notes])
        yield {"id": article["id"], "text": text}
