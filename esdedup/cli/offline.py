"""`esdedup cluster` and `esdedup fingerprint`: no Elasticsearch at all."""

import contextlib
import itertools
import json as jsonlib
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from esdedup.cli import options, output
from esdedup.cli.feed import Files
from esdedup.errors import ArticleRejected, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.simhash import from_hex
from esdedup.ingest.cluster import cluster as cluster_lines
from esdedup.ingest.files import check_readable, read_lines, total_bytes
from esdedup.neighbours.explainer import Explainer


def cluster(
    files: Files,
    output_file: Annotated[
        Path | None, typer.Option("--output", help="Where to write; standard output if not given.")
    ] = None,
    profile: options.ProfileName = options.DEFAULT_PROFILE,
    keywords: options.KeywordCount = None,
    weights: options.Weights = None,
    time_field: Annotated[
        str | None,
        typer.Option("--time-field", help="Take time from this field; without it nothing expires."),
    ] = None,
    retention_days: Annotated[
        float | None,
        typer.Option(
            "--retention-days",
            min=0.001,
            help="With --time-field: how long a cluster stays open after its last article; 30 if not given.",
            show_default=False,
        ),
    ] = None,
    id_field: options.IdField = "id",
    text_field: options.TextField = "text",
) -> None:
    """Cluster the articles of files in memory, in the order of their lines.

    Writes a line {"id", "root", "fingerprint"} for each; nulls for a text that has no fingerprint.
    """
    chosen = options.profile(profile, keywords, weights)
    fields = Fields(text=text_field, time=time_field or Fields.time)
    check_readable(files)
    written = failed = 0

    def reject(rejected: ArticleRejected) -> None:
        nonlocal failed
        failed += 1
        output.say_rejected(rejected)

    roots: set[str] = set()
    with (
        _opened(output_file, files) as target,
        output.file_progress("clustering", total_bytes(files)) as on_bytes,
    ):
        for row in cluster_lines(
            read_lines(files, id_field=id_field, on_bytes=on_bytes),
            profile=chosen,
            fields=fields,
            use_time=time_field is not None,
            retention=options.retention(retention_days) or timedelta(days=30),
            on_rejected=reject,
        ):
            target.write(jsonlib.dumps(row) + "\n")
            written += 1
            if row["root"] is not None:
                roots.add(row["root"])
    output.say(f"{written + failed:,} read, {written:,} clustered, {failed:,} failed, {len(roots):,} roots")
    if failed:
        raise typer.Exit(1)


def fingerprint(
    json: options.Json = False,
    profile: options.ProfileName = options.DEFAULT_PROFILE,
    keywords: options.KeywordCount = None,
    weights: options.Weights = None,
) -> None:
    """Show the fingerprint of a text on standard input, and what represents it.

    Two texts can meet when a simhash of each lies within three bits of one of the other's; then they share
    a band.
    """
    if sys.stdin is None:
        raise SettingError("standard input is closed")
    text = sys.stdin.buffer.read().decode(errors="replace")
    fingerprinter = Fingerprinter(options.profile(profile, keywords, weights))
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
        # The text as it is: `:cat:` is no picture, and a backslash at the end stays one.
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
    """Open what is written to; a file is put in its place when it is complete, and not before."""
    if path is None:
        yield sys.stdout
        return
    if any(each.exists() and path.exists() and path.samefile(each) for each in inputs):
        raise SettingError(f"{path} is read from: write to another file")
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
