"""Writes a small corpus for the demo and for tests: invented news, reprinted by invented media.

Every story is written from a grammar (`stories`), edited when it is reprinted (`reprints`), and spread
over outlets and weeks (here). All facts, people, companies, places and media are invented.

``python -m tests.sample`` writes the sample articles that are shipped in the package `esdedup`.
"""

import dataclasses
import itertools
import math
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.sample.reprints import Newsroom, Outlet, outlets
from tests.sample.stories import LANGUAGES, Plot, Story, bulletins, plots, tell

END = datetime(2026, 10, 6, 6, 0, tzinfo=UTC)
"""The default end of the corpus; fixed, so that every demo shows the same articles."""

COUNT = 3_000
_MOST_SLUG_WORDS = 8
_WEEKS = 5
# The largest story of a language has one in `_LARGEST` articles of the corpus; other large stories have from
# one in `_LARGE_LEAST` to one in `_LARGE_MOST`.
_LARGEST, _LARGE_LEAST, _LARGE_MOST = 20, 100, 50
# The percentages of small, medium and large stories.
_WEIGHTS = (60, 36, 4)
# No story begins closer to the end than this, so that every story can be reprinted.
_LAST_BEGINNING = timedelta(hours=12)
# The mean delays of early and late reprints after the original, and the share of late reprints.
_SOON_HOURS, _LATE_HOURS, _LATE = 5.0, 36.0, 0.25
# Revived stories: the minimum number of copies of a story that may be revived, the share of such stories that
# are revived, the share of their copies that are printed late, and the delay.
_LEAST_REVIVED, _REVIVED, _REVIVED_COPIES, _REVIVED_AFTER = 5, 0.15, 0.25, timedelta(days=7)
_FROM_AGENCY = 0.7
# The hour (UTC) at which the night ends, and the share of articles due at night that are printed at night.
_NIGHT_ENDS, _NIGHT_WORK = 5, 0.2
_WORKDAYS = 5
# The percentages of bulletins that are printed once, twice and so on.
_BULLETIN_COPIES = (50, 30, 15, 5)
# A corpus of at least this many articles has all bulletins of all days.
_WHOLE = 3_000


@dataclasses.dataclass(frozen=True)
class Sample:
    """An article, and the number of its story. The articles of a story should form a cluster."""

    story: int
    article: dict[str, Any]


def articles(count: int = COUNT, *, seed: int = 2026, end: datetime = END) -> Iterator[dict[str, Any]]:
    """Yield articles of the five weeks before `end` in the order of their publication.

    The same arguments give the same articles. Half of them are in Chinese, half in English.
    """
    for sample in samples(count, seed=seed, end=end):
        yield sample.article


def samples(count: int = COUNT, *, seed: int = 2026, end: datetime = END) -> list[Sample]:
    """Return the articles that `articles` yields, each with its story."""
    chance = random.Random(seed)
    printed = sorted(_printed(count, end.astimezone(UTC), chance), key=lambda each: each[1]["published_at"])
    return [
        Sample(story, {"id": f"sample-{number:04d}", **article})
        for number, (story, article) in enumerate(printed, 1)
    ]


_Printed = tuple[int, dict[str, Any]]


def _printed(count: int, end: datetime, chance: random.Random) -> list[_Printed]:
    """Return the articles in the order of their stories, without ids."""
    press, numbers = outlets(), itertools.count(1)
    found: dict[str, list[_Printed]] = {language: [] for language in LANGUAGES}
    for language, kinds in bulletins().items():
        for plot in kinds:
            for when in _bulletin_moments(plot, count, end, chance):
                story = tell(next(numbers), plot, when=when, chance=chance)
                (size,) = chance.choices(range(1, 1 + len(_BULLETIN_COPIES)), _BULLETIN_COPIES)
                found[language] += _copies(story, size, press[language], end, chance)
    dealt = {language: _dealt(each, chance) for language, each in plots().items()}
    for size in _sizes(count, chance):
        if sum(map(len, found.values())) >= count:
            break
        language = min(LANGUAGES, key=lambda each: len(found[each]))
        weeks = timedelta(weeks=_WEEKS)
        when = _awake(end - weeks + chance.random() * (weeks - _LAST_BEGINNING), chance)
        story = tell(next(numbers), next(dealt[language]), when=when, chance=chance)
        found[language] += _copies(story, size, press[language], end, chance)
    return list(itertools.chain.from_iterable(found.values()))[:count]


def _dealt(found: list[Plot], chance: random.Random) -> Iterator[Plot]:
    """Yield plots in random order, endlessly, each equally often."""
    while True:
        yield from chance.sample(found, len(found))


def _copies(
    story: Story, size: int, press: list[Outlet], end: datetime, chance: random.Random
) -> Iterator[_Printed]:
    origin, *others = _papers(size, press, chance)
    first, *later = _moments(size, story.when, end, chance)
    newsroom = Newsroom(story, origin, chance)
    yield story.number, _article(newsroom.original(), origin, first, chance)
    for outlet, moment in zip(others, later, strict=True):
        yield story.number, _article(newsroom.reprint(outlet), outlet, moment, chance)


def _article(
    printed: tuple[str, str], outlet: Outlet, moment: datetime, chance: random.Random
) -> dict[str, Any]:
    title, text = printed
    # A Chinese title has no words that match.
    words = re.findall("[a-z]+", title.lower())[:_MOST_SLUG_WORDS]
    path = "-".join([*words, str(chance.randrange(10**6, 10**7))])
    return {
        "title": title,
        "text": text,
        "source": outlet.name,
        "published_at": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "url": f"https://{outlet.domain}/{moment:%Y/%m/%d}/{path}",
    }


def _sizes(count: int, chance: random.Random) -> Iterator[int]:
    """Yield the number of copies of each story, endlessly, for a corpus of `count` articles."""
    yield from [max(1, count // _LARGEST)] * len(LANGUAGES)
    while True:
        small = chance.choices((1, 2, 3), (3, 2, 1))[0]
        medium = round(chance.triangular(4, 15, 4))
        large = max(4, chance.randint(count // _LARGE_LEAST, count // _LARGE_MOST))
        yield chance.choices((small, medium, large), _WEIGHTS)[0]


def _moments(size: int, first: datetime, end: datetime, chance: random.Random) -> list[datetime]:
    """Return when the copies of a story are printed: one at `first`, the others at a decreasing rate."""
    is_revived = size >= _LEAST_REVIVED and chance.random() < _REVIVED
    # A story with many copies is printed for longer.
    longer = math.sqrt(max(1.0, size / 10))
    found = [first]
    for _ in range(size - 1):
        mean_hours = longer * (_LATE_HOURS if chance.random() < _LATE else _SOON_HOURS)
        moment = _awake(first + timedelta(hours=chance.expovariate(1 / mean_hours)), chance)
        if is_revived and chance.random() < _REVIVED_COPIES:
            moment += _REVIVED_AFTER
        found.append(moment if moment < end else first + chance.random() * (end - first))
    return found


def _bulletin_moments(plot: Plot, count: int, end: datetime, chance: random.Random) -> Iterator[datetime]:
    """Yield the times at which a bulletin appears: every day, or less often in a small corpus."""
    assert plot.hour is not None
    start = (end - timedelta(weeks=_WEEKS)).replace(minute=0, second=0, microsecond=0)
    for day in range(_WEEKS * 7 + 1):
        moment = start.replace(hour=plot.hour) + timedelta(days=day, minutes=chance.randrange(20))
        is_included = chance.random() < count / _WHOLE
        if (
            start < moment < end
            and is_included
            and not (plot.only_workdays and moment.weekday() >= _WORKDAYS)
        ):
            yield moment


def _papers(size: int, found: list[Outlet], chance: random.Random) -> list[Outlet]:
    """Return the outlets of a story's copies; no outlet gets a second copy before all have one."""
    taken: list[Outlet] = []
    while len(taken) < size:
        taken += chance.sample(found, len(found))
    # Most reprinted stories come from an agency.
    if size > 1 and chance.random() < _FROM_AGENCY:
        agency = next(place for place, outlet in enumerate(taken) if outlet.is_agency)
        taken[0], taken[agency] = taken[agency], taken[0]
    return taken[:size]


def _awake(moment: datetime, chance: random.Random) -> datetime:
    """Return a time; most times at night are moved to the morning."""
    if moment.hour < _NIGHT_ENDS and chance.random() > _NIGHT_WORK:
        return moment + timedelta(hours=_NIGHT_ENDS)
    return moment
