"""Texts arrive: boilerplate is left out of them, they are fingerprinted, and a forest assigns them."""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from esdedup.boilerplate.pins import NO_PINS, Pins
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.signature import Fingerprints
from esdedup.forest import Arrivals, Assignment, Decision, Forest


class Arrived(NamedTuple):
    """What a forest has decided for the texts of a batch."""

    fingerprints: Fingerprints
    decided: Decision


def arrive(
    texts: Sequence[str],
    *,
    times_ms: Sequence[int | None],
    fingerprinter: Fingerprinter,
    forest: Forest,
    now_ms: int,
    pins: Pins = NO_PINS,
    sites: Iterable[str | None] = itertools.repeat(None),
    articles: Iterable[str | None] = itertools.repeat(None),
) -> Arrived:
    """Return the fingerprints and assignments of raw texts, in their order; see `Forest.decide`.

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
    omit = forest.begin(pins=pins, sites=sites, articles=articles)
    fingerprints = fingerprinter.fingerprint(texts, omit=omit)
    arrivals = Arrivals.of(fingerprints, times_ms=times_ms)
    return Arrived(fingerprints, forest.decide(arrivals, now_ms=now_ms))


def look_up(
    text: str,
    *,
    site: str | None,
    fingerprinter: Fingerprinter,
    forest: Forest,
    now_ms: int,
    pins: Pins = NO_PINS,
) -> Assignment:
    """Return what `arrive` would decide for a raw text that came now, and change nothing.

    Raises:
        TextFailed: The text met a fault in the core.
    """
    omit = forest.begin(pins=pins, sites=[site])
    try:
        fingerprints = fingerprinter.fingerprint([text], omit=omit).checked()
        (found,) = forest.look_up(Arrivals.of(fingerprints, times_ms=[now_ms]), now_ms=now_ms)
    finally:
        forest.abandon()
    return found
