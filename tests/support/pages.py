"""Invented web pages: different articles surrounded by the same passages."""

import random
from collections.abc import Iterator
from random import Random
from typing import Any

from elasticsearch import Elasticsearch

from esdedup import Dedup
from tests import sample
from tests.support.forests import feed
from tests.support.names import Names

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
    """Yield the beginnings of sample articles, each on a page of one of several sites.

    A site's boilerplate is longer than its articles, so unrelated pages of a site are near each other until
    the boilerplate is learned.
    """
    chance = random.Random(seed)
    # Without shuffling, consecutive articles would mostly belong to a few stories.
    articles = chance.sample(list(sample.articles(4 * count)), count)
    for number, article in enumerate(articles):
        site = chance.randrange(sites)
        owner = _OWNERS[site % len(_OWNERS)]
        beginning = article["text"][:_MOST_LETTERS].rpartition(". ")[0]
        notes = [note.format(owner) for note in _NOTES]
        text = "\n".join([*_MENU[site:], f"By our staff, page {number}", f"{beginning}.", *notes])
        yield {"id": article["id"], "text": text}


# Complete sentences, which are omitted only after they have been learned as boilerplate.
MAIL = "Sign up for the Harbour Mail morning briefing, which reaches your inbox before seven."
RIGHTS = "Nothing on this site may be copied without the written consent of the Harbour Mail."
VALLEY_RIGHTS = "The Valley Post answers for no text that readers send to the newsroom."
# Lists are omitted even before anything has been learned.
MENU = "Home\n\nWeather\n\nSports\n\nCulture"
HARBOUR, VALLEY = "harbour.example", "valley.example"
# The number of pages in two blocks, after which the passages of both sites have been learned.
ENOUGH = 128


def article(number: int) -> str:
    """Return a text of six sentences that does not resemble the text of any other number."""
    draw = Random(f"article {number}")
    sentences = (
        " ".join("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(12))
        for _ in range(6)
    )
    return " ".join(f"{sentence.capitalize()}." for sentence in sentences)


def page(text: str, site: str) -> str:
    """Surround an article with the passages of a site."""
    around = (MENU, MAIL, text, RIGHTS) if site == HARBOUR else (text, VALLEY_RIGHTS)
    return "\n\n".join(around)


def stored_page(number: int, site: str, name: str | None = None) -> dict[str, Any]:
    """Return an article on a page, as the source of an action."""
    return {
        "_id": name or f"page-{number}",
        "title": f"Article {number}",
        "text": page(article(number), site),
        "url": f"https://www.{site}/{number}",
        "published_at": "2026-01-01",
    }


def feed_pages(es: Elasticsearch, name: Names) -> tuple[str, str]:
    """Feed pages to a new index and forest; return their names.

    The article `early` is fed before any boilerplate is learned. `late` is fed afterwards; it is the same
    article on another site.
    """
    index, forest = name("pages"), name("forest")
    pages = [stored_page(number, (HARBOUR, VALLEY)[number % 2]) for number in range(1, ENOUGH)]
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [stored_page(0, HARBOUR, "early"), *pages])
        feed(es, dedup, index, [stored_page(0, VALLEY, "late")])
    return index, forest
