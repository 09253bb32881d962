"""What is left out of the first pages, before anything is known."""

import itertools

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.lesson import Lesson
from esdedup.boilerplate.pins import NO_PINS, Pins
from esdedup.text.passages import Omit, OmitOn


def omit_untaught(pins: Pins = NO_PINS) -> OmitOn:
    """Return what leaves out lists, and what is pinned as boilerplate."""

    def omit_on(site: str | None) -> Omit:
        return Lesson(Boilerplate(), pins=pins, sites=itertools.repeat(site)).omit

    return omit_on
