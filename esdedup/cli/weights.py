"""`esdedup weights`: a table of word weights from one's own articles."""

import itertools
from pathlib import Path
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.messages import say, say_rejected
from esdedup.cli.output_file import opened_output
from esdedup.cli.word_options import Cut
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.fingerprint.profile import MAX_TEXT_LENGTH
from esdedup.ingest.files import read_articles
from esdedup.ingest.records import check_readable, total_bytes
from esdedup.ingest.word_files import Weighing


@command("weights", example="esdedup weights news.jsonl --output weights.json")
def weights(
    files: options.Files,
    *,
    output_file: Annotated[
        Path | None, typer.Option("--output", help="File to write to. Default: standard output.")
    ] = None,
    min_articles: Annotated[
        int,
        typer.Option(
            "--min-articles",
            min=1,
            help="Leave out words that occur in fewer articles; they weigh the median, as unknown words do.",
        ),
    ] = 2,
    cut: Cut,
    id_field: options.IdField = "id",
    text_field: options.TextField = "text",
) -> None:
    """Make a table of word weights from articles, for --weights.

    A word weighs the more, the fewer articles it is in: ln((articles + 1) / articles with it). Give the
    same --segmenter and --dictionary with the table as here.
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
