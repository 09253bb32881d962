"""Outlets, and how they print a story: the original text, and reprints with edits and misprints."""

import collections
import dataclasses
import random
import re
from collections.abc import Mapping, MutableMapping, Sequence

from tests.sample.grammar import Fact, choose, fill, fill_title, number
from tests.sample.stories import Story, corpus

# The percentages of reprints with each kind of edit; edits are independent of each other.
_OTHER_TITLE, _DRESSED_TITLE = 35, 15
_OTHER_LEAD, _REWORDED, _ADDED = 18, 20, 10
_CUT, _BRIEF = 28, 2
_RAISED = 45
_WITH_WIRE_LINE, _WITH_OWN_LINE, _WITH_FOOTER = 50, 20, 35
# The percentage of originals with a misprint, and the percentage of their reprints that correct it.
_MISPRINTED, _CORRECTED = 25, 50

# Lengths and cuts, in sentences.
_BRIEF_LENGTH, _LEAST_AFTER_CUT, _MOST_CUT, _LONGEST_PARAGRAPH = 4, 6, 3, 3
# The maximum amount by which a number grows.
_MOST_RAISED = 4
# The pattern excludes gaps and names, because a misprinted name would look like another name.
_LONG_WORD = re.compile(r"(?<![\w{'])[a-z]{6,}(?![\w}:'])")
_SOUND_ALIKE = (("的", "地"), ("在", "再"), ("做", "作"), ("已", "己"), ("即", "既"), ("像", "象"))


@dataclasses.dataclass(frozen=True)
class Outlet:
    """A paper, a station, a site, or an agency."""

    name: str
    domain: str
    # The line with which the outlet's own texts open.
    line: str
    footers: list[str]
    is_agency: bool
    # These lists are the same for all outlets of a language.
    wire_lines: list[str]
    titles: list[str]


def outlets() -> dict[str, list[Outlet]]:
    """Return the outlets by language."""
    return {
        language: [
            Outlet(**each, is_agency=kind == "agencies", wire_lines=named["wire"], titles=named["titles"])
            for kind in ("agencies", "papers")
            for each in named[kind]
        ]
        for language, named in corpus()["outlets"].items()
    }


@dataclasses.dataclass
class _Draft:
    """An article that is being edited."""

    title: str
    # The sentences, starting with the lead. Their gaps are not filled yet.
    sentences: list[str]
    facts: MutableMapping[str, Fact]
    opening: str = ""
    footer: str = ""


class Newsroom:
    """Prints one story: the original, and the reprints of other outlets."""

    def __init__(self, story: Story, origin: Outlet, chance: random.Random) -> None:
        self._story = story
        self._origin = origin
        self._chance = chance
        self._wordings = [sentence.wording for sentence in story.sentences]
        # The wordings as the original prints them, perhaps with a misprint.
        self._misprinted = list(self._wordings)
        if self._happens(_MISPRINTED):
            place = chance.randrange(len(self._wordings))
            self._misprinted[place] = _misprint(self._wordings[place], chance)

    def original(self) -> tuple[str, str]:
        """Return the title and text of the original."""
        draft = self._draft(self._misprinted)
        self._dress(draft, self._origin, wire=self._origin.is_agency, own=True)
        return self._printed(draft, self._origin)

    def reprint(self, outlet: Outlet) -> tuple[str, str]:
        """Return the title and text of a reprint, with the edits of its outlet."""
        draft = self._draft(self._wordings if self._happens(_CORRECTED) else self._misprinted)
        if not self._story.plot.is_bulletin:
            self._edit(draft)
        if self._happens(_DRESSED_TITLE):
            draft.title = self._chance.choice(outlet.titles).replace("{title}", draft.title)
        is_wired = self._origin.is_agency and self._happens(_WITH_WIRE_LINE)
        self._dress(draft, outlet, wire=is_wired, own=self._happens(_WITH_OWN_LINE))
        return self._printed(draft, outlet)

    def _draft(self, wordings: Sequence[str]) -> _Draft:
        return _Draft(self._story.title, list(wordings), self._story.facts)

    def _edit(self, draft: _Draft) -> None:
        story, chance, sentences = self._story, self._chance, draft.sentences
        if self._happens(_REWORDED):
            place = chance.randrange(len(sentences))
            sentences[place] = choose(story.sentences[place].template, chance)
        if self._happens(_OTHER_LEAD):
            sentences[0] = choose(chance.choice(story.plot.leads), chance)
        if self._happens(_OTHER_TITLE):
            draft.title = choose(chance.choice(story.plot.titles), chance)
        if self._happens(_CUT):
            del sentences[max(_LEAST_AFTER_CUT, len(sentences) - chance.randint(1, _MOST_CUT)) :]
        if story.spare and self._happens(_ADDED):
            sentences.insert(-1, choose(chance.choice(story.spare), chance))
        if self._happens(_BRIEF):
            del sentences[_BRIEF_LENGTH:]
        if self._happens(_RAISED):
            draft.facts = collections.ChainMap(self._raised(), story.facts)

    def _raised(self) -> dict[str, Fact]:
        """Return the numbers that have increased since the original."""
        language, facts = self._story.plot.language, self._story.facts
        return {
            name: number(value + self._chance.randint(1, _MOST_RAISED), language=language)
            for name in self._story.plot.growing
            if (value := facts[name].value) is not None
        }

    def _dress(self, draft: _Draft, outlet: Outlet, *, wire: bool, own: bool) -> None:
        if wire or own:
            draft.opening = self._chance.choice(outlet.wire_lines) if wire else outlet.line
        # An outlet does not credit itself.
        footers = [each for each in outlet.footers if outlet is not self._origin or "{" not in each]
        if footers and self._happens(_WITH_FOOTER):
            draft.footer = self._chance.choice(footers)

    def _printed(self, draft: _Draft, outlet: Outlet) -> tuple[str, str]:
        named: set[str] = set()
        sentences = [fill(sentence, draft.facts, named) for sentence in draft.sentences]
        around = self._around(draft, outlet)
        sentences[0] = fill(draft.opening, around, set()) + sentences[0]
        paragraphs = self._paragraphs(sentences)
        if draft.footer:
            paragraphs.append(fill(draft.footer, around, set()))
        return fill_title(draft.title, around), "\n\n".join(paragraphs)

    def _around(self, draft: _Draft, outlet: Outlet) -> Mapping[str, Fact]:
        """Return the facts, and the other names that titles, openings and footers may use."""
        place = draft.facts["town"].first
        words = {
            "origin": self._origin.name,
            "outlet": outlet.name,
            "place": place,
            "PLACE": place.upper(),
            "original": fill_title(self._story.title, self._story.facts),
        }
        return collections.ChainMap({name: Fact.plain(each) for name, each in words.items()}, draft.facts)

    def _paragraphs(self, sentences: Sequence[str]) -> list[str]:
        """Make the lead a separate paragraph, and group the other sentences at random."""
        between = " " if self._story.plot.language == "en" else ""
        paragraphs = [sentences[0]]
        start = 1
        while start < len(sentences):
            end = start + self._chance.randint(1, _LONGEST_PARAGRAPH)
            paragraphs.append(between.join(sentences[start:end]))
            start = end
        return paragraphs

    def _happens(self, times_in_a_hundred: int) -> bool:
        return self._chance.random() * 100 < times_in_a_hundred


def _misprint(wording: str, chance: random.Random) -> str:
    """Return a wording with one misprint, or unchanged if no misprint fits."""
    if words := [word.start() for word in _LONG_WORD.finditer(wording)]:
        at = chance.choice(words) + chance.randint(1, 3)
        return wording[:at] + wording[at + 1] + wording[at] + wording[at + 2 :]
    right, wrong = chance.choice(_SOUND_ALIKE)
    return wording.replace(right, wrong, 1)
