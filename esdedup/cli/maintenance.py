"""`esdedup stats`, `expire`, `verify` and `rebuild`: looking after a forest."""

import collections
import dataclasses
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.stats_tables import print_stats
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.maintenance import Maintenance, ViolationKind

_MAX_SHOWN = 1_000

Indices = Annotated[
    list[str],
    typer.Option("--index", help="Index of articles, alias or pattern; may be repeated.", show_default=False),
]


def stats(
    index: Annotated[
        list[str],
        typer.Option(
            "--index",
            help="Index of its articles: shows the sentences that many of them share; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer's way
    forest: options.ForestName = DEFAULT_FOREST,
    json: options.Json = False,
    text_field: options.TextField = "text",
    dedup_field: options.DedupField = "dedup",
    url: options.Url = options.DEFAULT_URL,
    api_key: options.ApiKey = None,
    ca_certs: options.CaCerts = None,
) -> None:
    """Show a forest in figures: nodes, trees, the largest clusters, how full its keys are, growth.

    Tells which clusters are larger than one story can be, and what holds them together.
    """
    fields = Fields(text=text_field, dedup=dedup_field)
    with options.client(url, api_key, ca_certs) as client:
        found = Maintenance(client, forest=forest, fields=fields).stats(index)
    if json:
        output.print_json(found.model_dump())
    else:
        print_stats(forest, found)


def expire(
    forest: options.ForestName = DEFAULT_FOREST,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")] = False,
    json: options.Json = False,
    wait: options.Wait = 0.0,
    url: options.Url = options.DEFAULT_URL,
    api_key: options.ApiKey = None,
    ca_certs: options.CaCerts = None,
) -> None:
    """Delete the nodes of a forest that have expired; articles stay. Run it as often as you like."""
    with options.client(url, api_key, ca_certs) as client:
        maintenance = Maintenance(client, forest=forest, wait_s=wait)
        total = maintenance.expire(dry_run=True)
        expired = total
        if not dry_run:
            with output.count_progress("expiring", total.leaves + total.roots) as on_progress:
                expired = maintenance.expire(on_progress=on_progress)
    counts = dataclasses.asdict(expired)
    if json:
        output.print_json({"forest": forest, "dry_run": dry_run, **counts})
    else:
        output.print_counts(f"{'would be deleted' if dry_run else 'deleted'} from {forest}", counts)


def verify(
    index: Indices = [],  # noqa: B006 - typer's way
    forest: options.ForestName = DEFAULT_FOREST,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be repaired.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --repair: only say what it would mend.")
    ] = False,
    json: options.Json = False,
    wait: options.Wait = 0.0,
    dedup_field: options.DedupField = "dedup",
    url: options.Url = options.DEFAULT_URL,
    api_key: options.ApiKey = None,
    ca_certs: options.CaCerts = None,
) -> None:
    """Check every law of a forest that can be checked afterwards, and the articles against it.

    Prints each violation. Exit code 1 if there are any left.
    """
    if dry_run and not repair:
        raise SettingError("--dry-run goes with --repair: without it nothing is changed anyway")
    with options.client(url, api_key, ca_certs) as client:
        maintenance = Maintenance(client, forest=forest, fields=Fields(dedup=dedup_field), wait_s=wait)
        repaired: collections.Counter[ViolationKind] = collections.Counter()
        total = maintenance.count(index)
        if repair and not dry_run:
            with output.count_progress("mending", 2 * total) as on_progress:
                repaired = maintenance.repair(index, on_progress=on_progress)
        found: collections.Counter[ViolationKind] = collections.Counter()
        with output.count_progress("verifying", total) as on_progress:
            for violation in maintenance.verify(index, on_progress=on_progress):
                found[violation.kind] += 1
                if found.total() <= _MAX_SHOWN:
                    remedy = " (can be repaired)" if violation.can_be_repaired else ""
                    output.say(f"{violation}{remedy}")
    if found.total() > _MAX_SHOWN:
        output.say(f"and {found.total() - _MAX_SHOWN:,} more")
    counts = {
        name: {kind.name.lower(): count for kind, count in kinds.items() if count}
        for name, kinds in (("mended", repaired), ("breaches", found))
    }
    if json:
        output.print_json({"forest": forest, "looked_at": total, **counts})
    else:
        for name, kinds in (("mended", repaired), ("breaches", found)):
            if kinds.total():
                output.print_counts(name, {kind.value: count for kind, count in kinds.items() if count})
        typer.echo(f"{total:,} nodes and articles looked at, {found.total():,} violations")
    if found.total():
        raise typer.Exit(1)


def rebuild(
    index: Indices,
    forest: options.ForestName = DEFAULT_FOREST,
    replace: Annotated[
        bool, typer.Option("--replace", help="Delete the forest first, if there is one.")
    ] = False,
    json: options.Json = False,
    retention_days: Annotated[
        float | None,
        typer.Option(
            "--retention-days",
            min=0.001,
            help="How long nodes live; as long as in the forest that is replaced if not given, else 30.",
            show_default=False,
        ),
    ] = None,
    wait: options.Wait = 0.0,
    dedup_field: options.DedupField = "dedup",
    url: options.Url = options.DEFAULT_URL,
    api_key: options.ApiKey = None,
    ca_certs: options.CaCerts = None,
) -> None:
    """Make a forest anew from its articles alone: each keeps its root. Name all of their indices."""
    with options.client(url, api_key, ca_certs) as client:
        maintenance = Maintenance(client, forest=forest, fields=Fields(dedup=dedup_field), wait_s=wait)
        with output.count_progress("rebuilding", maintenance.count_articles(index)) as on_progress:
            nodes = maintenance.rebuild(
                index,
                replace=replace,
                retention=options.retention(retention_days),
                on_progress=on_progress,
            )
    if json:
        output.print_json({"forest": forest, "nodes": nodes})
    else:
        typer.echo(f"the forest {forest} has {nodes:,} nodes")
