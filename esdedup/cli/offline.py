"""`esdedup cluster` and `esdedup fingerprint`, which need no Elasticsearch."""

import contextlib
import itertools
import json as jsonlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.messages import say, say_rejected
from esdedup.cli.texts import read_plain_text
from esdedup.errors import ArticleRejected, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.simhash import from_hex
from esdedup.forest.model import DEFAULT_RETENTION
from esdedup.ingest.cluster import cluster as cluster_lines
from esdedup.ingest.files import STANDARD_INPUT, check_readable, read_lines, total_bytes
from esdedup.neighbours.explainer import Explainer


@command("cluster", example="esdedup cluster news.jsonl --output roots.jsonl")
def cluster(
    files: options.Files,
    *,
    output_file: Annotated[
        Path | None, typer.Option("--output", help="File to write to. Default: standard output.")
    ] = None,
    time_field: Annotated[
        str | None,
        typer.Option(
            "--time-field",
            help="The publication time. Default: articles have no time, and nothing expires.",
            rich_help_panel="Field names",
        ),
    ] = None,
    retention_days: Annotated[
        float | None,
        typer.Option(
            "--retention-days",
            min=0.001,
            help="With --time-field: how many days a cluster accepts articles after its last one. "
            "Default: 30.",
            show_default=False,
        ),
    ] = None,
    fingerprinting: options.Fingerprinting,
    id_field: options.IdField = "id",
    text_field: options.TextField = "text",
) -> None:
    """Cluster the articles of files in memory, in the order of their lines.

    Writes a line {"id", "root", "fingerprint"} for each article; root and fingerprint are null for a text
    that has no fingerprint.
    """
    profile = fingerprinting.profile()
    fields = Fields(text=text_field, time=time_field or Fields.time)
    check_readable(files)
    written = failed = 0

    def reject(rejected: ArticleRejected) -> None:
        nonlocal failed
        failed += 1
        say_rejected(rejected)

    roots: set[str] = set()
    with (
        _opened(output_file, files) as target,
        output.file_progress("clustering", total_bytes(files)) as on_bytes,
    ):
        for row in cluster_lines(
            read_lines(files, id_field=id_field, on_bytes=on_bytes),
            profile=profile,
            fields=fields,
            use_time=time_field is not None,
            retention=options.retention(retention_days) or DEFAULT_RETENTION,
            on_rejected=reject,
        ):
            target.write(jsonlib.dumps(row.model_dump()) + "\n")
            written += 1
            if row.root is not None:
                roots.add(row.root)
    say(f"{written + failed:,} read, {written:,} clustered, {failed:,} failed, {len(roots):,} roots")
    if failed:
        raise typer.Exit(1)


@command("fingerprint", example="echo 'A text of some length.' | esdedup fingerprint")
def fingerprint(
    *,
    json: options.Json = False,
    fingerprinting: options.Fingerprinting,
) -> None:
    """Show the fingerprint of a text on standard input, and its representatives.

    Two texts are compared when a simhash of one is within three bits of a simhash of the other; such
    simhashes share a band.
    """
    text = read_plain_text(STANDARD_INPUT)
    fingerprinter = Fingerprinter(fingerprinting.profile())
    chosen = fingerprinter.profile
    explainer = Explainer(chosen)
    name = explainer.fingerprint(text)
    represented = explainer.representatives(text)
    simhashes = from_hex(each.simhash for each in represented)
    bands = list(dict.fromkeys(itertools.chain.from_iterable(chosen.layout.terms(simhashes))))
    features = fingerprinter.features(text)
    if json:
        output.print_json(
            {
                "profile": chosen.label,
                "fingerprint": name,
                "representatives": [each.model_dump() for each in represented],
                "features": [
                    {"word": each.word, "count": each.count, "weight": each.weight} for each in features
                ],
                "bands": bands,
            }
        )
        return
    screen = output.console()
    screen.print(f"profile      {chosen.label}")
    if name is None:
        screen.print(
            f"fingerprint  none: the text has no words, or fewer than {chosen.min_letters} letters and digits"
        )
        return
    screen.print(f"fingerprint  {name}")
    for each in represented:
        shown = f"{each.kind:<12} {each.simhash}  {each.passage or ''}"
        # Printed as it is: no emoji for `:cat:`, and a final backslash stays.
        screen.print(shown.rstrip(), markup=False, emoji=False)
    screen.print(f"bands        {' '.join(bands)}  ({chosen.layout.name})")
    if not features:
        return
    table = Table(box=None, pad_edge=False, title="features", title_justify="left")
    table.add_column("weight", justify="right")
    table.add_column("count", justify="right")
    table.add_column("word")
    for feature in features:
        table.add_row(f"{feature.weight:.3f}", str(feature.count), escape(feature.word))
    screen.print(table)


@contextlib.contextmanager
def _opened(path: Path | None, inputs: list[Path]) -> Iterator[IO[str]]:
    """Open the output; a file appears under its name only when it is complete."""
    if path is None:
        yield sys.stdout
        return
    if any(each.exists() and path.exists() and path.samefile(each) for each in inputs):
        raise SettingError(f"{path} is an input file: write to another file")
    scratch = path if path.exists() and not path.is_file() else path.with_name(f".{path.name}.{os.getpid()}")
    try:
        target = scratch.open("w", encoding="utf-8")
    except OSError as error:
        raise SettingError(f"cannot write to {path}: {error.strerror}") from error
    try:
        with target:
            yield target
        if scratch != path:
            scratch.replace(path)
    except BaseException:
        if scratch != path:
            scratch.unlink(missing_ok=True)
        raise
