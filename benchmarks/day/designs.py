"""What a site puts around its articles, between one redesign and the next."""

import collections
import dataclasses
import random
from collections.abc import Callable

from benchmarks.day.stories import Version
from benchmarks.day.wording import Language

# Shares of the designs: with hardly anything, and with more than most articles have; others are between.
_CLEAN, _HEAVY = 0.33, 0.18
# Of those that are not clean, how many have each part, and in which form.
_BANNER, _COMMON_BANNER, _MENU_IN_LINES, _LINKS_BEFORE, _WITH_LEADS = 0.7, 0.6, 0.5, 0.2, 0.2
_PAYWALL, _COMMENTS, _READ_ALSO, _ADVERTISED = 0.1, 0.25, 0.3, 0.4
# The share of the pages behind a paywall, and what can be read of them.
_PAYWALLED, _FREE_PARAGRAPHS = 0.6, 2
# From so many paragraphs on there is something between them.
_INTERRUPTED_PARAGRAPHS = 3
# Pages for which a list of related articles stays as it is.
_LIST_PAGES = (20, 70)
_AUTHORS = 25
_TEASER_CHARACTERS = 70
# The latest articles of a site, which others on it point to.
_LATEST = 60


@dataclasses.dataclass(frozen=True)
class Link:
    """An article that others point to."""

    title: str
    lead: str


class Recent:
    """The latest articles of a site, and the lists of them that its pages have."""

    def __init__(self) -> None:
        self.links: collections.deque[Link] = collections.deque(maxlen=_LATEST)
        self._lists: dict[int, tuple[int, list[Link]]] = {}

    def some(self, number: int, count: int, chance: random.Random) -> list[Link]:
        """Return the list of a block with this number: the same for some dozens of pages."""
        left, links = self._lists.get(number, (0, []))
        if not left:
            left, links = chance.randint(*_LIST_PAGES), self.draw(count, chance)
        self._lists[number] = left - 1, links
        return links

    def draw(self, count: int, chance: random.Random) -> list[Link]:
        return chance.sample(list(self.links), min(count, len(self.links)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
    """What is printed on one page."""

    # Without any paragraph if the article is lost.
    version: Version
    # As the site prints it.
    date: str
    recent: Recent


_Block = Callable[[Page, random.Random], list[str]]


class Design:
    """The passages of a site, and where they stand."""

    def __init__(self, language: Language, chance: random.Random) -> None:
        self._language = language
        drawn = chance.random()
        is_clean, is_heavy = drawn < _CLEAN, drawn > 1 - _HEAVY
        self._line = chance.choice(("\n", "\n\n"))
        self._authors = [f"{language.word(chance)} {language.word(chance)}" for _ in range(_AUTHORS)]
        self._byline = [language.phrase(chance, 1, 3) for _ in range(chance.randint(1, 4))]
        self._advertisement = language.phrase(chance, 1, 2) if chance.random() < _ADVERTISED else None
        self._read_also = language.phrase(chance, 2, 3) if chance.random() < _READ_ALSO else None
        # Shown instead of the rest of an article.
        self._prompt = language.prose(chance, 2) if not is_clean and chance.random() < _PAYWALL else None
        copyright_line = f"© {language.word(chance)} {language.phrase(chance, 3, 8)}"
        self._before: list[_Block] = []
        self._after: list[_Block] = [_fixed(language.prose(chance, 1)), _fixed(copyright_line)]
        if not is_clean:
            self._add_boilerplate(chance, times=3 if is_heavy else 1)
        # Clean sites have their line of author and date too.
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
        """Return paragraphs with what the site puts between them."""
        if len(body) < _INTERRUPTED_PARAGRAPHS:
            return body
        between = [] if self._advertisement is None else [self._advertisement]
        if self._read_also is not None:
            between += [f"{self._read_also}: {each.title}" for each in page.recent.draw(1, chance)]
        middle = len(body) // 2
        return [*body[:middle], *between, *body[middle:]]

    def _add_boilerplate(self, chance: random.Random, *, times: int) -> None:
        """Put around articles what most sites do, so many times as much."""
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
    """A block of related articles, which is the same for some dozens of pages."""

    # Among those of its site.
    number: int
    heading: str
    count: int
    # Titles alone, or with the beginning of a lead, or a whole one.
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
