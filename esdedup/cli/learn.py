"""`esdedup learn`: a forest learns what is boilerplate, before articles are indexed."""

from pathlib import Path
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.messages import say, say_rejected
from esdedup.errors import FieldsNotFound, SettingError
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.files import read_articles
from esdedup.ingest.learn import Learning, refuse_to_keep, texts_of
from esdedup.ingest.records import check_readable, total_bytes
from esdedup.maintenance import Maintenance
from esdedup.maintenance.stored_texts import LATEST_ARTICLES


@command("learn", example="esdedup learn --index news")
def learn(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[FILE...]",
            help="As for index. Default: the articles that the index has.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer's way
    *,
    index: options.Index,
    latest: Annotated[
        int | None,
        typer.Option(
            "--latest",
            min=1,
            help="Without FILE: how many of the latest articles to learn from. Default: "
            f"{LATEST_ARTICLES:,}; much older ones would be forgotten again.",
            show_default=False,
        ),
    ] = None,
    json: options.Json = False,
    forest: options.WritableForest,
    fingerprinting: options.Fingerprinting,
    id_field: options.IdField = "id",
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """Let a forest learn what is boilerplate, from files or from an index, and assign nothing.

    Menus, disclaimers and the like are then left out of the first articles that are indexed. A page that was
    learned from or indexed before teaches nothing: the command may be run again, and what it has read may be
    indexed later.
    """
    profile, pins = fingerprinting.profile(), fingerprinting.pins()
    refuse_to_keep(profile)
    check_readable(files)
    if files and latest is not None:
        raise SettingError("--latest goes without FILE: all articles of files are learned from")
    learning = Learning(on_rejected=say_rejected)
    has_begun = True
    with server.connect() as client:
        fields = field_names.fields_of(client, index)
        dedup = Dedup(
            client, profile=profile, pins=pins, fields=fields, forest=forest.name, wait_s=forest.wait_s
        )
        own = dedup.require_ready(index)
        try:
            with dedup:
                if files:
                    with output.file_progress("learning", total_bytes(files)) as on_bytes:
                        articles = read_articles(files, fields=own, id_field=id_field, on_bytes=on_bytes)
                        learning.run(dedup, texts_of(articles, own))
                else:
                    stored = Maintenance(client, forest=forest.name, fields=fields)
                    how_many = latest or LATEST_ARTICLES
                    count = stored.count_texts([index], latest=how_many)
                    with output.count_progress("learning", count) as on_learned:
                        learning.run(dedup, stored.texts([index], latest=how_many), on_learned=on_learned)
        except FieldsNotFound as error:
            error.index, has_begun = index, False
            raise
        except KeyboardInterrupt:
            say("interrupted: what was learned is kept; run the command again, nothing teaches twice")
            raise
        finally:
            if has_begun:
                summary = learning.summary.model_dump()
                if json:
                    output.print_json(summary)
                else:
                    output.print_counts(f"learned by {forest.name}", summary)
    if learning.summary.failed:
        raise typer.Exit(1)
