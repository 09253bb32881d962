"""Precision and recall against the threshold, drawn."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.detection import Detection

_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red")


def draw(curves: Sequence[Detection], path: Path) -> None:
    """Write a picture, of the kind that the name of its file says; a column a set."""
    sets = list(dict.fromkeys(each.case for each in curves))
    methods = list(dict.fromkeys(each.method for each in curves))
    figure = Figure(figsize=(4.5 * len(sets), 6), layout="constrained")
    panels = figure.subplots(2, len(sets), sharex=True, sharey=True, squeeze=False)
    for column, name in enumerate(sets):
        for row, measure in enumerate(("precision", "recall")):
            panel = panels[row][column]
            for method, colour in zip(methods, _COLOURS, strict=False):
                points = [each for each in curves if each.case == name and each.method == method]
                thresholds = [each.threshold for each in points if each.threshold is not None]
                shares = [getattr(each, measure) for each in points]
                panel.plot(thresholds, [share.value for share in shares], color=colour, label=method)
                panel.fill_between(
                    thresholds,
                    [share.low for share in shares],
                    [share.high for share in shares],
                    color=colour,
                    alpha=0.15,
                    linewidth=0,
                )
            panel.set_title(f"{name}: {measure}")
            panel.set_ylim(0, 1.02)
            panel.grid(alpha=0.3)
    figure.supxlabel("threshold (of verified: the least resemblance); bands: 95% intervals")
    handles, names = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names))
    figure.savefig(path)
