"""`esdedup cluster` and `esdedup weights`: clusters and word weights from files, without Elasticsearch."""

import collections
import functools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.files import opened_output, row_writer
from esdedup.cli.messages import say, say_cut, say_rejected
from esdedup.errors import ArticleRejected, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint import MAX_TEXT_LENGTH
from esdedup.fingerprint.document_frequencies import DocumentFrequencies
from esdedup.ingest import word_files
from esdedup.ingest.cluster import ClusteredArticle, Clustering
from esdedup.ingest.files import read_articles
from esdedup.ingest.learn import check_two_passes, first_pass, two_passes
from esdedup.ingest.records import STANDARD_INPUT, check_readable, total_bytes
from esdedup.ingest.settings import Cut, Threads
from esdedup.text.segmenters import JIEBA


@command("cluster", example="esdedup cluster news.jsonl --output roots.jsonl")
def cluster(
    files: options.Files,
    *,
    output_file: options.OutputFile = None,
    time_field: Annotated[str | None, typer.Option(rich_help_panel=options.FIELD_NAMES)] = None,
    site_field: Annotated[
        str | None,
        typer.Option(
            "--site-field",
            help=f"The site. Default: the host in {Fields.link}, or {Fields.source}.",
            rich_help_panel=options.FIELD_NAMES,
        ),
    ] = None,
    retention_days: Annotated[float | None, typer.Option(min=0.001, max=1_000_000)] = None,
    keep: Annotated[Literal["first", "longest"] | None, typer.Option()] = None,
    state: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    learn_first: options.LearnFirst = False,
    threads: Threads,
    fingerprinting: options.Fingerprinting,
    id_field: options.IdField = "id",
    text_field: options.TextField = "text",
) -> None:
    """Cluster the articles of files in memory, in the order of their lines.

    Writes a line for each article: its id; its root, which articles of a story share; whether it is the
    story's original; part_of and has_part, an earlier root whose text contains this root's text or is
    contained in it; and its fingerprint. Root and fingerprint are null if the text had no fingerprint when it
    first occurred. --output NAME.csv writes CSV, and NAME.parquet writes Parquet; .gz, .bz2, .xz and .zst
    compress.

    Options:
        keep: Instead, write one article of each story, with all its fields as they were read: its original,
            or the longest of these files.
        time_field: The publication time. Default: articles have no time, and nothing expires.
        retention_days: With --time-field: for how many days after its last article a cluster accepts more
            articles. Default: 30.
        state: Continue the clusters in this file, and replace it at the end; if it does not exist, create it.
    """
    if retention_days is not None and time_field is None:
        raise SettingError("--retention-days requires --time-field: without a time, nothing expires")
    if state == STANDARD_INPUT:
        raise SettingError("--state names a file that is read and then replaced: - cannot be used")
    profile, overrides = fingerprinting.read_profile(), fingerprinting.overrides()
    fields = Fields(text=text_field, time=time_field or Fields.time, site=site_field)
    check_readable(files)
    if learn_first:
        check_two_passes(files, profile)
    run = _Run(on_cut=say_cut)
    written, roots, counts = 0, set[str](), collections.Counter[str]()
    with (
        opened_output(output_file, [*files, *([state] if state else [])]) as target,
        tempfile.SpooledTemporaryFile(max_size=10_000_000) as scratch,
        output.file_progress("clustering", total_bytes(files * (1 + learn_first))) as on_bytes,
    ):
        kept = _Kept(scratch, is_longest=keep == "longest") if keep else None
        columns = [name for name, each in ClusteredArticle.model_fields.items() if not each.exclude]
        if kept is None:
            write = row_writer(target, output_file, columns)
        clustering = Clustering(
            profile=profile,
            overrides=overrides,
            fields=fields,
            use_time=time_field is not None,
            retention=timedelta(days=retention_days) if retention_days else None,
            state=state,
            on_rejected=run.reject,
            on_cut=run.cut_off,
            workers=threads.workers,
        )
        read = functools.partial(
            read_articles, files, fields=fields, id_field=id_field, on_bytes=on_bytes, all_columns=bool(keep)
        )
        for first, articles in two_passes(read, learn_first=learn_first):
            first_pass(clustering.learn, first, fields)
            for source, article in clustering.pairs(articles):
                written += 1
                if kept is None:
                    write(article.model_dump())
                else:
                    kept.add(article, source.fields)
                if article.root is not None:
                    roots.add(article.root)
                counts["without a fingerprint"] += article.root is None
                counts["undated"] += article.is_undated
                counts["with boilerplate"] += article.boilerplate_letters > 0
                counts["letters left out as boilerplate"] += article.boilerplate_letters
        if kept is not None:
            names = dict.fromkeys(name for row in kept.rows() for name in row)
            write = row_writer(target, output_file, names)
            for row in kept.rows():
                write(row)
    # Saved after the output is complete: until then, a repeated run gives the same output.
    clustering.save()
    others = _nonzero({"cut": run.cut, **counts})
    say(f"{run.summary(written, 'clustered')}, {len(roots):,} roots{others}")
    if run.failed:
        raise typer.Exit(1)


class _Kept:
    """One article of each story, with all its fields, in a temporary file."""

    def __init__(self, scratch: IO[bytes], *, is_longest: bool) -> None:
        self._is_longest = is_longest
        self._file = scratch
        # The length of each story's article, and its place in the file.
        self._places: dict[str, tuple[int, int]] = {}

    def add(self, article: ClusteredArticle, record: dict[str, Any]) -> None:
        key = article.root or f"~{article.id}"
        longest, _ = self._places.get(key, (-1, 0))
        if article.length > longest if self._is_longest else article.is_original:
            self._places[key] = (article.length, self._file.tell())
            self._file.write(json.dumps(record).encode() + b"\n")

    def rows(self) -> Iterator[dict[str, Any]]:
        for _, place in self._places.values():
            self._file.seek(place)
            yield json.loads(self._file.readline())


class _Run:
    """Counts and reports the articles that are rejected or truncated."""

    def __init__(self, *, on_cut: Callable[[str], None]) -> None:
        self.failed = self.cut = 0
        self._on_cut = on_cut

    def reject(self, rejected: ArticleRejected) -> None:
        self.failed += 1
        say_rejected(rejected)

    def cut_off(self, name: str) -> None:
        self.cut += 1
        self._on_cut(name)

    def summary(self, count: int, done: str) -> str:
        return f"{count + self.failed:,} read, {count:,} {done}, {self.failed:,} failed"


def _nonzero(counts: Mapping[str, int]) -> str:
    return "".join(f", {count:,} {name}" for name, count in counts.items() if count)


@command("weights", example="esdedup weights news.jsonl --output weights.json")
def weights(
    files: options.Files,
    *,
    output_file: options.OutputFile = None,
    min_articles: Annotated[int, typer.Option(min=1)] = 2,
    cut: Cut,
    id_field: options.IdField = "id",
    text_field: options.TextField = "text",
) -> None:
    """Compute a table of word weights from articles, for --weights.

    The rarer a word is, the more it weighs: ln((N + 1) / n) if n of the N articles contain it. --segmenter
    and --dictionary must be the same when the table is used.

    Options:
        min_articles: Leave out words that occur in fewer articles; like unknown words, they get the median
            weight.
    """
    segmenter = word_files.read_segmenter(cut.segmenter, cut.dictionary) or JIEBA
    for line in word_files.dictionary_words_never_cut(segmenter):
        say(line)
    fields = Fields(text=text_field)
    check_readable(files)
    run = _Run(
        on_cut=lambda name: say(
            f"{name}: only the first {MAX_TEXT_LENGTH:,} characters of its text are counted"
        )
    )
    found = DocumentFrequencies(segmenter, max_text_length=MAX_TEXT_LENGTH)
    with output.file_progress("counting words", total_bytes(files)) as on_bytes:
        articles = read_articles(files, fields=fields, id_field=id_field, on_bytes=on_bytes)
        word_files.count_words(articles, found, fields=fields, on_rejected=run.reject, on_cut=run.cut_off)
    summary = run.summary(found.text_count, "counted") + _nonzero({"cut": run.cut})
    try:
        table = found.table(min_texts=min_articles)
        with opened_output(output_file, files, endings=[".json"]) as target:
            target.write(word_files.written_weights(table, articles=found.text_count))
        summary += f", {len(table.words):,} words, median weight {table.default}"
    finally:
        say(summary)
    if run.failed:
        raise typer.Exit(1)
