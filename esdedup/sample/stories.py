"""Writing a story: a plot of the grammar, the facts of this one case, and a choice of sentences."""

import dataclasses
import functools
import itertools
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from importlib import resources
from typing import Any

from esdedup.sample.facts import Facts, Source, ranges, sources
from esdedup.sample.grammar import choose

LANGUAGES = ("en", "zh")
_TOPICS = (
    *("harbour", "transport", "council", "school", "energy", "science", "health", "business"),
    *("weather", "culture", "sport", "football", "farming", "court", "tech"),
)
# So many sentences a story has, where its plot has enough.
_LEAST_SENTENCES, _MOST_SENTENCES = 8, 11


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plot:
    """What happens in some of the stories of a topic, each time to others: templates, sources of facts."""

    language: str
    titles: Sequence[str]
    leads: Sequence[str]
    # After the lead, in this order: alternatives, of each of which a story takes one at least.
    parts: Sequence[Sequence[str]]
    # What fits any story of the topic.
    background: Sequence[str]
    # What the facts are drawn from, the nearest first.
    sources: Sequence[Mapping[str, Source]]
    # Numbers that later reports raise.
    growing: Sequence[str]
    # Of what comes every day: the hour (UTC) at which it does, and whether on workdays only.
    hour: int | None
    only_workdays: bool

    @property
    def is_bulletin(self) -> bool:
        """Whether it comes every day, with other numbers."""
        return self.hour is not None


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence of a story, with gaps: as it can be worded, and as it is."""

    template: str
    wording: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Story:
    """What one story has to tell, before anybody prints it; what others tell too they tell by chance."""

    number: int
    plot: Plot
    when: datetime
    facts: Facts
    title: str
    # The lead, then the rest.
    sentences: Sequence[Sentence]
    # Which the plot has left: another paper may add one.
    spare: Sequence[str]


def plots() -> dict[str, list[Plot]]:
    """Return the plots of all topics, by language."""
    return {
        language: [
            _plot(language, plot, topic[language])
            for topic in map(load, _TOPICS)
            for plot in topic[language]["plots"]
        ]
        for language in LANGUAGES
    }


def bulletins() -> dict[str, list[Plot]]:
    """Return the plots of what appears every day with other numbers, by language."""
    return {
        language: [_plot(language, plot, {}) for plot in found]
        for language, found in load("bulletins").items()
    }


def tell(number: int, plot: Plot, *, when: datetime, chance: random.Random) -> Story:
    """Make a story of a plot."""
    chosen, spare = _chosen(plot, chance)
    told = [chance.choice(plot.leads), *chosen]
    return Story(
        number=number,
        plot=plot,
        when=when,
        facts=Facts(plot.sources, language=plot.language, when=when, chance=chance),
        title=choose(chance.choice(plot.titles), chance),
        sentences=[Sentence(template, choose(template, chance)) for template in told],
        spare=spare,
    )


def load(name: str) -> Any:
    """Return a file of this package."""
    return json.loads((resources.files("esdedup.sample") / f"{name}.json").read_text("utf-8"))


def _chosen(plot: Plot, chance: random.Random) -> tuple[list[str], list[str]]:
    """Choose sentences for a story, in the order of the plot's parts; return them, and those left over."""
    shuffled = [chance.sample(part, len(part)) for part in plot.parts]
    background = chance.sample(plot.background, len(plot.background))
    rest = [(place, template) for place, part in enumerate(shuffled) for template in part[1:]]
    # Before the last part, which looks ahead.
    rest += [(len(shuffled) - 2, template) for template in background]
    chance.shuffle(rest)
    wanted = max(0, chance.randint(_LEAST_SENTENCES, _MOST_SENTENCES) - 1 - len(shuffled))
    taken = [*((place, part[0]) for place, part in enumerate(shuffled)), *rest[:wanted]]
    taken.sort(key=lambda each: each[0])
    return [template for _, template in taken], [template for _, template in rest[wanted:]]


def _plot(language: str, plot: Mapping[str, Any], topic: Mapping[str, Any]) -> Plot:
    background: list[str] = plot.get("background", topic.get("background", []))
    templates: Iterable[str] = [
        *(*plot["titles"], *plot["leads"]),
        *itertools.chain(*plot["parts"]),
        *background,
    ]
    return Plot(
        language=language,
        titles=plot["titles"],
        leads=plot["leads"],
        parts=plot["parts"],
        background=background,
        sources=[
            *(sources(plot["facts"]), ranges(templates)),
            *(sources(topic.get("facts", {})), _words()[language]),
        ],
        growing=plot.get("grows", []),
        hour=plot.get("hour"),
        only_workdays=plot.get("workdays", False),
    )


@functools.cache
def _words() -> dict[str, dict[str, Source]]:
    return {language: sources(words) for language, words in load("words").items()}
