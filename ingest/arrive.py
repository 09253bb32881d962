"""Texts arrive: boilerplate is left out of them, they are fingerprinted, and a forest assigns them."""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from esdedup.ingest.fingerprinted_pages import Bools, FingerprintedPages

from esdedup.boilerplate.pins import NO_PINS, Pins
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.signature import Fingerprints
from esdedup.forest import Arrivals, Assignment, Decided, Forest


class Arrived(NamedTuple):
    """What a forest has decided for the pages of a batch."""

    # Of the texts.
    fingerprints: Fingerprints
    # The assignments of the texts.
    decided: Decided
    # Of the pages that were fingerprinted elsewhere: their assignments, or which passages are to be left out,
    # if others were.
    others: list[Assignment | Bools]


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
    others: FingerprintedPages | None = None,
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
        others: Pages that come before the texts, and arrive now. One of which something wrong was left out
            is passed over: it teaches nothing, and is not assigned.
    """
    if others is None:
        lesson = forest.begin(pins=pins, sites=sites, articles=articles)
        fingerprints = fingerprinter.fingerprint(texts, omit=lesson.omit)
        arrivals = Arrivals.of(fingerprints, times_ms=times_ms)
        return Arrived(fingerprints, forest.decide(arrivals, now_ms=now_ms, lesson=lesson), [])
    profile = fingerprinter.profile
    of, omitted = others.of, others.omitted
    lesson = forest.begin(
        pins=pins,
        sites=itertools.chain(of.sites, sites),
        articles=itertools.chain(of.articles, articles),
    )
    if not profile.keep_boilerplate:
        omitted = lesson.omit(of.passages, of.pages, omitted)
    are_right = others.are_right(omitted)
    fingerprints = fingerprinter.fingerprint(texts, omit=lesson.omit)
    arrivals = Arrivals.of(
        Fingerprints.joined((others.fingerprints(are_right), fingerprints), profile.signature_dtype),
        times_ms=[now_ms] * int(np.count_nonzero(are_right)) + list(times_ms),
    )
    assignments, written = forest.decide(arrivals, now_ms=now_ms, lesson=lesson)
    following = iter(assignments)
    ends = of.passages.texts.searchsorted(np.arange(len(others)), side="right").tolist()
    decided = [
        next(following) if is_right else omitted[start:end]
        for is_right, start, end in zip(are_right.tolist(), (0, *ends), ends, strict=False)
    ]
    return Arrived(fingerprints, Decided(list(following), written), decided)
