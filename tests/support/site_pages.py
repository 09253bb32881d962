"""Invented pages of two sites: different articles amid the same passages."""

from random import Random
from typing import Any

from elasticsearch import Elasticsearch

from esdedup import Dedup
from tests.support.forests import feed
from tests.support.names import Names

# They end as sentences of an article do, so they are boilerplate only once they have been seen.
MAIL = "Sign up for the Harbour Mail morning briefing, which reaches your inbox before seven."
RIGHTS = "Nothing on this site may be copied without the written consent of the Harbour Mail."
VALLEY_RIGHTS = "The Valley Post answers for no text that readers send to the newsroom."
# A list is left out before anything is known.
MENU = "Home\n\nWeather\n\nSports\n\nCulture"
HARBOUR, VALLEY = "harbour.example", "valley.example"
# Two blocks of pages, after which what both sites have is learned.
ENOUGH = 128


def article(number: int) -> str:
    """Return a text of six sentences that is like no other number's."""
    draw = Random(f"article {number}")
    sentences = (
        " ".join("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(12))
        for _ in range(6)
    )
    return " ".join(f"{sentence.capitalize()}." for sentence in sentences)


def page(text: str, site: str) -> str:
    """Put an article amid the passages of a site."""
    around = (MENU, MAIL, text, RIGHTS) if site == HARBOUR else (text, VALLEY_RIGHTS)
    return "\n\n".join(around)


def stored_page(number: int, site: str, name: str | None = None) -> dict[str, Any]:
    """Return the page of an article as an action has it."""
    return {
        "_id": name or f"page-{number}",
        "title": f"Article {number}",
        "text": page(article(number), site),
        "url": f"https://www.{site}/{number}",
        "published_at": "2026-01-01",
    }


def feed_pages(es: Elasticsearch, name: Names) -> tuple[str, str]:
    """Make an index of pages, and its forest: `early` came before anything was learned, `late` after it.

    Both have the same article, on different sites.
    """
    index, forest = name("pages"), name("forest")
    pages = [stored_page(number, (HARBOUR, VALLEY)[number % 2]) for number in range(1, ENOUGH)]
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [stored_page(0, HARBOUR, "early"), *pages])
        feed(es, dedup, index, [stored_page(0, VALLEY, "late")])
    return index, forest
