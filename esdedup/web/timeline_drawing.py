"""A bar chart of a timeline that names the first and the largest, and what it says in words. Pure."""

import dataclasses
from datetime import datetime

from esdedup.reading.results import Timeline
from esdedup.web.bounds import cut
from esdedup.web.formats import source_names
from esdedup.web.languages import Language

# A bar for one article among many must remain visible.
_MIN_HEIGHT_PERCENT = 3.0
# The space between two bars, as a share of the step.
_GAP = 0.15
# What stands beside a bar.
_LONGEST_NAME = 40


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """The bar of one interval, in percent of the drawing's width and height."""

    x: float
    y: float
    width: float
    height: float
    # What it says on hover.
    label: str
    is_first: bool
    is_peak: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mark:
    """A line of text over a bar."""

    # Where the text begins or ends, in percent of the width.
    x: float
    # Whether it ends there, since there is no room on the right of the bar.
    is_left: bool
    text: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Drawing:
    """The bars, what stands over two of them, and a summary in words."""

    bars: list[Bar]
    # None if nobody knows who was first.
    first: Mark | None
    # None if no interval has several articles.
    peak: Mark | None
    begin: str
    end: str | None
    summary: str


def draw(timeline: Timeline, language: Language) -> Drawing | None:
    """Draw a timeline; None if it has fewer than two steps, or times outside the calendar."""
    steps = timeline.steps
    if len(steps) < 2 or not all(map(_is_in_calendar, (steps[0].start, steps[-1].start))):
        return None
    _, moment = language.gettext, language.moment
    step = 100 / len(steps)
    most = max(each.articles for each in steps)
    peak_at = next(at for at, each in enumerate(steps) if each.articles == most)
    bars = []
    for at, each in enumerate(steps):
        if not each.articles:
            continue
        height = max(_MIN_HEIGHT_PERCENT, 100 * each.articles / most)
        bars.append(
            Bar(
                x=round(at * step, 2),
                y=round(100 - height, 2),
                width=round(step * (1 - _GAP), 2),
                height=round(height, 2),
                label=_(
                    "%(articles)s from %(time)s",
                    articles=_articles(each.articles, language),
                    time=moment(each.start),
                ),
                is_first=at == 0,
                is_peak=most > 1 and at == peak_at,
            )
        )
    first = timeline.earliest and cut(source_names(timeline.earliest.source), _LONGEST_NAME)
    return Drawing(
        bars=bars,
        first=Mark(x=0, is_left=False, text=_("first: %(source)s", source=first)) if first else None,
        peak=_peak(timeline, peak_at, language) if most > 1 else None,
        begin=steps[0].start,
        end=timeline.last,
        summary=_summary(timeline, peak_at, language),
    )


def _peak(timeline: Timeline, at: int, language: Language) -> Mark:
    step = 100 / len(timeline.steps)
    is_left = at * step > 50
    text = language.gettext(
        "most: %(articles)s within %(length)s",
        articles=_articles(timeline.steps[at].articles, language),
        length=language.length(timeline.interval_ms),
    )
    return Mark(x=round((at + (1 - _GAP) * is_left) * step, 2), is_left=is_left, text=text)


def _summary(timeline: Timeline, peak_at: int, language: Language) -> str:
    _, moment, peak = language.gettext, language.moment, timeline.steps[peak_at]
    values = {
        "articles": _articles(sum(each.articles for each in timeline.steps), language),
        "first": moment(timeline.steps[0].start),
        "last": moment(timeline.last),
    }
    if peak.articles <= 1:
        return _("%(articles)s between %(first)s and %(last)s.", **values)
    return _(
        "%(articles)s between %(first)s and %(last)s; peak: %(peak)s within %(length)s from %(time)s.",
        **values,
        peak=language.number(peak.articles),
        length=language.length(timeline.interval_ms),
        time=moment(peak.start),
    )


def _is_in_calendar(moment: str) -> bool:
    try:
        datetime.fromisoformat(moment)
    except ValueError:
        return False
    return True


def _articles(count: int, language: Language) -> str:
    number = language.number(count)
    return language.ngettext("%(number)s article", "%(number)s articles", count, number=number)
