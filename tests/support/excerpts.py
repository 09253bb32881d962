"""Stories with excerpts too short to join a cluster, and articles with a notice instead of their text."""

from random import Random
from string import ascii_lowercase
from typing import Any


def sentences(seed: str, number: int) -> list[str]:
    """Return sentences of ten random words; one in each half has 14, so that excerpts are found."""
    chance = Random(seed)
    lengths = [14 if at in {number // 4, 3 * number // 4} else 10 for at in range(number)]
    words = [["".join(chance.choices(ascii_lowercase, k=7)) for _ in range(each)] for each in lengths]
    return [f"{' '.join(each).capitalize()}." for each in words]


def articles() -> list[dict[str, Any]]:
    """Return a story and its copy, two excerpts with 40 % of the story, a copy of an excerpt, and others.

    Tests may delete the story `lost`, of which `lost-excerpt` is an excerpt.
    """
    story, other, lost = sentences("story 2", 40), sentences("other", 40), sentences("lost 2", 40)
    texts = {
        "story": story,
        "story-copy": story,
        "excerpt": story[2:18],
        "excerpt-copy": story[2:18],
        "second-excerpt": story[22:38],
        "other": other,
        "lost": lost,
        "lost-excerpt": lost[2:18],
    }
    return [
        {
            "_id": name,
            "title": f"Of the {name}",
            "text": " ".join(text),
            "source": f"Post of {name}",
            "url": f"https://{name}.example/",
            "published_at": f"2026-09-0{day}T10:00:00Z",
        }
        for day, (name, text) in enumerate(texts.items(), 1)
    ]


def placeholders() -> list[dict[str, Any]]:
    """Return articles of five sites, all with the same notice instead of their text."""
    titles = [
        "Ferry to the islands sails again",
        "Council argues about parking fees",
        "Goalkeeper breaks two fingers",
        "Wheat prices fall after wet summer",
        "Museum buys rare clock",
    ]
    text = "You have read all of your free articles this month. Subscribe for one dollar a week to read on."
    return [
        {
            "_id": f"wall-{at}",
            "title": title,
            "text": text,
            "source": f"Post {at}",
            "url": f"https://wall-{at}.example/",
            "published_at": f"2026-09-1{at}T10:00:00Z",
        }
        for at, title in enumerate(titles)
    ]
