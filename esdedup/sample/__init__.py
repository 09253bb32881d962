"""A small corpus for the demo and for tests: invented news, reprinted by invented media.

Every story is written from a grammar (`stories`), edited when it is reprinted (`reprints`), and spread
over outlets and weeks (`spread`). All facts, people, companies, places and media are invented.

It is in the wheel, so that `esdedup demo` has articles without a download. The
grammar takes 144 KB of the wheel; the articles written from it are 3.9 MB, 0.8 MB with gzip.

Pure but for reading its own grammar: no network, clock or environment. May import no other room; only the
command line and `plan/` import this one.
"""

import dataclasses
import itertools
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from esdedup.sample import spread
from esdedup.sample.reprints import Newsroom
from esdedup.sample.stories import LANGUAGES, Plot, Story, bulletins, plots, tell

END = datetime(2026, 10, 6, 6, 0, tzinfo=UTC)
"""The default end of the corpus; fixed, so that every demo shows the same articles."""

COUNT = 3_000
_MOST_SLUG_WORDS = 8


@dataclasses.dataclass(frozen=True)
class Sample:
    """An article, and the number of its story: the cluster that it belongs to."""

    story: int
    article: dict[str, Any]


def articles(count: int = COUNT, *, seed: int = 2026, end: datetime = END) -> Iterator[dict[str, Any]]:
    """Yield articles of the five weeks before `end` in the order of their publication.

    The same for the same arguments. Half of them are in Chinese, half in English.
    """
    for sample in samples(count, seed=seed, end=end):
        yield sample.article


def samples(count: int = COUNT, *, seed: int = 2026, end: datetime = END) -> list[Sample]:
    """Return what `articles` yields, each with its story."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    printed = sorted(_printed(count, end.astimezone(UTC), chance), key=lambda each: each[1]["published_at"])
    return [
        Sample(story, {"id": f"sample-{number:04d}", **article})
        for number, (story, article) in enumerate(printed, 1)
    ]


_Printed = tuple[int, dict[str, Any]]


def _printed(count: int, end: datetime, chance: random.Random) -> list[_Printed]:
    """Return the articles in the order of their stories, without ids."""
    press, numbers = spread.outlets(), itertools.count(1)
    found: dict[str, list[_Printed]] = {language: [] for language in LANGUAGES}
    for language, kinds in bulletins().items():
        for plot in kinds:
            for when in spread.bulletin_moments(plot, count, end, chance):
                story = tell(next(numbers), plot, when=when, chance=chance)
                found[language] += _copies(story, spread.bulletin_size(chance), press[language], end, chance)
    dealt = {language: _dealt(each, chance) for language, each in plots().items()}
    for size in spread.sizes(count, chance):
        if sum(map(len, found.values())) >= count:
            break
        language = min(LANGUAGES, key=lambda each: len(found[each]))
        when = spread.beginning(end, chance)
        story = tell(next(numbers), next(dealt[language]), when=when, chance=chance)
        found[language] += _copies(story, size, press[language], end, chance)
    return list(itertools.chain.from_iterable(found.values()))[:count]


def _dealt(found: list[Plot], chance: random.Random) -> Iterator[Plot]:
    """Yield plots without end, each as often as the others."""
    while True:
        yield from chance.sample(found, len(found))


def _copies(
    story: Story, size: int, press: list[spread.Outlet], end: datetime, chance: random.Random
) -> Iterator[_Printed]:
    origin, *others = spread.papers(size, press, chance)
    first, *later = spread.moments(size, story.when, end, chance)
    newsroom = Newsroom(story, origin, chance)
    yield story.number, _article(newsroom.first(), origin, first, chance)
    for outlet, moment in zip(others, later, strict=True):
        yield story.number, _article(newsroom.again(outlet), outlet, moment, chance)


def _article(
    printed: tuple[str, str], outlet: spread.Outlet, moment: datetime, chance: random.Random
) -> dict[str, Any]:
    title, text = printed
    # A Chinese title has none.
    words = re.findall("[a-z]+", title.lower())[:_MOST_SLUG_WORDS]
    path = "-".join([*words, str(chance.randrange(10**6, 10**7))])
    return {
        "title": title,
        "text": text,
        "source": outlet.name,
        "published_at": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "url": f"https://{outlet.domain}/{moment:%Y/%m/%d}/{path}",
    }
