"""The articles of a list over time, as bars that are links to the list of their time. Pure."""

import dataclasses
from collections.abc import Sequence
from datetime import datetime, time, timedelta

from esdedup.reading.results import Timeline, TimelineStep
from esdedup.web.facets import Parameters, changed
from esdedup.web.form import PageForm
from esdedup.web.languages import Language

HEIGHT = 56
# On a phone, so many steps share a bar: a finger needs 24 pixels.
_STEPS_OF_WIDE_BARS = 3
_WIDTH = 720
_GAP = 2
_MIN_HEIGHT = 3.0
_MS = timedelta(milliseconds=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinkedBar:
    """A bar, in the units of the drawing."""

    x: float
    y: float
    width: float
    height: float
    # How wide the place to click is: up to the next step.
    reach: float
    label: str
    # Of the list of its articles.
    parameters: Parameters


@dataclasses.dataclass(frozen=True, kw_only=True)
class Histogram:
    """The same bars twice, for wide and for narrow windows."""

    width: int
    height: int
    bars: list[LinkedBar]
    wide_bars: list[LinkedBar]
    begin: str
    end: str


def histogram(timeline: Timeline, form: PageForm, language: Language) -> Histogram | None:
    """Draw articles over time; None if they fit in one step, or lie outside the calendar."""
    steps = timeline.steps
    if len(steps) < 2:
        return None
    try:
        begin = datetime.fromisoformat(steps[0].start)
        end = begin + len(steps) * timedelta(milliseconds=timeline.interval_ms) - _MS
    except (ValueError, OverflowError):
        return None
    merged = [_sum(steps[at : at + _STEPS_OF_WIDE_BARS]) for at in range(0, len(steps), _STEPS_OF_WIDE_BARS)]
    return Histogram(
        width=_WIDTH,
        height=HEIGHT,
        bars=_bars(steps, timeline.interval_ms, end, form, language),
        wide_bars=_bars(merged, _STEPS_OF_WIDE_BARS * timeline.interval_ms, end, form, language),
        begin=language.day(begin),
        end=language.day(end),
    )


def _sum(steps: Sequence[TimelineStep]) -> TimelineStep:
    return steps[0].model_copy(update={"articles": sum(each.articles for each in steps)})


def _bars(
    steps: Sequence[TimelineStep], interval_ms: int, last: datetime, form: PageForm, language: Language
) -> list[LinkedBar]:
    most, step_width = max(each.articles for each in steps), _WIDTH / len(steps)
    bars = []
    for at, each in enumerate(steps):
        if not each.articles:
            continue
        start = datetime.fromisoformat(each.start)
        end = min(start + timedelta(milliseconds=interval_ms) - _MS, last)
        height = max(_MIN_HEIGHT, HEIGHT * each.articles / most)
        bars.append(
            LinkedBar(
                x=round(at * step_width, 1),
                y=round(HEIGHT - height, 1),
                width=round(step_width - _GAP, 1),
                height=round(height, 1),
                reach=round(step_width, 2),
                label=_label(each.articles, start, end, language),
                parameters=changed(form, since=_first(start), until=_last(end)),
            )
        )
    return bars


def _label(articles: int, start: datetime, end: datetime, language: Language) -> str:
    number = language.number(articles)
    counted = language.ngettext("%(number)s article", "%(number)s articles", articles, number=number)
    is_days = _is_midnight(start) and _is_midnight(end + _MS)
    write = language.day if is_days else language.utc
    first, last = write(start), write(end)
    if first == last:
        return language.gettext("%(articles)s: %(time)s", articles=counted, time=first)
    return language.gettext("%(articles)s: %(first)s to %(last)s", articles=counted, first=first, last=last)


def _first(moment: datetime) -> str:
    """Write the first moment of a period, as short as it can be."""
    return str(moment.date()) if _is_midnight(moment) else moment.strftime("%Y-%m-%dT%H:%MZ")


def _last(moment: datetime) -> str:
    """Write the last moment of a period: a day lasts to its end."""
    return str(moment.date()) if _is_midnight(moment + _MS) else moment.strftime("%Y-%m-%dT%H:%M:%S.999Z")


def _is_midnight(moment: datetime) -> bool:
    return moment.time() == time.min
