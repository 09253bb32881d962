"""A bar chart of a timeline, and what it says in words. Pure."""

import dataclasses
from datetime import datetime, timedelta

from esdedup.reading.results import Timeline
from esdedup.web.languages import Language

WIDTH, HEIGHT = 640, 96
_GAP = 1.0
# A bar for one article among many must remain visible.
_MIN_HEIGHT = 3.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """The bar of one interval, in the units of the drawing."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Drawing:
    """The bars, and a summary in words."""

    bars: list[Bar]
    begin: str
    end: str
    summary: str


def draw(timeline: Timeline, language: Language) -> Drawing | None:
    """Draw a timeline; None if it has fewer than two steps, or times outside the calendar."""
    _, moment = language.gettext, language.moment
    steps = timeline.steps
    if len(steps) < 2 or not all(map(_is_in_calendar, (steps[0].start, steps[-1].start))):
        return None
    most = max(each.articles for each in steps)
    step = WIDTH / len(steps)
    bars = []
    for at, each_step in enumerate(steps):
        if not each_step.articles:
            continue
        height = max(_MIN_HEIGHT, HEIGHT * each_step.articles / most)
        bars.append(
            Bar(
                x=round(at * step, 2),
                y=round(HEIGHT - height, 2),
                width=round(max(step - _GAP, 1.0), 2),
                height=round(height, 2),
                label=_(
                    "%(articles)s from %(time)s",
                    articles=_articles(each_step.articles, language),
                    time=moment(each_step.start),
                ),
            )
        )
    end = _after(steps[-1].start, timeline.interval_ms)
    peak = max(steps, key=lambda each: each.articles)
    return Drawing(
        bars=bars,
        begin=steps[0].start,
        end=end,
        summary=_(
            "%(articles)s between %(first)s and %(last)s; peak: %(peak)s within %(length)s from %(time)s",
            articles=_articles(sum(each.articles for each in steps), language),
            first=moment(steps[0].start),
            last=moment(end),
            peak=language.number(peak.articles),
            length=language.length(timeline.interval_ms),
            time=moment(peak.start),
        ),
    )


def _is_in_calendar(moment: str) -> bool:
    try:
        datetime.fromisoformat(moment)
    except ValueError:
        return False
    return True


def _after(moment: str, interval_ms: int) -> str:
    try:
        return (datetime.fromisoformat(moment) + timedelta(milliseconds=interval_ms)).isoformat()
    except OverflowError:
        # Beyond the last year of the calendar.
        return moment


def _articles(count: int, language: Language) -> str:
    number = language.number(count)
    return language.ngettext("%(number)s article", "%(number)s articles", count, number=number)
