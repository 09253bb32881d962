"""Invents the pages that a crawler fetches in a day: sites, their designs, and the stories they print."""

import collections
import dataclasses
import itertools
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from benchmarks.day.stories import SCRIPTS, Language, Story, Version, original, reprint, tell

# The shares of designs with very little boilerplate, and with boilerplate that is longer than most articles.
_CLEAN, _HEAVY = 0.33, 0.18
# The probabilities that a design has certain kinds of boilerplate, or that these have certain forms.
_BANNER, _COMMON_BANNER, _MENU_IN_LINES, _LINKS_BEFORE, _WITH_LEADS = 0.7, 0.6, 0.5, 0.2, 0.2
_PAYWALL, _COMMENTS, _READ_ALSO, _ADVERTISED = 0.1, 0.25, 0.3, 0.4
# The share of pages behind a paywall at sites that have one, and their number of free paragraphs.
_PAYWALLED, _FREE_PARAGRAPHS = 0.6, 2
# Articles of at least this many paragraphs are interrupted by boilerplate.
_INTERRUPTED_PARAGRAPHS = 3
# The minimum and maximum number of pages for which a list of related articles stays the same.
_LIST_PAGES = (20, 70)
_AUTHORS = 25
_TEASER_CHARACTERS = 70
# The number of latest articles of a site to which its pages link.
_LATEST = 60


@dataclasses.dataclass(frozen=True)
class Link:
    """An article to which other pages link."""

    title: str
    lead: str


class Recent:
    """The latest articles of a site, and the lists of them on its pages."""

    def __init__(self) -> None:
        self.links: collections.deque[Link] = collections.deque(maxlen=_LATEST)
        self._lists: dict[int, tuple[int, list[Link]]] = {}

    def some(self, number: int, count: int, chance: random.Random) -> list[Link]:
        """Return the links of a numbered block, which stay the same for a few dozen pages."""
        left, links = self._lists.get(number, (0, []))
        if not left:
            left, links = chance.randint(*_LIST_PAGES), self.draw(count, chance)
        self._lists[number] = left - 1, links
        return links

    def draw(self, count: int, chance: random.Random) -> list[Link]:
        return chance.sample(list(self.links), min(count, len(self.links)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
    """The content of one page."""

    # The article as the site prints it, without paragraphs if the page lacks its article.
    version: Version
    # The date as the site prints it.
    date: str
    recent: Recent


_Block = Callable[[Page, random.Random], list[str]]


class Design:
    """The passages of a site, and their places on a page."""

    def __init__(self, language: Language, chance: random.Random) -> None:
        self._language = language
        drawn = chance.random()
        is_clean, is_heavy = drawn < _CLEAN, drawn > 1 - _HEAVY
        self._line = chance.choice(("\n", "\n\n"))
        self._authors = [f"{language.word(chance)} {language.word(chance)}" for _ in range(_AUTHORS)]
        self._byline = [language.phrase(chance, 1, 3) for _ in range(chance.randint(1, 4))]
        self._advertisement = language.phrase(chance, 1, 2) if chance.random() < _ADVERTISED else None
        self._read_also = language.phrase(chance, 2, 3) if chance.random() < _READ_ALSO else None
        # The prompt to subscribe that is shown instead of the rest of an article.
        self._prompt = language.prose(chance, 2) if not is_clean and chance.random() < _PAYWALL else None
        copyright_line = f"© {language.word(chance)} {language.phrase(chance, 3, 8)}"
        self._before: list[_Block] = []
        self._after: list[_Block] = [_fixed(language.prose(chance, 1)), _fixed(copyright_line)]
        if not is_clean:
            self._add_boilerplate(chance, times=3 if is_heavy else 1)
        # Even clean designs have a line with author and date.
        self._before.append(self._line_of_author)
        if not is_clean and chance.random() < _COMMENTS:
            self._after.insert(0, self._comments)

    def print(self, page: Page, chance: random.Random) -> tuple[str, str]:
        """Return the text of a page, and the part of it that is the article."""
        version = page.version
        is_cut = self._prompt is not None and chance.random() < _PAYWALLED
        if is_cut:
            version = version.cut_to(_FREE_PARAGRAPHS)
        body = [self._language.script.after.join(each) for each in version.paragraphs]
        lines = [line for block in self._before for line in block(page, chance)]
        lines += self._interrupted(body, page, chance)
        if is_cut:
            lines.append(str(self._prompt))
        lines += [line for block in self._after for line in block(page, chance)]
        return self._line.join(lines), self._line.join(body)

    def _interrupted(self, body: list[str], page: Page, chance: random.Random) -> list[str]:
        """Return the paragraphs of an article with the site's insertions between them."""
        if len(body) < _INTERRUPTED_PARAGRAPHS:
            return body
        between = [] if self._advertisement is None else [self._advertisement]
        if self._read_also is not None:
            between += [f"{self._read_also}: {each.title}" for each in page.recent.draw(1, chance)]
        middle = len(body) // 2
        return [*body[:middle], *between, *body[middle:]]

    def _add_boilerplate(self, chance: random.Random, *, times: int) -> None:
        """Add the boilerplate that most sites put around articles, multiplied by `times`."""
        language = self._language
        menu = [language.phrase(chance, 1, 3) for _ in range(chance.randint(8, 25) * times)]
        self._before.append(_fixed(*menu) if chance.random() < _MENU_IN_LINES else _fixed(" | ".join(menu)))
        if chance.random() < _BANNER:
            is_common = chance.random() < _COMMON_BANNER
            banner = chance.choice(language.banners) if is_common else language.prose(chance, 3)
            chance.choice((self._before, self._after)).insert(0, _fixed(banner))
        for _ in range(chance.randint(1, 2) * times):
            self._after.insert(0, _fixed(language.prose(chance, chance.randint(1, 3))))
        for number in range(chance.randint(1, 2) * times):
            place = self._before if chance.random() < _LINKS_BEFORE else self._after
            place.append(
                _Links(
                    number=number,
                    heading=language.phrase(chance, 1, 3),
                    count=chance.randint(4, 10),
                    shown="leads" if chance.random() < _WITH_LEADS else chance.choice(("titles", "teasers")),
                ).lines
            )
        footer = [language.phrase(chance, 1, 3) for _ in range(chance.randint(4, 12) * times)]
        self._after.append(_fixed(*footer))

    def _line_of_author(self, page: Page, chance: random.Random) -> list[str]:
        first, *others = self._byline
        author = " ".join((chance.choice(self._authors), page.date, *others))
        return [f"{page.version.title} {first}", author]

    def _comments(self, _page: Page, chance: random.Random) -> list[str]:
        count = chance.choice((0, 0, 1, 2, 4))
        return [f"{self._language.word(chance)}: {self._language.prose(chance, 1)}" for _ in range(count)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Links:
    """A block of related articles, which stays the same for a few dozen pages."""

    # The block's number among the blocks of its site.
    number: int
    heading: str
    count: int
    # "titles" (alone), "teasers" (titles and the beginnings of leads) or "leads" (titles and whole leads).
    shown: str

    def lines(self, page: Page, chance: random.Random) -> list[str]:
        found = [self.heading]
        for link in page.recent.some(self.number, self.count, chance):
            if self.shown == "leads":
                found += [link.title, link.lead]
            elif self.shown == "teasers":
                found.append(f"{link.title} {link.lead[:_TEASER_CHARACTERS]}...")
            else:
                found.append(link.title)
        return found


def _fixed(*lines: str) -> _Block:
    def same(_page: Page, _chance: random.Random) -> list[str]:
        return list(lines)

    return same


BEGINNING = datetime(2026, 3, 2, tzinfo=UTC)
# The pages of a day are spread over more time than nodes live, so that some nodes expire.
LENGTH = timedelta(days=10)
RETENTION = timedelta(days=3)
"""Reprints appear within half of this time."""

# Shares of the sites by language, in the order of `SCRIPTS`.
_LANGUAGES = (0.32, 0.32, 0.08, 0.08, 0.06, 0.05, 0.05, 0.04)
# A site's share of all pages decreases with its rank by size, according to these parameters.
_FLATTENED_RANKS, _EXPONENT = 5, 0.9
# The shares of sites that are new, and that change their design.
_NEW, _REDESIGNED = 0.2, 0.5
# The earliest and latest time at which sites open or change their design, as shares of `LENGTH`.
_NEW_AT, _REDESIGNED_AT = (0.15, 0.6), (0.35, 0.85)
# The share of stories that only one site prints. For other stories, the Pareto exponent and the maximum of
# the number of reprints.
_ALONE, _TAIL, _MOST_SITES = 0.6, 1.35, 40
# The shares of pages that are a bulletin with new numbers, lack their article, or are fetched again.
_BULLETINS, _LOST, _AGAIN = 0.04, 0.01, 0.01
_MEAN_LAG_MINUTES = 240


@dataclasses.dataclass(frozen=True, kw_only=True)
class CrawledPage:
    number: int
    when: datetime
    site: str
    title: str
    text: str
    # The article alone; empty if the page lacks its article.
    body: str
    # The same number for all versions of one story.
    story: int
    # The number of earlier pages of the site with this design.
    age: int
    # The design of the site: 0 at first, 1 after a redesign.
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
    """A site, with a record of the pages it has printed."""

    def __init__(self, number: int, language: Language, chance: random.Random) -> None:
        self.name = f"site-{number}"
        self.language = language
        self.opens_at = chance.uniform(*_NEW_AT) if chance.random() < _NEW else 0.0
        self.changes_at = chance.uniform(*_REDESIGNED_AT) if chance.random() < _REDESIGNED else 2.0
        self.designs = [Design(language, chance), Design(language, chance)]
        # The number of pages printed with each design.
        self.printed = [0, 0]
        self.recent = Recent()
        # A story that the site prints every day with new numbers.
        self.bulletin = tell(language, chance)


@dataclasses.dataclass(frozen=True, order=True)
class _Planned:
    """A version that a site will print."""

    # The time, as a share of `LENGTH`.
    at: float
    order: int
    site: int = dataclasses.field(compare=False)
    story: int = dataclasses.field(compare=False)
    version: Version = dataclasses.field(compare=False)
    kind: str = dataclasses.field(compare=False)


def crawl(count: int, *, sites: int = 200, seed: int = 14) -> Iterator[CrawledPage]:
    """Yield pages in the order of their times. The same arguments give the same pages."""
    chance = random.Random(seed)
    held = _sites(sites, seed, chance)
    # Printing has its own random generator, so that it does not affect the planning.
    printing = random.Random(seed + 1)
    for number, planned in enumerate(sorted(itertools.islice(_plan(held, chance), count))):
        yield _printed(number, planned, held[planned.site], printing)


def _sites(count: int, seed: int, chance: random.Random) -> list[Site]:
    languages = [Language(name, seed) for name in SCRIPTS]
    # Shuffled below, so that each language has large and small sites.
    chosen = [
        language
        for language, share in zip(languages, _LANGUAGES, strict=True)
        for _ in range(round(share * count))
    ]
    chosen += [languages[0]] * (count - len(chosen))
    chance.shuffle(chosen)
    return [Site(number, language, chance) for number, language in enumerate(chosen[:count])]


def _plan(sites: list[Site], chance: random.Random) -> Iterator[_Planned]:
    """Yield the pages that sites will print, story after story."""
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
            content = tell(language, chance)
            printed = [(at, first, original(content), "article")]
            others = [each for each in by_language[language.name] if each != first]
            for other in _drawn(others, weights, _reprints(chance), chance):
                later = at + min(chance.expovariate(1 / lag), most_lag)
                printed.append((later, other, reprint(content, chance), "article"))
            printed += [
                (when + chance.uniform(0, lag), site, version, "again")
                for when, site, version, _ in printed
                if chance.random() < _AGAIN
            ]
        for when, place, version, kind in printed:
            if sites[place].opens_at <= when < 1:
                yield _Planned(when, next(order), place, story, version, kind)


def _drawn(sites: list[int], weights: list[float], count: int, chance: random.Random) -> list[int]:
    """Draw distinct sites; large sites are more probable."""
    if not count:
        return []
    ranks = {each: chance.random() ** (1 / weights[each]) for each in sites}
    return sorted(sites, key=ranks.__getitem__, reverse=True)[:count]


def _reprints(chance: random.Random) -> int:
    if chance.random() < _ALONE:
        return 0
    return min(int(chance.paretovariate(_TAIL)), _MOST_SITES)


def _with_new_numbers(story: Story, chance: random.Random) -> Version:
    """Return the bulletin of a day: the words of the story with other numbers."""
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
