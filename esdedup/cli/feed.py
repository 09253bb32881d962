"""`esdedup setup` and `esdedup index`: the way in."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.fields import Fields
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.files import check_readable, read_lines, total_bytes
from esdedup.ingest.load import Load

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="JSON Lines, plain or gzip; - is standard input.", show_default=False
    ),
]


def setup(
    index: Annotated[str, typer.Argument(metavar="INDEX", help="Made if there is none.", show_default=False)],
    shards: Annotated[int | None, typer.Option("--shards", min=1, max=1_024, help="Of a new index.")] = None,
    route_by_root: Annotated[
        bool,
        typer.Option(
            "--route-by-root",
            help="Let each cluster of a new index lie on one shard: sorts by count are exact on any number "
            "of them. An article can then be got or deleted by its id only with its root as routing.",
        ),
    ] = False,
    json: options.Json = False,
    text_field: options.TextField = "text",
    title_field: options.TitleField = "title",
    time_field: options.TimeField = "published_at",
    source_field: options.SourceField = "source",
    link_field: options.LinkField = "url",
    url: options.Url = options.DEFAULT_URL,
    api_key: options.ApiKey = None,
    ca_certs: options.CaCerts = None,
) -> None:
    """Give an index the fields that esdedup writes, before articles are indexed."""
    fields = Fields(text=text_field, title=title_field, time=time_field, source=source_field, link=link_field)
    with options.client(url, api_key, ca_certs) as client, Dedup(client, fields=fields) as dedup:
        made = dedup.setup(index, shards=shards, route_by_root=route_by_root)
    if json:
        output.print_json({"index": index, "made": made})
    else:
        typer.echo(f"made the index {index}" if made else f"the index {index} has the fields")


def index(
    files: Files,
    index: options.Index,
    backfill: Annotated[
        bool, typer.Option("--backfill", help="Take the forest's time from the articles, not from the clock.")
    ] = False,
    json: options.Json = False,
    profile: options.ProfileName = options.DEFAULT_PROFILE,
    keywords: options.KeywordCount = None,
    weights: options.Weights = None,
    retention_days: options.RetentionDays = None,
    forest: options.ForestName = DEFAULT_FOREST,
    wait: options.Wait = 0.0,
    id_field: options.IdField = "id",
    text_field: options.TextField = "text",
    title_field: options.TitleField = "title",
    time_field: options.TimeField = "published_at",
    source_field: options.SourceField = "source",
    link_field: options.LinkField = "url",
    url: options.Url = options.DEFAULT_URL,
    api_key: options.ApiKey = None,
    ca_certs: options.CaCerts = None,
) -> None:
    """Index articles, each with its fingerprint and the root of its cluster."""
    fields = Fields(text=text_field, title=title_field, time=time_field, source=source_field, link=link_field)
    chosen = options.profile(profile, keywords, weights)
    check_readable(files)
    load = Load(on_rejected=output.say_rejected)
    with options.client(url, api_key, ca_certs) as client:
        dedup = Dedup(
            client,
            profile=chosen,
            fields=fields,
            forest=forest,
            retention=options.retention(retention_days),
            wait_s=wait,
        )
        dedup.check(index)
        try:
            with dedup, output.file_progress("indexing", total_bytes(files)) as on_bytes:
                lines = read_lines(files, id_field=id_field, on_bytes=on_bytes)
                load.run(client, dedup, lines, index=index, backfill=backfill)
            client.indices.refresh(index=index)
        except KeyboardInterrupt:
            output.say("interrupted: what was under way counts as failed; run it again, nothing is doubled")
            raise
        finally:
            summary = dataclasses.asdict(load.summary)
            if json:
                output.print_json(summary)
            else:
                output.print_counts(f"into {index}", summary)
    if load.summary.failed:
        raise typer.Exit(1)
