"""Draws articles over time as bars. Pure.

The bars above a list are links that filter by time. On an article's page, the first and the largest bar
have labels. A row of the list shows its bars as a tiny curve.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta
from typing import Any

from esdedup.reading.results import Timeline, TimelineStep
from esdedup.web.form import PageForm, Parameters
from esdedup.web.formats import cut, source_names
from esdedup.web.languages import Language

_MS = timedelta(milliseconds=1)
# The size of a list's histogram, in pixels.
_WIDTH, HISTOGRAM_HEIGHT = 720, 56
_PIXELS_BETWEEN = 2
_MIN_PIXELS = 3.0
# Steps per bar on a narrow screen: a finger needs 24 pixels.
_STEPS_OF_WIDE_BARS = 3
# The space between two bars of a cluster's timeline, as a share of the step.
_GAP = 0.15
_MIN_PERCENT = 3.0
# The longest name in a label, in characters.
_LONGEST_NAME = 40
# The size of a row's curve, in pixels.
CURVE_WIDTH, CURVE_HEIGHT = 96, 20
_CURVE_GAP = 1
_CURVE_MIN_HEIGHT = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """A bar, placed by its upper left corner, in the units of the drawing."""

    x: float
    y: float
    width: float
    height: float
    # Shown on hover.
    label: str
    # For a link: the width of the clickable area, and the parameters of the list that it opens.
    reach: float = 0.0
    parameters: Parameters = dataclasses.field(default_factory=dict)
    is_first: bool = False
    is_peak: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Histogram:
    """Bars for wide windows, and wider bars of several steps for narrow windows."""

    bars: list[Bar]
    wide_bars: list[Bar]
    begin: str
    end: str
    width: int = _WIDTH
    height: int = HISTOGRAM_HEIGHT


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mark:
    """A line of text over a bar."""

    # Where the text begins or ends, in percent of the width.
    x: float
    # True if the text ends at `x`, because there is no space to the right of the bar.
    is_left: bool
    text: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Drawing:
    """Bars in percent of the width and height, labels for two of them, and a summary in words."""

    bars: list[Bar]
    # None if the first source is unknown.
    first: Mark | None
    # None if no interval has more than one article.
    peak: Mark | None
    summary: str


def histogram(timeline: Timeline, form: PageForm, language: Language) -> Histogram | None:
    """Draw articles over time; None if they fit in one step, or have years that `datetime` cannot hold."""
    steps = timeline.steps
    if len(steps) < 2 or "T" not in steps[0].start or "T" not in steps[-1].end:
        return None
    merged = [
        steps[at].model_copy(update={"articles": sum(each.articles for each in some), "end": some[-1].end})
        for at in range(0, len(steps), _STEPS_OF_WIDE_BARS)
        if (some := steps[at : at + _STEPS_OF_WIDE_BARS])
    ]
    ends = steps[0].start, datetime.fromisoformat(steps[-1].end) - _MS
    days = [language.day(each) for each in ends]
    # If both ends are on one day, show times instead.
    begin, end = days if days[0] != days[1] else [language.moment(each) for each in ends]
    return Histogram(
        bars=_linked_bars(steps, form, language),
        wide_bars=_linked_bars(merged, form, language),
        begin=begin,
        end=end,
    )


def draw(timeline: Timeline, language: Language) -> Drawing | None:
    """Draw a timeline; None if it has fewer than two steps, or years that `datetime` cannot hold."""
    steps = timeline.steps
    if len(steps) < 2 or "T" not in steps[0].start or "T" not in steps[-1].start:
        return None
    _, step, counts = language.gettext, 100 / len(steps), [each.articles for each in steps]
    most, peak_at = max(counts), counts.index(max(counts))
    bars = [
        Bar(
            **place,
            label=_(
                "%(articles)s from %(time)s",
                articles=_articles(counts[at], language),
                time=language.moment(steps[at].start),
            ),
            is_first=at == 0,
            is_peak=most > 1 and at == peak_at,
        )
        for at, place in _bar_places(
            counts, step=step, width=step * (1 - _GAP), height=100, least=_MIN_PERCENT, digits=2
        )
    ]
    first = timeline.earliest and cut(source_names(timeline.earliest.source), _LONGEST_NAME)
    peak = None
    if most > 1:
        is_left = peak_at * step > 50
        text = _(
            "most: %(articles)s within %(length)s",
            articles=_articles(most, language),
            length=language.length(timeline.interval_ms),
        )
        peak = Mark(x=round((peak_at + (1 - _GAP) * is_left) * step, 2), is_left=is_left, text=text)
    return Drawing(
        bars=bars,
        first=Mark(x=0, is_left=False, text=_("first: %(source)s", source=first)) if first else None,
        peak=peak,
        summary=_summary(timeline, peak_at, language),
    )


def curve(counts: Sequence[int]) -> str:
    """Return the path of an SVG that draws counts as bars; empty if all counts are 0."""
    if not any(counts):
        return ""
    step, most = CURVE_WIDTH / len(counts), max(counts)
    bars = []
    for at, count in enumerate(counts):
        if count:
            height = max(_CURVE_MIN_HEIGHT, round(CURVE_HEIGHT * count / most))
            bars.append(f"M{at * step:g} {CURVE_HEIGHT}v-{height}h{step - _CURVE_GAP:g}v{height}")
    return "".join(bars)


def _bar_places(
    counts: Sequence[int], *, step: float, width: float, height: float, least: float, digits: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the index of each count above 0, and its bar's place; `least` is the minimum height of a bar."""
    most = max(counts)
    for at, count in enumerate(counts):
        if count:
            up = max(least, height * count / most)
            place = {"x": at * step, "y": height - up, "width": width, "height": up}
            yield at, {name: round(value, digits) for name, value in place.items()}


def _linked_bars(steps: Sequence[TimelineStep], form: PageForm, language: Language) -> list[Bar]:
    _, step, bars = language.gettext, _WIDTH / len(steps), []
    counts = [each.articles for each in steps]
    for at, place in _bar_places(
        counts, step=step, width=step - _PIXELS_BETWEEN, height=HISTOGRAM_HEIGHT, least=_MIN_PIXELS, digits=1
    ):
        start, end = (datetime.fromisoformat(each) for each in (steps[at].start, steps[at].end))
        is_days = start.time() == end.time() == time.min
        first, last = map(language.day if is_days else language.moment, (start, end - _MS))
        if not is_days and start.date() == (end - _MS).date():
            last = f"{end - _MS:%H:%M}"
        time_range = first if first == last else _("%(first)s to %(last)s", first=first, last=last)
        label = _("%(articles)s: %(time)s", articles=_articles(counts[at], language), time=time_range)
        if is_days:
            parameters = form.changed(since=str(start.date()), until=str((end - _MS).date()), period="")
        else:
            since, until = start.isoformat(timespec="minutes"), (end - _MS).isoformat(timespec="milliseconds")
            parameters = form.changed(since=since, until=until, period="")
        bars.append(Bar(**place, label=label, reach=round(step, 2), parameters=parameters))
    return bars


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


def _articles(count: int, language: Language) -> str:
    number = language.number(count)
    return language.ngettext("%(number)s article", "%(number)s articles", count, number=number)
