"""What `esdedup stats` prints: tables of a forest, or the boilerplate of its sites as a file of overrides."""

import html
from collections.abc import Iterator

import typer

from esdedup.cli import output
from esdedup.cli.output import json_line, passage, print_stage, printable
from esdedup.maintenance import BoilerplateBySite, SiteBoilerplate, Stats
from esdedup.maintenance.learned_stats import LearnedStats
from esdedup.maintenance.shared_representatives import SharedRepresentative


def print_stats(forest: str, stats: Stats) -> None:
    """Print the statistics of a forest."""
    screen = output.console()
    screen.print(
        f"{forest}, profile {stats.profile}: {stats.nodes:,} nodes in {stats.trees:,} trees after "
        f"{stats.seq:,} arrivals"
    )
    screen.print(
        f"{stats.size_bytes / 1e6:,.1f} MB on disk, {stats.bytes_a_node:,} bytes per node; "
        f"{stats.expired:,} have expired and can be deleted"
    )
    growth = "" if stats.growth_7_days is None else f"; {stats.growth_7_days:+.1%} nodes in the last 7 days"
    screen.print(f"forest time {stats.time or 'unknown'}; nodes live {stats.retention_days:g} days{growth}")
    if stats.not_enriched:
        screen.print(
            f"{stats.not_enriched:,} articles are not enriched yet: index them again with `esdedup index`, "
            "or through `Dedup.enrich`"
        )
    screen.print(_learned(stats.learned))
    days = [(each.day, each.made, each.last_needed) for each in stats.days]
    screen.print(f"a key has {stats.nodes_a_key:,} nodes on average\n")
    for title, names, rows in (
        ("trees by leaves", ("leaves", "trees"), stats.trees_by_leaves.items()),
        ("largest clusters", ("root", "leaves"), [(each.root, each.leaves) for each in stats.largest]),
        ("fullest keys", ("key", "nodes"), [(each.key, each.nodes) for each in stats.fullest_keys]),
        ("nodes by day", ("day", "made", "last needed"), days),
    ):
        output.print_table(screen, title, names, rows, numbers=range(1, len(names)))
    if stats.implausible_trees:
        title = (
            f"{stats.implausible_trees:,} clusters with more than {stats.most_plausible_leaves:,} live "
            "leaves: more distinct texts than one story plausibly has"
        )
        cells = [(each.root, f"{each.leaves:,}", *_shared_cells(each.shared)) for each in stats.implausible]
        print_stage(screen, title, cells)
    if stats.shared_by_trees:
        shared = [_shared_cells(each) for each in stats.shared_by_trees]
        print_stage(screen, "representatives that unrelated clusters share", shared)


def _learned(learned: LearnedStats | None) -> str:
    if learned is None:
        return "what was learned about boilerplate is damaged: `esdedup verify --repair` lets it begin anew"
    return (
        f"{learned.pages:,} pages have taught {learned.boilerplate:,} passages of boilerplate; "
        f"{learned.remembered_pages:,} pages are remembered, in {learned.memory_bytes / 1e6:,.1f} MB of "
        f"memory and {learned.document_bytes / 1e6:,.1f} MB of {learned.documents:,} documents"
    )


def _shared_cells(shared: SharedRepresentative | None) -> tuple[str, str, str]:
    """Return a shared representative as cells: its simhash, how many nodes have it, its sentence."""
    if shared is None:
        return "deleted meanwhile", "", ""
    trees = "1 tree" if shared.trees == 1 else f"{shared.trees:,} trees"
    count = f"{shared.nodes:,} of {shared.examined:,}, {trees}"
    if shared.sentence is None:
        return shared.simhash, count, ""
    kinds = {"minhash": "a minhash of: ", "words": "the heaviest words: "}
    return shared.simhash, count, kinds.get(shared.kind or "", "") + passage(shared.sentence)


def print_as_overrides(found: BoilerplateBySite) -> None:
    """Print what is boilerplate as a file of overrides, with all else in its comments."""
    typer.echo(f"# What is boilerplate in the latest {found.articles:,} articles, as overrides.")
    if not found.is_complete:
        typer.echo("# There are so many different passages that not all were counted.")
    for site in found.sites:
        for line in _overrides_of(site):
            typer.echo(line)


def _overrides_of(found: SiteBoilerplate) -> Iterator[str]:
    name = "no site" if found.site is None else printable(found.site)
    yield ""
    yield f"# {name}: {found.articles:,} articles, {found.learned:,} passages are boilerplate"
    for each in found.passages:
        yield f"# in {each.articles:,} articles" + (": too long for a line" if each.text is None else "")
        if each.text is not None:
            # An override may have markup; this text has none.
            override = {"boilerplate": html.escape(each.text, quote=False)}
            yield json_line(override if found.site is None else override | {"site": found.site})
    more = found.learned - len(found.passages)
    if more:
        yield f"# and {more:,} more passages"
