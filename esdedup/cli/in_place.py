"""`esdedup adopt`, `migrate` and `remove`: change the articles of existing indices."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.messages import say, say_rejected
from esdedup.errors import SettingError
from esdedup.fingerprint.profile import Profile
from esdedup.ingest.adopt import Adoption, AdoptionIntoCopies
from esdedup.ingest.in_place import InPlace
from esdedup.ingest.learn import refuse_to_keep
from esdedup.ingest.migrate import Migration
from esdedup.ingest.remove import Removal
from esdedup.plan.costs import shipped

# Articles adopted per second on two cores, measured by `python -m benchmarks.adoption`.
_ADOPTED_PER_S = 3_500


@command("adopt", example="esdedup adopt 'news-*' --dry-run")
def adopt(
    index: Annotated[str, typer.Argument(metavar="INDEX", show_default=False)],
    *,
    dry_run: bool = False,
    into: Annotated[str | None, typer.Option(metavar="SUFFIX")] = None,
    learn_first: options.LearnFirst = False,
    most_per_s: Annotated[float | None, typer.Option("--rate", min=0.1)] = None,
    sidecar: Annotated[str | None, typer.Option(metavar="URL")] = None,
    sidecar_token: Annotated[
        str | None,
        typer.Option(envvar="ESDEDUP_SIDECAR_TOKEN", help="Sidecar token; better set in the environment."),
    ] = None,
    json: options.Json = False,
    feeding: options.Feeding,
    field_names: options.FieldNames,
) -> None:
    """Give fingerprints and roots to articles that are already indexed, in place.

    Adds the fields to the indices and their index templates first. Articles are enriched in the order of
    their times, across all indices. After an interruption, run the command again to continue.

    Options:
        index: An index, an alias or a pattern.
        dry_run: Only report what would be adopted.
        into: Leave the indices, which must be read-only, unchanged, and write their articles into copies
            whose names have this suffix; finally, the copies take over the aliases.
        most_per_s: Maximum number of articles per second.
        sidecar: Address of a sidecar that owns the forest and keeps accepting articles. The sidecar uses the
            current time, so all adopted articles are recorded as seen today.
    """
    profile, overrides = feeding.read_profile(), feeding.overrides()
    if learn_first:
        refuse_to_keep(profile)
    with feeding.connect() as client:
        fields = field_names.fields_of(client, index)
        kind = Adoption if into is None else functools.partial(AdoptionIntoCopies, suffix=into)
        adoption = kind(client, index, fields=fields, on_rejected=say_rejected)
        if dry_run:
            latest, repeated = adoption.repeated_of_latest(profile)
            estimated = _estimated(adoption, profile, new=1 - repeated / latest if latest else 1)
            if json:
                found = [each.model_dump() for each in adoption.found]
                looked = {"fields": adoption.fields.names, "indices": found, "templates": adoption.templates}
                output.print_json(looked | {"latest": latest, "repeated": repeated, **estimated})
            else:
                _print_found(adoption)
                output.show(f"of the latest {latest:,} articles without a root, {repeated:,} are repeats")
                output.print_counts("estimated", estimated)
            return
        dedup = feeding.dedup(
            client,
            overrides,
            forest=feeding.forest_of(client, index),
            fields=adoption.fields,
            sidecar=sidecar,
            sidecar_token=sidecar_token,
            sidecar_ca_certs=feeding.ca_certs if sidecar is not None else None,
        )
        with _reported("adopted", "adopting", adoption, index, json) as on_read, dedup:
            adoption.run(
                dedup,
                backfill=sidecar is None,
                learn_first=learn_first,
                most_per_s=most_per_s,
                on_read=on_read,
            )
            if isinstance(adoption, AdoptionIntoCopies) and not (adoption.swap() or adoption.summary.read):
                say("nothing was left to do: the copies are complete and have the aliases")


@contextlib.contextmanager
def _reported(done: str, doing: str, run: InPlace, index: str, json: bool) -> Iterator[Callable[[int], None]]:
    def report() -> None:
        counts = {name: n for name, n in run.summary.model_dump().items() if n or json or name == "written"}
        output.print_summary(f"{done} in {index}", counts, json=json)

    with output.reported(report, index=index), output.count_progress(doing, run.total) as on_read:
        yield on_read
    if run.summary.failed:
        raise typer.Exit(1)


def _estimated(adoption: Adoption, profile: Profile, *, new: float) -> dict[str, int]:
    """Estimate upper limits on time and space; `new` is the share of articles that create a node."""
    estimated = {"seconds": round(adoption.total / _ADOPTED_PER_S)}
    with contextlib.suppress(SettingError):  # the costs of this profile were not measured
        server = shipped().of(profile).server
        estimated["bytes_of_articles"] = round(adoption.total * server.article_bytes)
        estimated["bytes_of_the_forest"] = round(adoption.total * new * server.node_bytes)
    return estimated


def _print_found(adoption: Adoption) -> None:
    rows = [
        (each.index, each.articles, each.without_root, each.size_bytes, "yes" if each.is_set_up else "no")
        for each in adoption.found
    ]
    names = ("index", "articles", "without a root", "bytes", "set up")
    output.print_table("nothing was written", names, rows, numbers=(1, 2, 3))
    facts = {f"{role} field": name for role, name in adoption.fields.names.items() if name}
    output.print_facts(facts | {"templates": ", ".join(adoption.templates) or "none"})


@command("migrate", example="esdedup migrate news --to news-forest-2")
def migrate(
    index: Annotated[str, typer.Argument(metavar="INDEX", show_default=False)],
    *,
    to: Annotated[str, typer.Option(metavar="NAME", show_default=False)],
    swap: bool = False,
    drop_edits: Annotated[bool, typer.Option("--drop-edits")] = False,
    most_per_s: Annotated[float | None, typer.Option("--rate", min=0.1)] = None,
    json: options.Json = False,
    feeding: options.Feeding,
) -> None:
    """Give articles the roots of another forest, with another profile or in this version's format.

    Each article gets a second `dedup` object. Readers and feeders use the first object until --swap switches
    the indices. After an interruption, run the command again to continue.

    Options:
        index: All indices of the forest: names, an alias or a pattern.
        to: The other forest, which is created if it does not exist.
        swap: Finally, switch the indices and their templates to the other forest. Stop all feeders of
            --forest first (--wait waits for them), and feed the other forest afterwards.
        drop_edits: Swap even if editors' changes in --forest will be lost.
        most_per_s: Maximum number of articles per second.
    """
    feeding.read_profile()
    overrides = feeding.overrides()
    with feeding.connect() as client:
        migration = Migration(client, index, forest=feeding.forest, to=to, on_rejected=say_rejected)
        retention = feeding.retention or migration.retention
        dedup = feeding.dedup(
            client, overrides, fields=migration.fields, forest=to, retention=retention, wait_s=0.0
        )
        with _reported("migrated", "migrating", migration, index, json) as on_read, dedup:
            migration.run(dedup, most_per_s=most_per_s, on_read=on_read)
            old = migration.forest
            if swap:
                migration.swap(dedup, wait_s=feeding.wait_s, drop_edits=drop_edits, on_read=on_read)
                say(f"{index} now belongs to {to}: feed it with that forest, no longer with {old}")
            else:
                say(f"readers see no change yet: stop feeding {old}, and run this again with --swap")


@command("remove", example="esdedup remove 'news-*'")
def remove(
    index: Annotated[str, typer.Argument(metavar="INDEX", show_default=False)],
    *,
    yes: bool = False,
    wait_s: Annotated[float, typer.Option("--wait", min=0)] = 0.0,
    json: options.Json = False,
    server: options.Server,
) -> None:
    """Take esdedup out of indices: its objects in the articles, its settings, and the forest.

    Without --yes, only reports what would be removed. The fields stay in the mappings, without values. After
    an interruption, run the command again to continue.

    Options:
        index: An index, an alias or a pattern.
        yes: Remove everything that the command reports.
        wait_s: Seconds to wait while another process owns the forest that is to be deleted.
    """
    with server.connect() as client:
        removal = Removal(client, index, on_rejected=say_rejected)
        for each in set(removal.unrecorded_users).intersection(removal.forest_users):
            say(f"{each} records no forest, but its articles have roots: {removal.forest} is kept for it")
        if not yes:
            articles = {each.index: each.without_root for each in removal.found}
            facts: dict[str, Any] = {"forest": removal.forest, "edits": removal.edits}
            facts |= {"forest_used_by": removal.forest_users, "templates": removal.templates}
            if json:
                output.print_json({"articles": articles} | facts)
                return
            output.print_counts("articles to change; nothing was changed", articles)
            output.print_facts({name.replace("_", " "): _listed(each) for name, each in facts.items()})
            say("--yes changes the articles and templates, and deletes a forest that no other index uses")
            return
        with _reported("removed", "removing", removal, index, json) as on_read:
            removal.run(wait_s=wait_s, on_read=on_read)
            if removal.summary.failed:
                say("the forest is kept: correct these articles, and run this again")
            elif removal.forest:
                users = ", ".join(removal.forest_users)
                say(f"the forest {removal.forest} {f'is kept; used by: {users}' if users else 'was deleted'}")


def _listed(fact: Any) -> str:
    return (", ".join(fact) if isinstance(fact, tuple) else str(fact or "")) or "none"
