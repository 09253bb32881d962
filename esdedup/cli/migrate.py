"""`esdedup migrate`: another profile, or a forest of an earlier format."""

from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.messages import say, say_rejected
from esdedup.fingerprint.fingerprinter import WORKERS
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.migrate import Migration


@command("migrate", example="esdedup migrate news --to news-forest-2")
def migrate(
    index: Annotated[str, typer.Argument(metavar="INDEX", show_default=False)],
    *,
    to: Annotated[str, typer.Option(metavar="NAME", show_default=False)],
    swap: bool = False,
    most_per_s: Annotated[float | None, typer.Option("--rate", min=0.1)] = None,
    workers: options.Workers = WORKERS,
    retention_days: options.RetentionDays = None,
    lookup: options.Lookup = None,
    json: options.Json = False,
    forest: options.WritableForest,
    fingerprinting: options.Fingerprinting,
    server: options.Server,
) -> None:
    """Give articles the roots of another forest, of another profile or of this version's format.

    Each article gets a second object of fields beside the first, which readers and feeders go on with until
    --swap changes the indices over. After an interruption, run the command again: it goes on.

    Options:
        index: All indices of the forest: names, an alias or a pattern.
        to: The other forest, which is made if there is none.
        swap: At last, change the indices and their templates over. First stop what feeds --forest; --wait
            waits for that. Then feed the other forest.
        most_per_s: How many articles a second, at most.
    """
    with server.connect() as client:
        migration = Migration(client, index, forest=forest.name, to=to, on_rejected=say_rejected)
        dedup = Dedup(
            client,
            profile=fingerprinting.profile(),
            overrides=fingerprinting.overrides(),
            fields=migration.fields,
            forest=to,
            retention=options.retention(retention_days) or migration.retention,
            lookup=lookup,
            workers=workers,
        )
        total = sum(each.without_root for each in migration.found)
        try:
            with dedup, output.count_progress("migrating", total) as on_read:
                migration.run(dedup, most_per_s=most_per_s, on_read=on_read)
                if swap:
                    migration.swap(dedup, wait_s=forest.wait_s, on_read=on_read)
        except KeyboardInterrupt:
            say("interrupted: run the command again, it goes on")
            raise
        finally:
            output.print_summary(f"migrated in {index}", migration.summary, json=json)
    if swap:
        say(f"{index} belongs to the forest {to} now: feed that; nothing needs {forest.name} any more")
    else:
        say(f"readers see no change yet: stop what feeds {forest.name}, and run this again with --swap")
    if migration.summary.failed:
        raise typer.Exit(1)
