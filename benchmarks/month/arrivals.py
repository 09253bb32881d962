"""Generates pages with a daily rhythm, reprints, boilerplate, repeated fetches, and a hot story."""

import dataclasses
import heapq
import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from benchmarks.day.crawl import Design, Link, Page, Recent
from benchmarks.day.stories import SCRIPTS, Language, Story, Version, original, reprint, tell

BEGINNING = datetime(2026, 3, 2, tzinfo=UTC)
_DAY = timedelta(days=1)
# The relative number of articles in each hour of a day.
_RHYTHM = (3, 2, 1, 1, 1, 2, 4, 6, 8, 9, 9, 8, 8, 8, 8, 8, 7, 7, 6, 5, 5, 5, 4, 4)
_SITES = 200
# The share of stories that are reprinted; the Pareto exponent and the maximum of the number of reprints.
_REPRINTED, _TAIL, _MOST_REPRINTS = 0.3, 1.4, 40
_MEAN_LAG = timedelta(hours=6)
_MOST_LAG = timedelta(days=3)
# The share of pages that are fetched again unchanged.
_AGAIN = 0.02
HOT_DAY = 17
"""The day, counted from 0, on which many sites print one story."""
_HOT_HOUR = timedelta(hours=9)
# The hot story's articles as a share of a day's articles, and the time over which they appear.
_HOT_SHARE, _HOT_TIME = 0.2, timedelta(hours=30)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arrival:
    """A page, and when it arrives."""

    when: datetime
    article: dict[str, str]

    @property
    def when_ms(self) -> int:
        return int(self.when.timestamp() * 1_000)


class _Site:
    def __init__(self, number: int, language: Language, chance: random.Random) -> None:
        self.name = f"site-{number}"
        self.design = Design(language, chance)
        self.recent = Recent()


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Planned:
    when: datetime
    site: _Site
    version: Version
    # The page as it was printed the first time, if it is fetched again.
    printed: dict[str, str] | None = None


class Month:
    """Generates the arrivals of each day. The same arguments give the same arrivals."""

    def __init__(self, articles_a_day: int, *, seed: int = 16) -> None:
        self._articles_a_day = articles_a_day
        self._chance = chance = random.Random(seed)
        languages = [Language(name, seed) for name in SCRIPTS]
        self._sites: dict[Language, list[_Site]] = {language: [] for language in languages}
        for number in range(_SITES):
            # The first two languages have at least half of the sites.
            language = languages[number % 2] if number % 4 < 2 else languages[number % len(languages)]
            self._sites[language].append(_Site(number, language, chance))
        self._languages = [each for each, sites in self._sites.items() for _ in sites]
        self._number = 0

    def days(self, count: int) -> Iterator[list[Arrival]]:
        """Yield the arrivals of each day, in order."""
        # A heap ordered by time, then by the order of planning.
        waiting: list[tuple[datetime, int, _Planned]] = []
        order = itertools.count()

        def wait(planned: _Planned) -> None:
            heapq.heappush(waiting, (planned.when, next(order), planned))

        mean = self._mean_copies()
        for number in range(count):
            day = BEGINNING + number * _DAY
            for _ in range(max(1, round(self._articles_a_day / mean))):
                for planned in self._story(day):
                    wait(planned)
            for planned in self._hot_story(day) if number == HOT_DAY else ():
                wait(planned)
            arrivals = []
            while waiting and waiting[0][0] < day + _DAY:
                planned = heapq.heappop(waiting)[-1]
                arrivals.append(self._printed(planned))
                if planned.printed is None and self._chance.random() < _AGAIN:
                    again = planned.when + self._lag()
                    wait(dataclasses.replace(planned, when=again, printed=arrivals[-1].article))
            yield arrivals

    def _mean_copies(self) -> float:
        chance = random.Random(0)
        copies = [1 + self._reprints(chance) for _ in range(20_000)]
        return sum(copies) / len(copies) * (1 + _AGAIN)

    def _reprints(self, chance: random.Random) -> int:
        if chance.random() >= _REPRINTED:
            return 0
        return min(int(chance.paretovariate(_TAIL)), _MOST_REPRINTS)

    def _story(self, day: datetime) -> Iterator[_Planned]:
        chance = self._chance
        language = chance.choice(self._languages)
        story, when = tell(language, chance), self._moment(day)
        first, *others = self._some_sites(language, 1 + self._reprints(chance))
        yield _Planned(when=when, site=first, version=original(story))
        for site in others:
            yield _Planned(when=when + self._lag(), site=site, version=reprint(story, chance))

    def _hot_story(self, day: datetime) -> Iterator[_Planned]:
        chance, language = self._chance, self._languages[0]
        story: Story = tell(language, chance)
        for _ in range(max(1, round(_HOT_SHARE * self._articles_a_day))):
            when = day + _HOT_HOUR + chance.random() ** 2 * _HOT_TIME
            site = chance.choice(self._sites[language])
            yield _Planned(when=when, site=site, version=reprint(story, chance))

    def _some_sites(self, language: Language, count: int) -> list[_Site]:
        sites = self._sites[language]
        return self._chance.sample(sites, min(count, len(sites)))

    def _moment(self, day: datetime) -> datetime:
        (hour,) = self._chance.choices(range(len(_RHYTHM)), _RHYTHM)
        return day + timedelta(hours=hour + self._chance.random())

    def _lag(self) -> timedelta:
        return min(self._chance.expovariate(1.0) * _MEAN_LAG, _MOST_LAG)

    def _printed(self, planned: _Planned) -> Arrival:
        self._number += 1
        article = {"id": str(self._number)}
        if planned.printed is not None:
            return Arrival(when=planned.when, article=planned.printed | article)
        site, version = planned.site, planned.version
        page = Page(version=version, date=f"{planned.when:%Y-%m-%d %H:%M}", recent=site.recent)
        text, _ = site.design.print(page, self._chance)
        site.recent.links.append(Link(version.title, version.paragraphs[0][0]))
        article |= {
            "title": version.title,
            "text": text,
            "source": site.name,
            "published_at": planned.when.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return Arrival(when=planned.when, article=article)
