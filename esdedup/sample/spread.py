"""When stories are printed, how often, and by which outlets."""

import dataclasses
import math
import random
from collections.abc import Iterator
from datetime import datetime, timedelta

from esdedup.sample.stories import LANGUAGES, Plot, load

WEEKS = 5
# One in so many articles is of the largest story of each language, or of a large story (smallest, largest).
_LARGEST, _LARGE_LEAST, _LARGE_MOST = 20, 100, 50
# How often stories are small, medium and large, in per cent.
_WEIGHTS = (60, 36, 4)
# No story begins this shortly before the end, so that each can be reprinted.
_LAST_BEGINNING = timedelta(hours=12)
# The mean delays of soon and of late reprints after the original, and the share of late ones.
_SOON_HOURS, _LATE_HOURS, _LATE = 5.0, 36.0, 0.25
# Of the stories with at least so many copies: the share revived, the share of their copies, and the delay.
_LEAST_REVIVED, _REVIVED, _REVIVED_COPIES, _REVIVED_AFTER = 5, 0.15, 0.25, timedelta(days=7)
_FROM_AGENCY = 0.7
# The hour (UTC) at which night ends, and the share that is printed at night all the same.
_NIGHT_ENDS, _NIGHT_WORK = 5, 0.2
_WORKDAYS = 5
_BULLETIN_COPIES = (50, 30, 15, 5)
# A corpus of at least so many articles has every bulletin of every day.
_WHOLE = 3_000


@dataclasses.dataclass(frozen=True)
class Style:
    """What the outlets of one language have in common."""

    wire_lines: list[str]
    titles: list[str]


@dataclasses.dataclass(frozen=True)
class Outlet:
    """A paper, a station, a site, or an agency."""

    name: str
    domain: str
    # Opens texts of its own.
    line: str
    footers: list[str]
    style: Style
    is_agency: bool


def outlets() -> dict[str, list[Outlet]]:
    """Return the outlets by language."""
    found: dict[str, list[Outlet]] = {}
    for language, named in load("outlets").items():
        style = Style(named["wire"], named["titles"])
        found[language] = [
            Outlet(**each, style=style, is_agency=kind == "agencies")
            for kind in ("agencies", "papers")
            for each in named[kind]
        ]
    return found


def sizes(count: int, chance: random.Random) -> Iterator[int]:
    """Yield without end how many copies each story has, in a corpus of `count` articles."""
    yield from [max(1, count // _LARGEST)] * len(LANGUAGES)
    while True:
        small = chance.choices((1, 2, 3), (3, 2, 1))[0]
        medium = round(chance.triangular(4, 15, 4))
        large = max(4, chance.randint(count // _LARGE_LEAST, count // _LARGE_MOST))
        yield chance.choices((small, medium, large), _WEIGHTS)[0]


def beginning(end: datetime, chance: random.Random) -> datetime:
    """Return when a story goes out first."""
    weeks = timedelta(weeks=WEEKS)
    return _awake(end - weeks + chance.random() * (weeks - _LAST_BEGINNING), chance)


def moments(size: int, first: datetime, end: datetime, chance: random.Random) -> list[datetime]:
    """Return when the copies of a story are printed: one at `first`, then fewer and fewer."""
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


def bulletin_moments(plot: Plot, count: int, end: datetime, chance: random.Random) -> Iterator[datetime]:
    """Yield when a bulletin appears: day by day, with days left out in a small corpus."""
    assert plot.hour is not None
    start = (end - timedelta(weeks=WEEKS)).replace(minute=0, second=0, microsecond=0)
    for day in range(WEEKS * 7 + 1):
        moment = start.replace(hour=plot.hour) + timedelta(days=day, minutes=chance.randrange(20))
        is_wanted = chance.random() < count / _WHOLE
        if start < moment < end and is_wanted and not (plot.only_workdays and moment.weekday() >= _WORKDAYS):
            yield moment


def bulletin_size(chance: random.Random) -> int:
    """Return how often one day's bulletin is printed."""
    return chance.choices(range(1, 1 + len(_BULLETIN_COPIES)), _BULLETIN_COPIES)[0]


def papers(size: int, found: list[Outlet], chance: random.Random) -> list[Outlet]:
    """Return the outlets of a story's copies; none comes twice before all have come once."""
    taken: list[Outlet] = []
    while len(taken) < size:
        taken += chance.sample(found, len(found))
    # Most reprinted stories come from an agency.
    if size > 1 and chance.random() < _FROM_AGENCY:
        agency = next(place for place, outlet in enumerate(taken) if outlet.is_agency)
        taken[0], taken[agency] = taken[agency], taken[0]
    return taken[:size]


def _awake(moment: datetime, chance: random.Random) -> datetime:
    """Move most moments at night to the morning."""
    if moment.hour < _NIGHT_ENDS and chance.random() > _NIGHT_WORK:
        return moment + timedelta(hours=_NIGHT_ENDS)
    return moment
