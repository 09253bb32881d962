"""Texts arrive: boilerplate is left out of them, they are fingerprinted, and a forest assigns them."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Protocol

from esdedup.boilerplate.pins import NO_PINS, Pins
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import Fingerprints
from esdedup.forest import Arrivals, Assignment, Forest
from esdedup.neighbours.relation import relation_of
from esdedup.text.passages import Omit


class ComputesFingerprints(Protocol):
    """As `Fingerprinter`, in one process or in several."""

    @property
    def profile(self) -> Profile:
        """Decides the fingerprints."""

    def fingerprint(self, texts: Sequence[str], *, omit: Omit | None = None) -> Fingerprints:
        """Return the fingerprints of raw texts."""


def arrive(
    texts: Sequence[str],
    *,
    times_ms: Sequence[int | None],
    fingerprinter: ComputesFingerprints,
    forest: Forest,
    now_ms: int,
    pins: Pins = NO_PINS,
    sites: Iterable[str | None] = itertools.repeat(None),
    articles: Iterable[str | None] = itertools.repeat(None),
) -> tuple[Fingerprints, list[Assignment]]:
    """Return the fingerprints and assignments of raw texts, in their order.

    Args:
        texts: With or without markup.
        times_ms: One per text, milliseconds since 1970; None if not known.
        fingerprinter: Of the forest's profile.
        forest: Assigns them, and learns from them what is boilerplate.
        now_ms: The clock.
        pins: Which passages are boilerplate or text, whatever was learned.
        sites: One per text; None if not known.
        articles: Likewise, their ids.
    """
    lesson = forest.begin(pins=pins, sites=sites, articles=articles)
    fingerprints = fingerprinter.fingerprint(texts, omit=lesson.omit)
    arrivals = Arrivals.of(fingerprints, times_ms=times_ms, relation=relation_of(fingerprinter.profile))
    return fingerprints, forest.assign(arrivals, now_ms=now_ms, lesson=lesson)
