"""A small drawing of how a story spread. Pure."""

import dataclasses
from datetime import datetime, timedelta

from esdedup.reading.results import Timeline

WIDTH, HEIGHT = 640, 96
_GAP = 1.0
# A bar that stands for one article among many is still to be seen.
_LEAST_HEIGHT = 3.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """A step of time, in the units of the drawing."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Drawing:
    """Bars, and what is said of them in words."""

    bars: list[Bar]
    begin: str
    end: str
    summary: str


def draw(timeline: Timeline) -> Drawing | None:
    """Draw a story; None where there is nothing to see: fewer than two steps, or times beyond all years."""
    steps = timeline.steps
    if len(steps) < 2 or not all(map(_is_in_calendar, (steps[0].start, steps[-1].start))):
        return None
    most = max(each.articles for each in steps)
    step = WIDTH / len(steps)
    bars = []
    for at, each_step in enumerate(steps):
        if not each_step.articles:
            continue
        height = max(_LEAST_HEIGHT, HEIGHT * each_step.articles / most)
        bars.append(
            Bar(
                x=round(at * step, 2),
                y=round(HEIGHT - height, 2),
                width=round(max(step - _GAP, 1.0), 2),
                height=round(height, 2),
                label=f"{_articles(each_step.articles)} from {spoken(each_step.start)}",
            )
        )
    end = spoken(_after(steps[-1].start, timeline.interval_ms))
    peak = max(steps, key=lambda each: each.articles)
    total = sum(each.articles for each in steps)
    return Drawing(
        bars=bars,
        begin=spoken(steps[0].start),
        end=end,
        summary=(
            f"{_articles(total)} between {spoken(steps[0].start)} and {end}; "
            f"most of them, {peak.articles:,}, in the {_length(timeline.interval_ms)} "
            f"from {spoken(peak.start)}"
        ),
    )


def spoken(moment: str) -> str:
    """Write a moment in ISO 8601 as pages show it; what is none stays as it is."""
    try:
        return datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return moment


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
        # Where the calendar ends.
        return moment


def _articles(count: int) -> str:
    return "1 article" if count == 1 else f"{count:,} articles"


def _length(interval_ms: int) -> str:
    minutes = interval_ms // 60_000
    for size, name in ((1_440, "day"), (60, "hour"), (1, "minute")):
        if minutes % size == 0:
            count = minutes // size
            return name if count == 1 else f"{count} {name}s"
    return f"{minutes} minutes"
