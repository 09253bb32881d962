"""Pages of many sites as a crawler brings them, with what is known to be true of them."""

import dataclasses
import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from benchmarks.day.designs import Design, Link, Page, Recent
from benchmarks.day.stories import Story, Version, original, reprint, tell
from benchmarks.day.wording import SCRIPTS, Language

BEGINNING = datetime(2026, 3, 2, tzinfo=UTC)
# The pages of a day are spread over more time than nodes live, so that some expire.
LENGTH = timedelta(days=10)
RETENTION = timedelta(days=3)
"""Reprints come within half of it."""

# Shares of the sites by language, in the order of `SCRIPTS`.
_LANGUAGES = (0.32, 0.32, 0.08, 0.08, 0.06, 0.05, 0.05, 0.04)
# Sites by size: the share of all pages falls with the rank.
_FLATTENED_RANKS, _EXPONENT = 5, 0.9
# Shares of the sites: new ones, and those that change their design on the way; when, as shares of all time.
_NEW, _REDESIGNED = 0.2, 0.5
_NEW_AT, _REDESIGNED_AT = (0.15, 0.6), (0.35, 0.85)
# Shares of the stories that only one site has; of the others, how fast larger numbers of sites get rarer.
_ALONE, _TAIL, _MOST_SITES = 0.6, 1.35, 40
# Shares of the pages: a bulletin with new numbers, a page without its article, one that is fetched again.
_BULLETINS, _LOST, _AGAIN = 0.04, 0.01, 0.01
_MEAN_LAG_MINUTES = 240


@dataclasses.dataclass(frozen=True, kw_only=True)
class CrawledPage:
    number: int
    when: datetime
    site: str
    title: str
    text: str
    # The article alone; empty if it is lost.
    body: str
    # Equal for versions of one story.
    story: int
    # How many pages of the site with this design were before.
    age: int
    # Of the site: 0 at first, 1 after a redesign.
    design: int
    kind: str

    @property
    def article(self) -> dict[str, str]:
        return {
            "id": str(self.number),
            "title": self.title,
            "text": self.text,
            "source": self.site,
            "published_at": self.when.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }


class Site:
    """A site, as its pages come."""

    def __init__(self, number: int, language: Language, chance: random.Random) -> None:
        self.name = f"site-{number}"
        self.language = language
        self.opens_at = chance.uniform(*_NEW_AT) if chance.random() < _NEW else 0.0
        self.changes_at = chance.uniform(*_REDESIGNED_AT) if chance.random() < _REDESIGNED else 2.0
        self.designs = [Design(language, chance), Design(language, chance)]
        # Pages printed with each.
        self.printed = [0, 0]
        self.recent = Recent()
        # What it prints every day, with new numbers.
        self.bulletin = tell(language, chance)


@dataclasses.dataclass(frozen=True, order=True)
class _Planned:
    """A version that a site will print."""

    # A share of all time.
    at: float
    order: int
    site: int = dataclasses.field(compare=False)
    story: int = dataclasses.field(compare=False)
    version: Version = dataclasses.field(compare=False)
    kind: str = dataclasses.field(compare=False)


def crawl(count: int, *, sites: int = 200, seed: int = 14) -> Iterator[CrawledPage]:
    """Yield pages in the order of their times: the same for the same arguments."""
    chance = random.Random(seed)
    held = _sites(sites, seed, chance)
    # Printing draws from a chance of its own, so that planning does not depend on it.
    printing = random.Random(seed + 1)
    for number, planned in enumerate(sorted(itertools.islice(_plan(held, chance), count))):
        yield _printed(number, planned, held[planned.site], printing)


def _sites(count: int, seed: int, chance: random.Random) -> list[Site]:
    languages = [Language(name, seed) for name in SCRIPTS]
    # Large and small sites of each language.
    wanted = [
        language
        for language, share in zip(languages, _LANGUAGES, strict=True)
        for _ in range(round(share * count))
    ]
    wanted += [languages[0]] * (count - len(wanted))
    chance.shuffle(wanted)
    return [Site(number, language, chance) for number, language in enumerate(wanted[:count])]


def _plan(sites: list[Site], chance: random.Random) -> Iterator[_Planned]:
    """Yield what sites will print, story after story."""
    order = itertools.count()
    weights = [1 / (rank + _FLATTENED_RANKS) ** _EXPONENT for rank in range(len(sites))]
    by_language: dict[str, list[int]] = {}
    for place, site in enumerate(sites):
        by_language.setdefault(site.language.name, []).append(place)
    lag = _MEAN_LAG_MINUTES / (LENGTH / timedelta(minutes=1))
    most_lag = RETENTION / LENGTH / 2
    for story in itertools.count():
        first = chance.choices(range(len(sites)), weights)[0]
        language = sites[first].language
        at, drawn = chance.random(), chance.random()
        if drawn < _LOST:
            lost = Version(title=language.phrase(chance, 5, 12), paragraphs=())
            printed = [(at, first, lost, "lost")]
        elif drawn < _LOST + _BULLETINS:
            printed = [(at, first, _with_new_numbers(sites[first].bulletin, chance), "bulletin")]
        else:
            told = tell(language, chance)
            printed = [(at, first, original(told), "article")]
            others = [each for each in by_language[language.name] if each != first]
            for other in _drawn(others, weights, _reprints(chance), chance):
                later = at + min(chance.expovariate(1 / lag), most_lag)
                printed.append((later, other, reprint(told, chance), "article"))
            printed += [
                (when + chance.uniform(0, lag), site, version, "again")
                for when, site, version, _ in printed
                if chance.random() < _AGAIN
            ]
        for when, place, version, kind in printed:
            if sites[place].opens_at <= when < 1:
                yield _Planned(when, next(order), place, story, version, kind)


def _drawn(sites: list[int], weights: list[float], count: int, chance: random.Random) -> list[int]:
    """Draw sites, each once, large ones rather than small ones."""
    if not count:
        return []
    ranks = {each: chance.random() ** (1 / weights[each]) for each in sites}
    return sorted(sites, key=ranks.__getitem__, reverse=True)[:count]


def _reprints(chance: random.Random) -> int:
    if chance.random() < _ALONE:
        return 0
    return min(int(chance.paretovariate(_TAIL)), _MOST_SITES)


def _with_new_numbers(story: Story, chance: random.Random) -> Version:
    """Return a bulletin of this day: the words of the story, with other numbers."""
    sentences = [
        f"{sentence[:-1]} {chance.randint(1, 9_999)}{sentence[-1]}" for sentence in story.sentences[:6]
    ]
    return Version(title=story.title, paragraphs=[sentences])


def _printed(number: int, planned: _Planned, site: Site, chance: random.Random) -> CrawledPage:
    design = int(planned.at >= site.changes_at)
    when = BEGINNING + planned.at * LENGTH
    version = planned.version
    page = Page(version=version, date=f"{when:%Y-%m-%d %H:%M}", recent=site.recent)
    text, body = site.designs[design].print(page, chance)
    if version.paragraphs:
        site.recent.links.append(Link(version.title, version.paragraphs[0][0]))
    site.printed[design] += 1
    return CrawledPage(
        number=number,
        when=when,
        site=site.name,
        title=version.title,
        text=text,
        body=body,
        story=planned.story,
        age=site.printed[design] - 1,
        design=design,
        kind=planned.kind,
    )
