"""`esdedup setup` and `esdedup index`: preparing an index, and filling it."""

import functools
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.messages import say, say_cut, say_rejected
from esdedup.elastic.execute import execute
from esdedup.elastic.limits import MAX_SHARDS
from esdedup.elastic.patience import patient
from esdedup.elastic.requests import refresh
from esdedup.errors import FieldsNotFound
from esdedup.fingerprint.fingerprinter import WORKERS
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.files import read_articles
from esdedup.ingest.learn import check_two_looks, looks
from esdedup.ingest.load import Load
from esdedup.ingest.records import check_readable, total_bytes

# Soon enough for people, and seldom enough to cost nothing.
_FLUSH_INTERVAL_S = 5.0


@command("setup", example="esdedup setup news --shards 3 --route-by-root")
def setup(
    index: Annotated[
        str, typer.Argument(metavar="INDEX", help="Created if it does not exist.", show_default=False)
    ],
    *,
    shards: Annotated[
        int | None, typer.Option("--shards", min=1, max=MAX_SHARDS, help="Number of shards of a new index.")
    ] = None,
    route_by_root: Annotated[
        bool,
        typer.Option(
            "--route-by-root",
            help="Keep each cluster of a new index on one shard, so that sorting by count is exact on any "
            "number of shards. An article can then be read or deleted by its id only with its root as "
            "routing.",
        ),
    ] = False,
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            metavar="CODE",
            help="Language of titles and texts of a new index, such as en or zh: a search then finds "
            "words in all their forms, and Chinese by pairs of characters.",
        ),
    ] = None,
    forest: Annotated[
        str | None,
        typer.Option(
            "--forest",
            metavar="NAME",
            help="The forest that the index belongs to from now on: others then refuse its articles. "
            "Default: any may take them.",
        ),
    ] = None,
    json: options.Json = False,
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """Add the fields that esdedup writes to an index, before articles are indexed.

    The index keeps the language and the names of its articles' fields; other commands then need not be
    told. In a new index only these fields are indexed, not what else the articles have.
    """
    with server.connect() as client:
        dedup = Dedup(client, fields=field_names.fields_of(client, index))
        made = dedup.setup(
            index, shards=shards, route_by_root=route_by_root, language=language, forest=forest
        )
    if json:
        output.print_json({"index": index, "made": made})
    else:
        typer.echo(f"created the index {index}" if made else f"the index {index} has the fields")


@command("index", example="esdedup index news.jsonl.gz --index news")
def index(
    files: options.Files,
    *,
    index: options.Index,
    backfill: Annotated[
        bool,
        typer.Option(
            "--backfill",
            help="Take the forest's time from the articles' publication times instead of the clock.",
        ),
    ] = False,
    learn_first: options.LearnFirst = False,
    workers: options.Workers = WORKERS,
    flush_interval_s: Annotated[
        float,
        typer.Option(
            "--flush-interval",
            min=0.1,
            max=3_600,
            help="Seconds after which articles that come slowly are indexed, though a batch is not full.",
        ),
    ] = _FLUSH_INTERVAL_S,
    retention_days: options.RetentionDays = None,
    lookup: options.Lookup = None,
    json: options.Json = False,
    forest: options.WritableForest,
    fingerprinting: options.Fingerprinting,
    id_field: options.IdField = "id",
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """Index articles, each with its fingerprint and the root of its cluster."""
    profile, pins = fingerprinting.profile(), fingerprinting.pins()
    check_readable(files)
    if learn_first:
        check_two_looks(files, profile)
    load = Load(on_rejected=say_rejected, on_cut=say_cut, on_undated=say)
    has_begun = True
    with server.connect() as client:
        dedup = Dedup(
            client,
            profile=profile,
            pins=pins,
            fields=field_names.fields_of(client, index),
            forest=forest.name,
            retention=options.retention(retention_days),
            lookup=lookup,
            wait_s=forest.wait_s,
            workers=workers,
        )
        fields = dedup.require_ready(index)
        try:
            bytes_read = total_bytes(files * (1 + learn_first))
            with dedup, output.file_progress("indexing", bytes_read) as on_bytes:
                read = functools.partial(
                    read_articles, files, fields=fields, id_field=id_field, on_bytes=on_bytes
                )
                for first, articles in looks(read, learn_first=learn_first):
                    load.run(
                        client,
                        dedup,
                        articles,
                        index=index,
                        backfill=backfill,
                        flush_interval_s=flush_interval_s,
                        learned_from=first,
                    )
            execute(patient(client), refresh(index))
        except FieldsNotFound as error:
            error.index, has_begun = index, False
            raise
        except KeyboardInterrupt:
            say(
                "interrupted: unacknowledged articles count as failed; run the command again, nothing is "
                "indexed twice"
            )
            raise
        finally:
            summary = load.summary.model_dump()
            if has_begun and json:
                output.print_json(summary)
            elif has_begun:
                output.print_counts(f"into {index}", summary)
            if too_old := load.summary.too_old:
                say(
                    f"articles dated more than ten years back: {too_old:,}; they count as published when "
                    "they arrived. Index an archive with --backfill, which believes such dates"
                )
    if load.summary.failed:
        raise typer.Exit(1)
