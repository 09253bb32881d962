"""The articles of the soak: stories in versions, each amid the boilerplate of one of many sites."""

import functools
import random
from collections.abc import Iterator
from typing import Any

from tests.support.stream import words

_SITES = 40
_MENU = ("Home", "Politics", "Weather", "Sport", "Culture", "Contact us", "Sign in")
_NOTICES = 5
_SENTENCES = 11
_WORDS = 11
# So far back a version's story and a repeated page are.
_MOST_BACK = 2_000
_VERSIONS, _REPEATED = 0.35, 0.03


def articles(count: int, *, seed: int) -> Iterator[dict[str, Any]]:
    """Yield articles with an id, a text, and an address.

    Of three, one is a new version of a story that came before, on whatever site; a few repeat a whole page.
    Versions differ in their words, not only in what surrounds them. So nearly every page that is not repeated
    makes a node of its own, which keeps its place among all arrivals.
    """
    for number in range(count):
        chance = random.Random(f"{seed} kind {number}")
        origin, kind = max(0, number - chance.randrange(1, _MOST_BACK)), chance.random()
        if kind < _REPEATED:
            page = _page(seed, origin, version=origin)
        elif kind < _REPEATED + _VERSIONS:
            page = _page(seed, origin, version=number)
        else:
            page = _page(seed, number, version=number)
        yield {"_id": f"article-{number:06d}", **page}


def _page(seed: int, story: int, *, version: int) -> dict[str, str]:
    """Return a version of a story on the site that the version's number gives."""
    chance = random.Random(f"{seed} version {version}")
    site = chance.randrange(_SITES)
    sentences = [list(each) for each in _story(seed, story)]
    if version != story:
        del sentences[chance.randrange(len(sentences))]
        sentences[chance.randrange(len(sentences))][chance.randrange(_WORDS)] = chance.choice(words())
    text = " ".join(f"{' '.join(each).capitalize()}." for each in sentences)
    notices = [f"{_sentence(f'{seed} site {site} {each}')}." for each in range(_NOTICES)]
    return {
        "text": "\n".join([*_MENU[site % 4 :], text, *notices]),
        "url": f"https://site-{site}.example/{version}",
    }


@functools.lru_cache(maxsize=2 * _MOST_BACK)
def _story(seed: int, number: int) -> tuple[tuple[str, ...], ...]:
    chance = random.Random(f"{seed} story {number}")
    return tuple(tuple(chance.choices(words(), k=_WORDS)) for _ in range(_SENTENCES))


@functools.cache
def _sentence(seed: str) -> str:
    return " ".join(random.Random(seed).choices(words(), k=_WORDS)).capitalize()
