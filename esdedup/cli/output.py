"""Prints the results of commands: tables for people, JSON for scripts; and progress bars."""

import contextlib
import contextvars
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pydantic
import rich.box
import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table

from esdedup.cli.messages import json_line, said_if_interrupted, say, visible
from esdedup.errors import FieldsNotFound
from esdedup.text.left_out import LeftOut
from esdedup.times import time_ms, zone_named

if TYPE_CHECKING:
    from esdedup.reading.results import Article, Page, SimilarArticle, SimilarPage, SourcesPage, StoryPage

_Answer = TypeVar("_Answer", bound=pydantic.BaseModel)

# A context manager that yields a function, which adds to the progress.
_Bar = contextlib.AbstractContextManager[Callable[[int], None]]

_WIDTH_WITHOUT_TERMINAL = 120
_SOURCE_WIDTH = 20
_MIN_TITLE_WIDTH = 12
_MAX_LINES_LEFT_OUT = 20
# The number of digits that suffice to distinguish the roots on one page.
_ROOT_WIDTH = 8
_LONGEST_PASSAGE = 160
# Wider than any screen, and longer than any id; a title may be as long as an article.
_LONGEST_CELL = 1_000
# Marks a date that is too far from the article's arrival.
_DOUBT = "?"


# The time zone in which times are printed.
_ZONE: contextvars.ContextVar[tzinfo] = contextvars.ContextVar("zone", default=UTC)


def show_times_in(zone: str) -> str:
    """Set the time zone in which times are printed; return its name."""
    _ZONE.set(zone_named(zone))
    return zone


class _VisibleConsole(Console):
    """Escapes control sequences in all text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield segments; only rich's own control segments are not escaped."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def console(*, stderr: bool = False) -> Console:
    """Return a console; if the output is not a terminal, the console is 120 characters wide."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL
    return _VisibleConsole(stderr=stderr, width=width, highlight=False, soft_wrap=False)


def show(renderable: RenderableType, *, markup: bool = True, wrap: bool = True) -> None:
    """Print to standard output; without `markup`, brackets and ``:cat:`` are literal."""
    console().print(renderable, markup=markup, emoji=markup, soft_wrap=not wrap)


def file_progress(what: str, total_bytes: int | None) -> _Bar:
    """Show a progress bar for the bytes read, on a terminal only; yield a function that adds bytes."""
    return _progress(what, total_bytes, TaskProgressColumn(), DownloadColumn())


def count_progress(what: str, total: int | None) -> _Bar:
    """Show a progress bar for a count, on a terminal only; yield a function that adds to the count."""
    return _progress(what, total, MofNCompleteColumn())


def download_progress(name: str, size: int) -> _Bar:
    """Show the download of a file: a bar on a terminal, which disappears afterwards, otherwise a line."""
    if not sys.stderr.isatty() and name.endswith(".jar"):
        say(f"  downloading {name} ({size / 1e6:.1f} MB)")
    return _progress(f"downloading {name}", size, DownloadColumn(), is_transient=True)


@contextlib.contextmanager
def _progress(
    what: str, total: int | None, *columns: ProgressColumn, is_transient: bool = False
) -> Iterator[Callable[[int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), *columns, TimeElapsedColumn())
    is_shown, shown_on = sys.stderr.isatty(), console(stderr=True)
    with Progress(
        *columns, TimeRemainingColumn(), console=shown_on, disable=not is_shown, transient=is_transient
    ) as progress:
        task = progress.add_task(what, total=total)
        of = "" if total is None else f" of {total:,}"
        with said_if_interrupted(lambda: say(f"{what}: {progress.tasks[0].completed:,.0f}{of}")):
            yield lambda count: progress.update(task, advance=count)


def print_json(value: dict[str, Any]) -> None:
    """Print a JSON object on one line, with characters unsafe in a terminal as JSON escapes."""
    typer.echo(json_line(value))


def print_line(line: str, values: dict[str, Any], *, json: bool) -> None:
    """Print a line or, as JSON, its values."""
    typer.echo(json_line(values) if json else line)


def print_answer(answer: _Answer, print_table: Callable[[_Answer], None], *, json: bool) -> None:
    """Print a result as JSON, or by `print_table`."""
    if json:
        print_json(answer.model_dump(mode="json"))
    else:
        print_table(answer)


def print_summary(title: str, counts: dict[str, Any], *, json: bool, **others: object) -> None:
    """Print the counts of a run under a title, or as JSON together with `others`."""
    if json:
        print_json(others | counts)
    else:
        print_counts(title, counts)


@contextlib.contextmanager
def reported(report: Callable[[], None], *, index: str) -> Iterator[None]:
    """Call `report` however the run ends, unless it could not begin because articles lack fields."""
    is_reported = False
    try:
        with said_if_interrupted(report):
            yield
    except FieldsNotFound as error:
        error.index, is_reported = index, True
        raise
    except KeyboardInterrupt:
        is_reported = True
        raise
    finally:
        if not is_reported:
            report()


def print_counts(title: str, counts: dict[str, Any]) -> None:
    """Print a title, then each name with its count."""
    show(f"[italic]{escape(title)}[/italic]")
    show(_grid([(name.replace("_", " "), f"{count:,}") for name, count in counts.items()], numbers=(1,)))


def print_facts(facts: Mapping[str, str]) -> None:
    """Print named values, one per line; long values are wrapped."""
    show(_grid(list(facts.items())))


def print_stage(title: str, lines: Sequence[tuple[str, ...]]) -> None:
    """Print a heading and rows with the same number of cells; long cells in the last column are wrapped."""
    show(f"[bold]{escape(title)}[/bold]")
    show(Padding(_grid(lines), (0, 0, 1, 2), expand=False))


def print_table(
    title: str | None,
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Collection[int] = (1,),
) -> None:
    """Print a table; the columns at the positions in `numbers` are aligned to the right."""
    table = Table(title=title, title_justify="left", box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(names):
        table.add_column(name, justify="right" if at in numbers else "left", no_wrap=at in numbers)
    for row in rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else escape(str(cell)) for cell in row))
    show(table)


def _grid(rows: Sequence[tuple[str, ...]], *, numbers: Collection[int] = ()) -> Table:
    """Return a table without a heading; long cells in the last column are wrapped."""
    table = Table.grid(padding=(0, 2))
    last = len(rows[0]) - 1 if rows else 0
    for at in range(last + 1):
        justify: Literal["left", "right"] = "right" if at in numbers else "left"
        table.add_column(justify=justify, no_wrap=at < last, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def printable(text: object) -> str:
    """Return `text` as a string, with unprintable characters replaced by spaces."""
    return "".join(each if each.isprintable() else " " for each in str(text))


def passage(text: str) -> str:
    """Return a passage on one line, truncated after 160 characters."""
    line = " ".join(printable(text).split())
    return f"{line[:_LONGEST_PASSAGE]}…" if len(line) > _LONGEST_PASSAGE else line


def print_page(page: "Page") -> None:
    """Print a page of the list as a table."""
    about = "" if page.total_rows_exact else "about "
    pages = max(1, -(-page.total_rows // page.size))
    lines = [
        f"page {page.page} of {about}{pages:,}: {about}{page.total_rows:,} rows "
        f"for {page.total_articles:,} articles, by {page.sort}"
    ]
    if page.not_enriched:
        lines.append(
            f"{page.not_enriched:,} more articles match, but are not shown, since they are not enriched yet: "
            "index them again with `esdedup index`, or through `Dedup.enrich`"
        )
    lines += _left_out_indices(page.not_set_up)
    if not page.order_exact:
        lines.append("The order by number of similar articles is approximate: the index has several shards.")
    if page.cut_short:
        lines.append("Few of the articles searched belong in this list. The next page continues the search.")
    rows = [(f"+{row.similar}" if row.similar else "", row) for row in page.rows]
    _print_found("similar", rows, lines, cursor=page.next)


def print_similar(page: "SimilarPage") -> None:
    """Print the similar articles as a table."""
    rows = [(_likeness(article), article) for article in page.rows]
    lines = [left_out_words(page.left_out)] if page.left_out is not None and page.left_out.passages else []
    lines.append(
        "the text would join no existing cluster"
        if page.root is None
        else f"{page.total:,} similar articles under root {page.root}"
    )
    _print_found("likeness", rows, [*lines, *excerpt_lines(page)], cursor=page.next)


def print_articles(page: "SimilarPage") -> None:
    """Print the articles of a cluster, or the articles with a fingerprint, as a table."""
    rows = [((article.root or "")[:_ROOT_WIDTH], article) for article in page.rows]
    lines = [f"articles: {page.total:,}", *excerpt_lines(page)]
    _print_found("root", rows, lines, cursor=page.next)


def print_sources(page: "SourcesPage") -> None:
    """Print the sources of similar articles as a table, with the earliest article of each."""
    rows = [(str(each.articles), each.earliest) for each in page.sources]
    found = f"{page.total:,} similar articles from {page.total_sources:,} sources under root {page.root}"
    _print_found("articles", rows, [found, *excerpt_lines(page)])


def excerpt_lines(page: "StoryPage") -> list[str]:
    """Return lines that follow a cluster's articles: excerpts, and whether the cluster is a placeholder."""
    lines, whole, excerpts = _left_out_indices(page.not_set_up), page.excerpt_of, page.excerpts
    if page.is_placeholder:
        lines.append(
            "probably a placeholder: its titles are unrelated; --overrides can declare it boilerplate"
        )
    if whole is not None:
        lines.append(f"quotes part of root {escape(whole.root)}, articles: {whole.articles:,}")
        lines += [] if whole.first is None else [_named(whole.first)]
    if excerpts.clusters:
        number = f"{excerpts.clusters:,} clusters, articles: {excerpts.articles:,}"
        lines.append(f"also quoted in part by {number}")
        lines += map(_named, excerpts.rows)
    return lines


def _left_out_indices(names: Sequence[str]) -> list[str]:
    line = "left out, since it was not set up: {0}; `esdedup setup {0}` sets it up, unless it is a forest"
    return [line.format(name) for name in names]


def _named(article: "Article") -> str:
    _, source, title, article_id = _article_cells(article)
    return f"  {source}: {title} ({article_id})"


def left_out_words(left_out: LeftOut) -> str:
    """Return how much of a text is left out, in words."""
    if not left_out.passages:
        return "nothing is left out as boilerplate"
    return (
        f"{left_out.passages:,} of {left_out.of_passages:,} passages are left out as boilerplate: "
        f"{left_out.letters:,} of {left_out.of_letters:,} letters and digits"
    )


def left_out_lines(left_out: LeftOut) -> list[str]:
    """Return a line about how much of a text is left out, and the lines that are left out."""
    lines = [line for span in left_out.spans for line in span.text.splitlines() if line.strip()]
    more = len(lines) - _MAX_LINES_LEFT_OUT
    shown = [left_out_words(left_out), *map(passage, lines[:_MAX_LINES_LEFT_OUT])]
    return [*shown, f"and {more:,} more lines"] if more > 0 else shown


def _likeness(article: "SimilarArticle") -> str:
    if article.resemblance is not None:
        return f"{article.resemblance:.0%}"
    return "" if article.distance_bits is None else f"{article.distance_bits} bits"


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, which may have markup."""
    for line in lines:
        show(line)


def _print_found(
    name: str,
    rows: "Sequence[tuple[str, Article]]",
    lines: Iterable[str],
    *,
    cursor: str | None = None,
) -> None:
    """Print a table of articles, with the given first cells, then `lines`; titles may be truncated to fit."""
    table = Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    longest_id = max((len(article.id) for _, article in rows), default=0)
    table.add_column(name, justify="right", no_wrap=True)
    table.add_column("published", no_wrap=True)
    table.add_column("source", max_width=_SOURCE_WIDTH, no_wrap=True, overflow="ellipsis")
    # The width of all other columns: the widest first heading, the time, gaps and edges.
    taken = sum(map(len, ("articles", "2026-01-01 00:00?", 4 * "   ", "  "))) + _SOURCE_WIDTH + longest_id
    width = max(_MIN_TITLE_WIDTH, console().width - taken)
    table.add_column("title", max_width=width, no_wrap=True, overflow="ellipsis")
    table.add_column("id", no_wrap=True, overflow="fold")
    for cell, article in rows:
        table.add_row(cell, *_article_cells(article))
    if rows:
        show(table)
    if any(_is_doubtful(article) for _, article in rows):
        show(f"{_DOUBT} implausible date: sorted and counted by the time of arrival")
    print_lines(lines)
    if cursor is not None:
        show(f"next page: --after {cursor}", wrap=False)


def _article_cells(article: "Article") -> tuple[str, ...]:
    sources = article.source if isinstance(article.source, list) else [article.source]
    source = ", ".join(str(each) for each in sources if each is not None)
    moment = _moment(article.published_at) + _DOUBT * _is_doubtful(article)
    cells = (moment, source, article.title or "", article.id)
    return tuple(escape(printable(cell[:_LONGEST_CELL])) for cell in cells)


def _is_doubtful(article: "Article") -> bool:
    return article.arrived_at is not None and article.published_at is not None


def _moment(published_at: object) -> str:
    milliseconds = time_ms(published_at)
    if milliseconds is None:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, _ZONE.get()).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return str(published_at)
