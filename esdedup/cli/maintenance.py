"""`esdedup stats`, `expire`, `verify` and `rebuild`: looking after a forest."""

import collections
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.messages import say
from esdedup.cli.stats_tables import print_as_overrides, print_stats
from esdedup.errors import SettingError
from esdedup.maintenance import Maintenance, Violation, ViolationKind
from esdedup.maintenance.inspection import ARTICLES_READ, PASSAGES_SHOWN

_MAX_SHOWN = 1_000

Indices = Annotated[
    list[str],
    typer.Option("--index", help="Index of articles, alias or pattern; may be repeated.", show_default=False),
]


@command("stats", example="esdedup stats --index news")
def stats(
    *,
    index: Annotated[
        list[str],
        typer.Option(
            "--index",
            help="Index of the forest's articles, to show the sentences that many of them share; may be "
            "repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer's way
    boilerplate: Annotated[
        bool,
        typer.Option(
            "--boilerplate",
            help="Show instead what is boilerplate on each site, as a file of overrides.",
        ),
    ] = False,
    articles: Annotated[
        int,
        typer.Option(
            "--articles", min=1, help="With --boilerplate: how many of the latest articles to read."
        ),
    ] = ARTICLES_READ,
    passages: Annotated[
        int,
        typer.Option("--passages", min=1, help="With --boilerplate: how many passages to show of a site."),
    ] = PASSAGES_SHOWN,
    json: options.Json = False,
    forest: options.Forest,
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """Show the statistics of a forest: nodes, clusters, the largest clusters, the fullest keys, growth.

    Also shows clusters that are larger than one story can plausibly be, and what their texts share. With
    --boilerplate, lists the passages that are left out of the pages of each site; a forest keeps no text, so
    they are looked for in the latest articles.
    """
    if boilerplate and not index:
        raise SettingError("--boilerplate goes with --index: the forest itself keeps no text")
    if not boilerplate and (articles, passages) != (ARTICLES_READ, PASSAGES_SHOWN):
        raise SettingError("--articles and --passages go with --boilerplate")
    with server.connect() as client:
        fields = field_names.fields_of(client, *index)
        maintenance = Maintenance(client, forest=forest.name, fields=fields)
        if boilerplate:
            by_site = maintenance.boilerplate(index, articles=articles, passages=passages)
            if json:
                output.print_json(by_site.model_dump())
            else:
                print_as_overrides(by_site)
            return
        found = maintenance.stats(index)
    if json:
        output.print_json(found.model_dump())
    else:
        print_stats(forest.name, found)


@command("expire", example="esdedup expire --dry-run")
def expire(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")] = False,
    json: options.Json = False,
    forest: options.WritableForest,
    server: options.Server,
) -> None:
    """Delete the expired nodes and pages of a forest; articles stay.

    Except with --dry-run, refused while another process, such as a feeder, owns the forest; see --wait.
    """
    with server.connect() as client:
        maintenance = Maintenance(client, forest=forest.name, wait_s=forest.wait_s)
        total = maintenance.expire(dry_run=True)
        expired = total
        if not dry_run:
            with output.count_progress("expiring", total.leaves + total.roots + total.pages) as on_progress:
                expired = maintenance.expire(on_progress=on_progress)
    counts = expired.model_dump()
    if json:
        output.print_json({"forest": forest.name, "dry_run": dry_run, **counts})
    else:
        output.print_counts(f"{'would be deleted' if dry_run else 'deleted'} from {forest.name}", counts)


@command("verify", example="esdedup verify --index news --repair")
def verify(
    *,
    index: Indices = [],  # noqa: B006 - typer's way
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --repair: only show what can be repaired.")
    ] = False,
    json: options.Json = False,
    forest: options.WritableForest,
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """Check a forest against its laws, and articles against the forest.

    Prints violations, at most 1,000. Exit code 1 if any are left.
    """
    if dry_run and not repair:
        raise SettingError("--dry-run goes with --repair: without --repair nothing is changed")
    with server.connect() as client:
        maintenance = Maintenance(
            client, forest=forest.name, fields=field_names.fields_of(client, *index), wait_s=forest.wait_s
        )
        repaired: collections.Counter[ViolationKind] = collections.Counter()
        total = maintenance.count(index)
        if repair and not dry_run:
            # As many passes as are needed.
            with output.count_progress("repairing", None) as on_progress:
                repaired = maintenance.repair(index, on_progress=on_progress)
        found: collections.Counter[ViolationKind] = collections.Counter()
        with output.count_progress("verifying", total) as on_progress:
            for violation in maintenance.verify(index, on_progress=on_progress):
                found[violation.kind] += 1
                if found.total() <= _MAX_SHOWN:
                    _say_violation(violation)
    if found.total() > _MAX_SHOWN:
        say(f"and {found.total() - _MAX_SHOWN:,} more")
    counts = {"repaired": +repaired, "violations": +found}
    if json:
        by_name = {
            name: {kind.name.lower(): count for kind, count in kinds.items()}
            for name, kinds in counts.items()
        }
        output.print_json({"forest": forest.name, "checked": total, **by_name})
    else:
        for name, kinds in counts.items():
            if kinds:
                output.print_counts(name, {kind.value: count for kind, count in kinds.items()})
        typer.echo(f"{total:,} nodes and articles checked, {found.total():,} violations")
    if found:
        raise typer.Exit(1)


def _say_violation(violation: Violation) -> None:
    say(f"{violation} (can be repaired)" if violation.can_be_repaired else str(violation))


@command("rebuild", example="esdedup rebuild --index news-2026-01 --index news-2026-02 --replace")
def rebuild(
    *,
    index: Indices,
    replace: Annotated[
        bool, typer.Option("--replace", help="Delete an existing forest of that name first.")
    ] = False,
    retention_days: options.RetentionDays = None,
    lookup: options.Lookup = None,
    json: options.Json = False,
    forest: options.WritableForest,
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """Rebuild a forest from its articles alone; each keeps its root. Name all indices of the forest."""
    with server.connect() as client:
        maintenance = Maintenance(
            client, forest=forest.name, fields=field_names.fields_of(client, *index), wait_s=forest.wait_s
        )
        with output.count_progress("rebuilding", maintenance.count_articles(index)) as on_progress:
            nodes = maintenance.rebuild(
                index,
                replace=replace,
                retention=options.retention(retention_days),
                lookup=lookup,
                on_progress=on_progress,
            )
    if json:
        output.print_json({"forest": forest.name, "nodes": nodes})
    else:
        typer.echo(f"the forest {forest.name} has {nodes:,} nodes")
