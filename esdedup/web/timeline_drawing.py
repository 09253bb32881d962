"""A bar chart of a timeline. Pure."""

import dataclasses
from datetime import datetime, timedelta

from esdedup.reading.results import Timeline

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


def draw(timeline: Timeline) -> Drawing | None:
    """Draw a timeline; None if it has fewer than two steps, or times outside the calendar."""
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
                label=f"{_articles(each_step.articles)} from {readable(each_step.start)}",
            )
        )
    end = readable(_after(steps[-1].start, timeline.interval_ms))
    peak = max(steps, key=lambda each: each.articles)
    total = sum(each.articles for each in steps)
    return Drawing(
        bars=bars,
        begin=readable(steps[0].start),
        end=end,
        summary=(
            f"{_articles(total)} between {readable(steps[0].start)} and {end}; "
            f"peak: {peak.articles:,} in the {_length(timeline.interval_ms)} from {readable(peak.start)}"
        ),
    )


def readable(moment: str) -> str:
    """Write an ISO 8601 moment as pages show it; any other text is returned unchanged."""
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
        # Beyond the last year of the calendar.
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
