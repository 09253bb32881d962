"""`esdedup stats`, `expire`, `verify` and `rebuild`: inspect and maintain a forest."""

import collections
import functools
import html
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.messages import say
from esdedup.cli.output import passage, print_stage, printable, show
from esdedup.elastic.forest.store import NEARLY_FULL
from esdedup.errors import SettingError
from esdedup.maintenance import BoilerplateBySite, Maintenance, Stats, ViolationKind
from esdedup.maintenance.maintenance import ARTICLES_READ, PASSAGES_SHOWN
from esdedup.maintenance.stats import LearnedStats, SharedRepresentative

_MAX_SHOWN = 1_000

Indices = Annotated[
    list[str], typer.Option("--index", help="Index of articles, alias or pattern; may be repeated.")
]


@command("stats", example="esdedup stats --index news")
def stats(
    *,
    index: Annotated[list[str], typer.Option(show_default=False)] = [],  # noqa: B006 - typer's idiom
    boilerplate: bool = False,
    articles: Annotated[int, typer.Option(min=1)] = ARTICLES_READ,
    passages: Annotated[int, typer.Option(min=1)] = PASSAGES_SHOWN,
    json: options.Json = False,
    where: options.Where,
) -> None:
    """Show the statistics of a forest: nodes, clusters, the largest clusters, growth.

    Also shows clusters that are larger than one story can plausibly be, and what their texts share. With
    --boilerplate, lists the passages that are left out of the pages of each site; since a forest stores no
    text, the command searches the latest articles for them.

    Options:
        index: Index of the forest's articles, to show the sentences that many of them share; may be repeated.
        boilerplate: Show the boilerplate of each site instead, as a file of overrides.
        articles: With --boilerplate: how many of the latest articles to read.
        passages: With --boilerplate: how many passages to show for each site.
    """
    if boilerplate and not index:
        raise SettingError("--boilerplate requires --index, since the forest itself stores no text")
    if not boilerplate and (articles, passages) != (ARTICLES_READ, PASSAGES_SHOWN):
        raise SettingError("--articles and --passages require --boilerplate")
    with where.connect() as client:
        fields, name = where.fields_of(client, *index), where.forest_of(client, *index)
        maintenance = Maintenance(client, forest=name, fields=fields)
        if boilerplate:
            by_site = maintenance.boilerplate(index, articles=articles, passages=passages)
            output.print_answer(by_site, _print_as_overrides, json=json)
            return
        found = maintenance.stats(index)
    output.print_answer(found, functools.partial(_print_stats, name), json=json)


@command("expire", example="esdedup expire --dry-run")
def expire(
    *,
    dry_run: bool = False,
    json: options.Json = False,
    forest: options.WritableForest,
    server: options.Server,
) -> None:
    """Delete the expired nodes and content hashes of a forest; articles are kept.

    Without --dry-run, fails while another process, such as a feeder, owns the forest; see --wait.

    Options:
        dry_run: Only count what would be deleted.
    """
    with server.connect() as client:
        name = forest.forest_of(client)
        maintenance = Maintenance(client, forest=name, wait_s=forest.wait_s)
        total = maintenance.expire(dry_run=True)
        expired = total
        if not dry_run:
            with output.count_progress("expiring", total.leaves + total.roots + total.pages) as on_progress:
                expired = maintenance.expire(on_progress=on_progress)
    title = f"{'would be deleted' if dry_run else 'deleted'} from {name}"
    output.print_summary(title, expired.model_dump(), json=json, forest=name, dry_run=dry_run)


@command("verify", example="esdedup verify --index news --repair")
def verify(
    *,
    index: Indices = [],  # noqa: B006 - typer's idiom
    repair: bool = False,
    json: options.Json = False,
    forest: options.WritableForest,
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """Check a forest against its laws, and articles against the forest.

    Prints at most 1,000 violations. The exit code is 1 if any remain.

    Options:
        repair: Repair violations first, as far as possible, by a rebuild of the forest. With --index and
            --wait, articles may be fed meanwhile; a warning says when to stop the process that feeds them.
    """
    with server.connect() as client:
        fields, name = field_names.fields_of(client, *index), forest.forest_of(client, *index)
        maintenance = Maintenance(client, forest=name, fields=fields, wait_s=forest.wait_s)
        repaired: collections.Counter[ViolationKind] = collections.Counter()
        if repair:
            # The number of passes, and thus the total, is unknown.
            with output.count_progress("repairing", None) as on_progress:
                repaired = maintenance.repair(index, on_progress=on_progress)
        total = maintenance.count(index)
        found: collections.Counter[ViolationKind] = collections.Counter()
        number = 0
        with output.count_progress("verifying", total) as on_progress:
            for number, violation in enumerate(maintenance.verify(index, on_progress=on_progress), 1):
                found[violation.kind] += violation.count
                if number <= _MAX_SHOWN:
                    say(f"{violation} (can be repaired)" if violation.can_be_repaired else str(violation))
    if number > _MAX_SHOWN:
        say(f"and {number - _MAX_SHOWN:,} more")
    counts = {"repaired": +repaired, "violations": +found}
    if json:
        by_name = {
            name: {kind.name.lower(): count for kind, count in kinds.items()}
            for name, kinds in counts.items()
        }
        output.print_json({"forest": name, "checked": total, **by_name})
    else:
        for name, kinds in counts.items():
            if kinds:
                output.print_counts(name, {kind.value: count for kind, count in kinds.items()})
        typer.echo(f"{total:,} nodes and articles checked, {found.total():,} violations")
    if found:
        raise typer.Exit(1)


@command("rebuild", example="esdedup rebuild --index news-2026-01 --index news-2026-02")
def rebuild(
    *,
    index: Indices,
    articles_only: bool = False,
    rename: bool = False,
    json: options.Json = False,
    forest: options.NewForest,
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """Rebuild a forest from its nodes and articles, or a lost forest from its articles; roots are kept.

    Name all indices of the forest. Violations are repaired, as by `esdedup verify --repair`. With --wait,
    articles may be fed meanwhile; a warning says when to stop the process that feeds them.

    Options:
        articles_only: Leave out the nodes of the existing forest, such as those of deleted articles.
        rename: Allow --forest to name a new forest, although the indices belong to another.
    """
    with server.connect() as client:
        fields = field_names.fields_of(client, *index)
        name = forest.forest or forest.forest_of(client, *index)
        maintenance = Maintenance(client, forest=name, fields=fields, wait_s=forest.wait_s)
        # The number of passes, and thus the total, is unknown.
        with output.count_progress("rebuilding", None) as on_progress:
            nodes = maintenance.rebuild(
                index,
                articles_only=articles_only,
                retention=forest.retention,
                change_retention=forest.change_retention,
                lookup=forest.lookup,
                forest_shards=forest.forest_shards,
                rename=rename,
                on_progress=on_progress,
            )
    output.print_line(f"the forest {name} has {nodes:,} nodes", {"forest": name, "nodes": nodes}, json=json)


def _print_stats(forest: str, stats: Stats) -> None:
    show(
        f"{forest}, profile {stats.profile}: {stats.nodes:,} nodes in {stats.trees:,} trees after "
        f"{stats.seq:,} arrivals"
    )
    show(
        f"{stats.size_bytes / 1e6:,.1f} MB on disk, {stats.bytes_a_node:,} bytes per node; "
        f"{stats.expired:,} have expired and can be deleted"
    )
    if stats.filled is not None and stats.filled > NEARLY_FULL:
        show(
            f"{stats.filled:.0%} of the nodes that memory can hold: `esdedup rebuild --wait S "
            "--lookup search` lets Elasticsearch hold them"
        )
    growth = "" if stats.growth_7_days is None else f"; {stats.growth_7_days:+.1%} nodes in the last 7 days"
    show(f"forest time {stats.time or 'unknown'}; nodes live {stats.retention_days:g} days{growth}")
    if stats.not_enriched:
        show(
            f"{stats.not_enriched:,} articles are not enriched yet: index them again with `esdedup index`, "
            "or through `Dedup.enrich`"
        )
    show(_learned(stats.learned))
    days = [(each.day, each.made, each.last_needed) for each in stats.days]
    show("")
    for title, names, rows in (
        ("trees by leaves", ("leaves", "trees"), stats.trees_by_leaves.items()),
        ("largest clusters", ("root", "leaves"), [(each.root, each.leaves) for each in stats.largest]),
        ("nodes by day", ("day", "created", "last seen"), days),
    ):
        output.print_table(title, names, rows, numbers=range(1, len(names)))
    if stats.placeholders:
        title = "probable placeholders: short texts that several sites have under unrelated titles"
        print_stage(title, [(each.root, f"{each.articles:,} articles") for each in stats.placeholders])
    if stats.implausible_trees:
        title = (
            f"{stats.implausible_trees:,} clusters with more than {stats.most_plausible_leaves:,} live "
            "leaves: more distinct texts than one story plausibly has"
        )
        cells = [(each.root, f"{each.leaves:,}", *_shared_cells(each.shared)) for each in stats.implausible]
        print_stage(title, cells)
    if stats.shared_by_trees:
        shared = [_shared_cells(each) for each in stats.shared_by_trees]
        print_stage("representatives that unrelated clusters share", shared)


def _learned(learned: LearnedStats | None) -> str:
    if learned is None:
        return "the learned boilerplate is damaged: `esdedup verify --repair` resets it"
    return (
        f"{learned.boilerplate:,} passages of boilerplate, learned from {learned.pages:,} pages; "
        f"{learned.remembered_pages:,} pages are remembered, in {learned.memory_bytes / 1e6:,.1f} MB of "
        f"memory and {learned.document_bytes / 1e6:,.1f} MB in {learned.documents:,} documents"
    )


def _shared_cells(shared: SharedRepresentative | None) -> tuple[str, str, str]:
    """Return a shared representative as cells: its simhash, how many nodes have it, its sentence."""
    if shared is None:
        return "no longer in the forest", "", ""
    trees = "1 tree" if shared.trees == 1 else f"{shared.trees:,} trees"
    count = f"{shared.nodes:,} of {shared.examined:,}, {trees}"
    if shared.sentence is None:
        return shared.simhash, count, ""
    kinds = {"minhash": "a minhash of: ", "words": "the heaviest words: "}
    return shared.simhash, count, kinds.get(shared.kind or "", "") + passage(shared.sentence)


def _print_as_overrides(found: BoilerplateBySite) -> None:
    """Print boilerplate as a file of overrides, with all other information in comments."""
    typer.echo(f"# Boilerplate in the latest {found.articles:,} articles, as overrides.")
    if not found.is_complete:
        typer.echo("# Some passages were not counted, since there are too many different passages.")
    for site in found.sites:
        name = "no site" if site.site is None else printable(site.site)
        typer.echo(f"\n# {name}: {site.articles:,} articles, {site.learned:,} passages are boilerplate")
        for each in site.passages:
            too_long = ": too long for a line" if each.text is None else ""
            typer.echo(f"# in {each.articles:,} articles{too_long}")
            if each.text is not None:
                # Escape the plain text, since overrides may contain markup.
                override = {"boilerplate": html.escape(each.text, quote=False)}
                output.print_json(override if site.site is None else override | {"site": site.site})
        if more := site.learned - len(site.passages):
            typer.echo(f"# and {more:,} more passages")
