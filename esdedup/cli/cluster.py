"""`esdedup cluster` and `esdedup weights`: what is made from files, without Elasticsearch."""

import functools
import itertools
import json
from pathlib import Path
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.files import opened_output
from esdedup.cli.messages import say, say_cut, say_rejected
from esdedup.errors import ArticleRejected, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.fingerprinter import WORKERS
from esdedup.fingerprint.profile import MAX_TEXT_LENGTH
from esdedup.forest.model import DEFAULT_RETENTION
from esdedup.ingest.cluster import ClusteredArticle, Clustering
from esdedup.ingest.files import read_articles
from esdedup.ingest.learn import check_two_looks, first_look, looks
from esdedup.ingest.records import check_readable, total_bytes
from esdedup.ingest.word_files import Weighing


@command("cluster", example="esdedup cluster news.jsonl --output roots.jsonl")
def cluster(
    files: options.Files,
    *,
    output_file: Annotated[Path | None, typer.Option("--output")] = None,
    time_field: Annotated[str | None, typer.Option(rich_help_panel="Field names")] = None,
    site_field: Annotated[
        str | None,
        typer.Option(
            "--site-field",
            help=f"The site. Default: the host in {Fields.link}, or {Fields.source}.",
            rich_help_panel="Field names",
            show_default=False,
        ),
    ] = None,
    retention_days: Annotated[float | None, typer.Option(min=0.001)] = None,
    learn_first: options.LearnFirst = False,
    workers: options.Workers = WORKERS,
    fingerprinting: options.Fingerprinting,
    id_field: options.IdField = "id",
    text_field: options.TextField = "text",
) -> None:
    """Cluster the articles of files in memory, in the order of their lines.

    Writes a line {"id", "root", "fingerprint"} for each article; root and fingerprint are null for a text
    that has no fingerprint, and stay so if it comes again.

    Options:
        output_file: File to write to. Default: standard output.
        time_field: The publication time. Default: articles have no time, and nothing expires.
        retention_days: With --time-field: how many days a cluster accepts articles after its last one.
            Default: 30.
    """
    if retention_days is not None and time_field is None:
        raise SettingError("--retention-days goes with --time-field: without a time, nothing expires")
    profile, overrides = fingerprinting.profile(), fingerprinting.overrides()
    fields = Fields(text=text_field, time=time_field or Fields.time, site=site_field)
    check_readable(files)
    if learn_first:
        check_two_looks(files, profile)
    report = _Report()
    with (
        opened_output(output_file, files) as target,
        output.file_progress("clustering", total_bytes(files * (1 + learn_first))) as on_bytes,
    ):
        clustering = Clustering(
            profile=profile,
            overrides=overrides,
            fields=fields,
            use_time=time_field is not None,
            retention=options.retention(retention_days) or DEFAULT_RETENTION,
            on_rejected=report.reject,
            on_cut=report.cut,
            on_undated=say,
            workers=workers,
        )
        read = functools.partial(read_articles, files, fields=fields, id_field=id_field, on_bytes=on_bytes)
        for first, articles in looks(read, learn_first=learn_first):
            first_look(clustering, first, fields)
            for article in clustering.cluster(articles):
                target.write(json.dumps(article.model_dump()) + "\n")
                report.add(article)
    say(str(report))
    if report.failed:
        raise typer.Exit(1)


class _Report:
    """Counts the articles of a run."""

    def __init__(self) -> None:
        self._written = 0
        self.failed = 0
        self._cut = self._undated = self._without_fingerprint = 0
        self._roots: set[str] = set()

    def reject(self, rejected: ArticleRejected) -> None:
        """Count an article that cannot be clustered, and print why."""
        self.failed += 1
        say_rejected(rejected)

    def cut(self, name: str) -> None:
        """Count an article of which only the beginning is compared, and say so."""
        self._cut += 1
        say_cut(name)

    def add(self, article: ClusteredArticle) -> None:
        """Count a clustered article."""
        self._written += 1
        self._undated += article.is_undated
        if article.root is None:
            self._without_fingerprint += 1
        else:
            self._roots.add(article.root)

    def __str__(self) -> str:
        return (
            f"{self._written + self.failed:,} read, {self._written:,} clustered, {self.failed:,} failed, "
            f"{len(self._roots):,} roots"
            + (f", {self._without_fingerprint:,} without a fingerprint" if self._without_fingerprint else "")
            + (f", {self._cut:,} cut" if self._cut else "")
            + (f", {self._undated:,} undated" if self._undated else "")
        )


@command("weights", example="esdedup weights news.jsonl --output weights.json")
def weights(
    files: options.Files,
    *,
    output_file: Annotated[Path | None, typer.Option("--output")] = None,
    min_articles: Annotated[int, typer.Option(min=1)] = 2,
    cut: options.Cut,
    id_field: options.IdField = "id",
    text_field: options.TextField = "text",
) -> None:
    """Make a table of word weights from articles, for --weights.

    A word weighs the more, the fewer articles it is in: ln((articles + 1) / articles with it). Give the
    same --segmenter and --dictionary with the table as here.

    Options:
        output_file: File to write to. Default: standard output.
        min_articles: Leave out words that occur in fewer articles; they weigh the median, as unknown words
            do.
    """
    segmenter = cut.read_segmenter()
    fields = Fields(text=text_field)
    check_readable(files)
    rejected, cut_off = itertools.count(), itertools.count()

    def reject(article: ArticleRejected) -> None:
        next(rejected)
        say_rejected(article)

    def say_cut_off(name: str) -> None:
        next(cut_off)
        say(f"{name}: only the first {MAX_TEXT_LENGTH:,} characters of its text are counted")

    weighing = Weighing(segmenter=segmenter, fields=fields, on_rejected=reject, on_cut=say_cut_off)
    with output.file_progress("counting words", total_bytes(files)) as on_bytes:
        weighing.add(read_articles(files, fields=fields, id_field=id_field, on_bytes=on_bytes))
    failed, shortened = next(rejected), next(cut_off)
    summary = (
        f"{weighing.article_count + failed:,} read, {weighing.article_count:,} counted, {failed:,} failed"
    )
    summary += f", {shortened:,} cut" if shortened else ""
    try:
        table = weighing.table(min_articles=min_articles)
        with opened_output(output_file, files) as target:
            target.write(weighing.written(table))
        summary += f", {len(table.words):,} words, the median weighs {table.default}"
    finally:
        say(summary)
    if failed:
        raise typer.Exit(1)
