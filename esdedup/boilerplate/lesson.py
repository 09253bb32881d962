"""`Lesson`: what a batch of pages teaches, and which of their passages are left out of their fingerprints."""

import itertools
from collections.abc import Iterable

import numpy as np

from esdedup.boilerplate.boilerplate import Boilerplate, Bools, Hashes
from esdedup.boilerplate.changes import Changes
from esdedup.boilerplate.pins import NO_PINS, Pins
from esdedup.text.passages import Passages


class Lesson:
    """Goes through the pages of one batch, in their order."""

    def __init__(
        self,
        boilerplate: Boilerplate,
        *,
        pins: Pins = NO_PINS,
        sites: Iterable[str | None] = itertools.repeat(None),
        articles: Iterable[str | None] = itertools.repeat(None),
    ) -> None:
        """Go on from what is known, and add to it.

        Args:
            boilerplate: What is known.
            pins: What counts instead for the passages that they name.
            sites: Of the pages, in their order.
            articles: Likewise: the page of an article may change and come again.
        """
        self._boilerplate = boilerplate
        self._pins = pins
        self._sites = iter(sites)
        self._articles = iter(articles)

    def omit(self, passages: Passages, pages: Hashes) -> Bools:
        """Return which passages of the next pages to leave out, bool ``(n,)``, and learn from these pages.

        A page that was seen before teaches nothing.

        Args:
            passages: Of the pages.
            pages: The ids of the pages, uint64 ``(text_count,)``.
        """
        omitted = self._boilerplate.learner.filter(
            (
                passages.hashes.tobytes(),
                passages.letters.tobytes(),
                passages.are_prose.tobytes(),
                passages.have_figures.tobytes(),
                passages.texts.tobytes(),
            ),
            pages.tobytes(),
            list(itertools.islice(self._sites, len(pages))),
            list(itertools.islice(self._articles, len(pages))),
            self._pins.overrides,
        )
        return np.frombuffer(omitted, np.bool_)

    def learn_rest(self) -> None:
        """Learn from the pages of a block that is not full, as if no others would come."""
        self._boilerplate.learner.learn_rest()

    def changes(self) -> Changes:
        """Return what has been learned since the last step of the boilerplate began."""
        return self._boilerplate.changes()
