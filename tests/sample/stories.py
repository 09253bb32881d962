"""Generates stories, each with a plot from the corpus, its own facts, and a choice of sentences."""

import dataclasses
import functools
import itertools
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from importlib import resources
from typing import Any

from tests.sample.grammar import Facts, Pool, choose, pools, ranges

LANGUAGES = ("en", "zh")
# The minimum and maximum numbers of sentences in a story, if its plot has enough.
_LEAST_SENTENCES, _MOST_SENTENCES = 8, 11


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plot:
    """A kind of event in a topic: the templates of its stories, and the pools of their facts."""

    language: str
    titles: Sequence[str]
    leads: Sequence[str]
    # The templates of each part after the lead, in order. A story uses at least one template of each part.
    parts: Sequence[Sequence[str]]
    # Templates that fit any story of the topic.
    background: Sequence[str]
    # The pools from which facts are drawn, the most specific first.
    pools: Sequence[Mapping[str, Pool]]
    # The names of numbers that later reports may increase.
    growing: Sequence[str]
    # The hour (UTC) at which a daily bulletin appears, and whether it appears only on workdays.
    hour: int | None
    only_workdays: bool

    @property
    def is_bulletin(self) -> bool:
        """Whether the plot is a bulletin that appears every day with new numbers."""
        return self.hour is not None


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence of a story with unfilled gaps: the template, and the wording chosen from it."""

    template: str
    wording: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Story:
    """The content of one story before it is printed; stories have content in common only by chance."""

    number: int
    plot: Plot
    when: datetime
    facts: Facts
    title: str
    # The sentences, starting with the lead.
    sentences: Sequence[Sentence]
    # Unused templates, of which a reprint may add one.
    spare: Sequence[str]


def plots() -> dict[str, list[Plot]]:
    """Return the plots of all topics, by language."""
    return {
        language: [
            _plot(language, plot, topic[language])
            for topic in corpus()["topics"].values()
            for plot in topic[language]["plots"]
        ]
        for language in LANGUAGES
    }


def bulletins() -> dict[str, list[Plot]]:
    """Return the plots of the daily bulletins, by language."""
    return {
        language: [_plot(language, plot, {}) for plot in found]
        for language, found in corpus()["bulletins"].items()
    }


def tell(number: int, plot: Plot, *, when: datetime, chance: random.Random) -> Story:
    """Make a story from a plot."""
    chosen, spare = _chosen(plot, chance)
    templates = [chance.choice(plot.leads), *chosen]
    return Story(
        number=number,
        plot=plot,
        when=when,
        facts=Facts(plot.pools, language=plot.language, when=when, chance=chance),
        title=choose(chance.choice(plot.titles), chance),
        sentences=[Sentence(template, choose(template, chance)) for template in templates],
        spare=spare,
    )


@functools.cache
def corpus() -> Any:
    """Return the source of the corpus: outlets, words, bulletins and topics."""
    return json.loads((resources.files("tests.sample") / "corpus.json").read_text("utf-8"))


def _chosen(plot: Plot, chance: random.Random) -> tuple[list[str], list[str]]:
    """Choose sentences for a story, in the order of the plot's parts; return them and the unused ones."""
    shuffled = [chance.sample(part, len(part)) for part in plot.parts]
    background = chance.sample(plot.background, len(plot.background))
    rest = [(place, template) for place, part in enumerate(shuffled) for template in part[1:]]
    # Background comes before the last part, which looks ahead.
    rest += [(len(shuffled) - 2, template) for template in background]
    chance.shuffle(rest)
    more = max(0, chance.randint(_LEAST_SENTENCES, _MOST_SENTENCES) - 1 - len(shuffled))
    taken = [*((place, part[0]) for place, part in enumerate(shuffled)), *rest[:more]]
    taken.sort(key=lambda each: each[0])
    return [template for _, template in taken], [template for _, template in rest[more:]]


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
        pools=[
            *(pools(plot["facts"]), ranges(templates)),
            *(pools(topic.get("facts", {})), pools(corpus()["words"][language])),
        ],
        growing=plot.get("grows", []),
        hour=plot.get("hour"),
        only_workdays=plot.get("workdays", False),
    )
