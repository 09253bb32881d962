"""The tiny curve of a cluster's spread, as the path of an SVG. Pure."""

from collections.abc import Sequence

WIDTH, HEIGHT = 96, 20
_GAP = 1
# A single article among many must remain visible.
_MIN_HEIGHT = 2


def path(counts: Sequence[int]) -> str:
    """Return the bars of counts in equal spans of time; empty if there are none."""
    if not any(counts):
        return ""
    step, most = WIDTH / len(counts), max(counts)
    bars = []
    for at, count in enumerate(counts):
        if count:
            height = max(_MIN_HEIGHT, round(HEIGHT * count / most))
            bars.append(f"M{at * step:g} {HEIGHT}v-{height}h{step - _GAP:g}v{height}")
    return "".join(bars)
