"""The benchmark `month`, its table, and its picture, which `python -m benchmarks.month.table` draws."""

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from elasticsearch import Elasticsearch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import results, server
from benchmarks.month.arrivals import HOT_DAY, Arrival, Month
from benchmarks.month.owner import FOREST, RETENTION, Fed, Owner
from benchmarks.rows import Row
from benchmarks.server import Run
from esdedup.elastic.article_indices import Articles

ARTICLES_A_DAY = 10_000
DAYS = 30
TABLE, FLAT = "month", "month: is it flat?"
# Halfway through these days, counted from 0, the owner is killed, and another process takes over the forest.
KILLED_DAYS = (5, 12, 19, 26)
_INDEX = "benchmark-month"
# The first compared day, counted from 0; expiry has begun before it.
_FIRST = RETENTION.days + 2
_MEGABYTE = 1e6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Day:
    """The costs of one day, and the state at its end."""

    table: str
    number: int
    fed: Fed
    # The time until the next owner had all nodes in memory; None if the owner was not killed.
    opening_s: float | None
    forest_bytes: int
    documents: int
    deleted: int

    @property
    def node_bytes(self) -> int:
        """The memory of nodes and content hashes."""
        return self.fed.contents.memory_bytes - self.fed.contents.learned_bytes

    @property
    def articles_a_second(self) -> float:
        """The rate of feeding, including the time for deletions."""
        return self.fed.articles / (sum(self.fed.batches_s) + self.fed.expiring_s)

    @property
    def batch_ms_per_article(self) -> float:
        """The batch time per article. Batches differ in size, since each has the articles of half an hour."""
        return sum(self.fed.batches_s) / self.fed.articles * 1_000

    @property
    def slowest_ms(self) -> float:
        return max(self.fed.batches_s) * 1_000

    def cells(self) -> dict[str, str]:
        fed, contents = self.fed, self.fed.contents
        return {
            "day": str(self.number + 1),
            "articles": f"{fed.articles:,}",
            "nodes": f"{contents.nodes:,}",
            "expired": f"{fed.expired:,}",
            "forest, MB": f"{self.forest_bytes / _MEGABYTE:.1f}",
            "deleted documents": f"{self.deleted:,}",
            "memory of nodes, MB": f"{self.node_bytes / _MEGABYTE:.1f}",
            "of boilerplate, MB": f"{contents.learned_bytes / _MEGABYTE:.1f}",
            "resident, MB": f"{fed.resident_bytes / _MEGABYTE:,.0f}",
            "articles/s": f"{self.articles_a_second:,.0f}",
            "batch, p50, ms": f"{statistics.median(fed.batches_s) * 1_000:,.0f}",
            "slowest, ms": f"{self.slowest_ms:,.0f}",
            "deleting, s": f"{fed.expiring_s:.2f}",
            "": self._event,
        }

    @property
    def _event(self) -> str:
        if self.opening_s is not None:
            return f"owner killed; the next one ready after {self.opening_s:.1f} s"
        return "a hot story" if self.number == HOT_DAY else ""


def month(run: Run) -> Sequence[Day | Row]:
    """Feed arrivals of thirty days, with a retention of seven days; compare days after the first seven."""
    with server.client(run, lifetime_s=7_200) as client:
        days = list(days_of(client, articles_a_day=run.size(ARTICLES_A_DAY)))
    return [*days, *flatness(days)]


def days_of(client: Elasticsearch, *, articles_a_day: int, days: int = DAYS) -> Iterator[Day]:
    """Yield the costs of each day."""
    url = server.url_of(client)
    _delete(client)
    owner = Owner(url)
    try:
        owner.open()
        for number, arrivals in enumerate(Month(articles_a_day).days(days)):
            index = f"{_INDEX}-{number}"
            Articles(client).setup(index)
            opening_s = None
            first, rest = _halves(arrivals) if number in KILLED_DAYS else (arrivals, [])
            fed = owner.feed(first, index=index)
            if rest:
                owner.kill()
                owner = Owner(url)
                opening_s = owner.open()
                fed = owner.feed(rest, index=index).after(fed)
            old = number - RETENTION.days
            client.options(ignore_status=404).indices.delete(index=f"{_INDEX}-{old}")
            yield Day(table=TABLE, number=number, fed=fed, opening_s=opening_s, **_stored(client))
    finally:
        owner.kill()
        _delete(client)


def flatness(days: Sequence[Day]) -> Iterator[Row]:
    """Compare the later half of the days after the first retention period with the earlier half."""
    after = days[_FIRST:]
    half = len(after) // 2
    if not half:
        return
    measures: dict[tuple[str, str], Sequence[float]] = {
        ("nodes", ""): [each.fed.contents.nodes for each in after],
        ("disk of the forest", "MB"): [each.forest_bytes / _MEGABYTE for each in after],
        ("memory of nodes", "MB"): [each.node_bytes / _MEGABYTE for each in after],
        ("articles", "/s"): [each.articles_a_second for each in after],
        ("time of a batch, an article", "ms"): [each.batch_ms_per_article for each in after],
    }
    for (what, unit), values in measures.items():
        before, then = statistics.fmean(values[:half]), statistics.fmean(values[half:])
        first, last = _FIRST + 1, len(days)
        yield Row(
            table=FLAT,
            case=f"{what}, days {first + half} to {last} over days {first} to {first + half - 1}",
            ours=then,
            theirs=before,
            ratio=then / before,
            unit=unit,
            against="the earlier days",
        )


def _halves(arrivals: list[Arrival]) -> tuple[list[Arrival], list[Arrival]]:
    return arrivals[: len(arrivals) // 2], arrivals[len(arrivals) // 2 :]


def _stored(client: Elasticsearch) -> dict[str, Any]:
    client.indices.refresh(index=FOREST)
    client.indices.flush(index=FOREST)
    primaries = client.indices.stats(index=FOREST)["_all"]["primaries"]
    return {
        "forest_bytes": primaries["store"]["size_in_bytes"],
        "documents": primaries["docs"]["count"],
        "deleted": primaries["docs"]["deleted"],
    }


def _delete(client: Elasticsearch) -> None:
    found = client.indices.get(index=f"{_INDEX}-*", allow_no_indices=True)
    for name in found:
        client.indices.delete(index=name)


PATH = results.ROOT / "docs/month.svg"
# These colours are readable on white and on black.
_INK, _COLOURS = "#808080", ("#2f7ed8", "#e07b39", "#3a9d5d")
# The panels, each with its title and the columns that are drawn in it.
_PANELS: Sequence[tuple[str, Sequence[str]]] = (
    ("nodes", ("nodes",)),
    ("disk of the forest, MB", ("forest, MB",)),
    ("memory, MB", ("memory of nodes, MB", "of boilerplate, MB", "resident, MB")),
    ("articles per second", ("articles/s",)),
    ("time to index half an hour of articles, ms", ("batch, p50, ms", "slowest, ms")),
    ("articles of the day, and nodes and pages that expired", ("articles", "expired")),
)


def draw(days: Sequence[Mapping[str, str]], path: Path) -> None:
    """Write a picture; the suffix of `path` determines its format.

    Args:
        days: The rows of the table.
        path: The file.
    """
    numbers = [int(each["day"]) for each in days]
    figure = Figure(figsize=(10, 8), layout="constrained")
    figure.patch.set_alpha(0)
    for panel, (title, columns) in zip(figure.subplots(3, 2, sharex=True).flat, _PANELS, strict=True):
        for column, colour in zip(columns, _COLOURS, strict=False):
            values = [float(each[column].replace(",", "")) for each in days]
            panel.plot(numbers, values, color=colour, label=column, marker=".", markersize=4)
        _style(panel, title, has_legend=len(columns) > 1)
        panel.axvline(RETENTION.days, color=_INK, linestyle=":", linewidth=1)
        for each in days:
            if each[""]:
                panel.axvline(int(each["day"]), color=_INK, linestyle="-", linewidth=0.5, alpha=0.6)
    figure.supxlabel(
        "day (dotted line: the first retention period ends; solid: the owner is killed, or a hot story)",
        color=_INK,
    )
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _style(panel: Axes, title: str, *, has_legend: bool) -> None:
    panel.set_title(title, color=_INK, fontsize=10)
    panel.set_ylim(bottom=0)
    panel.set_facecolor("none")
    panel.tick_params(colors=_INK)
    panel.grid(color=_INK, alpha=0.25)
    for spine in panel.spines.values():
        spine.set_color(_INK)
    if has_legend:
        panel.legend(labelcolor=_INK, framealpha=0, fontsize=8)


def main(path: Annotated[Path, typer.Argument(help="A PNG or SVG file.")] = PATH) -> None:
    """Draw the month from the file of results."""
    kept = results.load(results.QUOTED)
    if TABLE not in kept:
        raise typer.BadParameter(
            "the file of results has no results of `month`: run the benchmark with --keep"
        )
    draw(kept[TABLE].tables[TABLE], path)


if __name__ == "__main__":
    typer.run(main)
