"""`esdedup setup`, `index` and `learn`: prepare an index, index articles, and learn boilerplate."""

import collections
import functools
import time
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.files import refused_file
from esdedup.cli.messages import say, say_cut, say_rejected
from esdedup.elastic.execute import execute
from esdedup.elastic.limits import MAX_SHARDS
from esdedup.elastic.patience import patient
from esdedup.elastic.requests import refresh
from esdedup.errors import ArticleRejected, IndexNotReady, SettingError
from esdedup.fields import fields_given
from esdedup.ingest.dated_names import DatedName
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.files import read_articles
from esdedup.ingest.learn import check_two_passes, refuse_to_keep, texts_of, two_passes
from esdedup.ingest.load import Load
from esdedup.ingest.records import check_readable, total_bytes
from esdedup.maintenance import Maintenance
from esdedup.reading.scope import Scope


@command("setup", example="esdedup setup news --shards 3 --route-by-root")
def setup(
    index: Annotated[str, typer.Argument(metavar="INDEX", show_default=False)],
    *,
    shards: Annotated[int | None, typer.Option(min=1, max=MAX_SHARDS)] = None,
    route_by_root: bool = False,
    language: Annotated[str | None, typer.Option(metavar="CODE")] = None,
    forest: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    editorial: bool = False,
    keyword_field: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None,
    template: bool = False,
    json: options.Json = False,
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """Add the fields that esdedup writes to an index, before articles are indexed.

    The index stores the language and the names of its articles' fields, so that other commands need no
    options for them. In a new index, no other fields of the articles are indexed.

    Options:
        index: The index, which is created if it does not exist.
        shards: Number of shards of a new index.
        route_by_root: Keep each cluster of a new index on one shard, so that sorting by count is exact on any
            number of shards. An article can then be read or deleted by its id only with its root as routing.
        language: Language of titles and texts of a new index, such as en or zh: searches then find words in
            all their forms, and Chinese by pairs of characters.
        forest: The forest that the index belongs to; other forests then refuse its articles. Default: the
            forest that assigns the index's first article.
        editorial: Let editors merge and split stories; see `esdedup merge`.
        keyword_field: A further field of the articles that readers can filter by, such as language; may be
            repeated.
        template: INDEX is an existing index template or component template; new indices made from it get the
            fields.
    """
    if template and (shards is not None or route_by_root or language is not None):
        raise SettingError("--shards, --route-by-root and --language cannot be used with --template")
    with server.connect() as client:
        if template:
            dedup = Dedup(client, fields=fields_given(field_names))
            dedup.setup_template(
                index, forest=forest, editorial=editorial, keyword_fields=keyword_field or ()
            )
            output.print_line(f"the template {index} is set up", {"template": index}, json=json)
            return
        dedup = Dedup(client, fields=field_names.fields_of(client, index))
        made = dedup.setup(
            index,
            shards=shards,
            route_by_root=route_by_root,
            language=language,
            forest=forest,
            editorial=editorial,
            keyword_fields=keyword_field or (),
        )
    line = f"created the index {index}" if made else f"the index {index} is set up"
    output.print_line(line, {"index": index, "made": made}, json=json)


@command("index", example="esdedup index news.jsonl.gz --index news")
def index(
    files: options.Files,
    *,
    index: options.Index,
    create: bool = False,
    backfill: bool = False,
    learn_first: options.LearnFirst = False,
    flush_interval_s: Annotated[float, typer.Option("--flush-interval", min=0.1, max=3_600)] = 5.0,
    refused: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    json: options.Json = False,
    feeding: options.Feeding,
    id_field: options.IdField = "id",
    field_names: options.FieldNames,
) -> None:
    """Index articles, each with its fingerprint and the root of its cluster.

    The name of the index may contain the day of each article, written as in Logstash:
    news-%{+yyyy.MM.dd}. Such indices need a template that was set up.

    Options:
        create: Leave existing articles as they are. Data streams accept articles only with this option.
        backfill: Take the forest's time from the articles' publication times instead of the clock.
        flush_interval_s: Seconds after which a batch is indexed even if it is not full, for articles that
            arrive slowly.
        refused: A new file for articles that are not indexed, for example because Elasticsearch refuses them.
            Pass it to `esdedup index` when the cause is fixed.
    """
    profile, overrides = feeding.read_profile(), feeding.overrides()
    check_readable(files)
    if learn_first:
        check_two_passes(files, profile)

    def report() -> None:
        output.print_summary(f"into {index}", load.summary.model_dump(), json=json)
        if too_old := load.summary.too_old:
            say(
                f"articles dated more than ten years ago: {too_old:,}; the time of their arrival is used "
                "instead. To index an archive, use --backfill, which accepts such dates"
            )
        if names.is_dated and (undated := load.summary.undated):
            say(f"articles without a plausible date: {undated:,}; they are in the index of today, {today}")

    names = DatedName(index)
    today = names.of(int(time.time() * 1000))
    with refused_file(refused) as on_refused, feeding.connect() as client:
        load = Load(on_rejected=say_rejected, on_cut=say_cut, on_refused=on_refused)
        fields, name = field_names.fields_of(client, today), feeding.forest_of(client, today)
        dedup = feeding.dedup(client, overrides, forest=name, fields=fields)
        try:
            fields = dedup.require_ready(today)
        except IndexNotReady as error:
            if not names.is_dated or error.status != HTTPStatus.NOT_FOUND:
                raise
            raise SettingError(
                f"no index template sets up {names.every}: create one, then run `esdedup setup TEMPLATE "
                "--template`"
            ) from error
        with output.reported(report, index=index):
            bytes_read = total_bytes(files * (1 + learn_first))
            with dedup, output.file_progress("indexing", bytes_read) as on_bytes:
                read = functools.partial(
                    read_articles, files, fields=fields, id_field=id_field, on_bytes=on_bytes
                )
                for first, articles in two_passes(read, learn_first=learn_first):
                    load.run(
                        client,
                        dedup,
                        articles,
                        index=index,
                        create=create,
                        backfill=backfill,
                        flush_interval_s=flush_interval_s,
                        learned_from=first,
                    )
            execute(patient(client), refresh(names.every))
    if load.summary.failed:
        raise typer.Exit(1)


@command("learn", example="esdedup learn --index news")
def learn(
    files: Annotated[list[Path], typer.Argument(metavar="[FILE...]", show_default=False)] = [],  # noqa: B006 - typer's idiom
    *,
    index: options.Index,
    json: options.Json = False,
    feeding: options.Feeding,
    id_field: options.IdField = "id",
    field_names: options.FieldNames,
) -> None:
    """Let a forest learn boilerplate from files or from an index, without assigning roots.

    Menus, disclaimers and the like are then left out even of the articles that are indexed first. Pages that
    were already learned from or indexed are skipped, so the command can be repeated, and the same articles
    can be indexed later.

    Options:
        files: As for `esdedup index`. Default: the latest 100,000 articles of the index, alias or pattern;
            boilerplate learned from much older articles would be forgotten again.
    """
    refuse_to_keep(feeding.read_profile())
    overrides = feeding.overrides()
    check_readable(files)
    counts, started = collections.Counter(learned=0, known=0, failed=0), time.monotonic()

    def on_rejected(rejected: ArticleRejected) -> None:
        counts["failed"] += 1
        say_rejected(rejected)

    def report() -> None:
        seconds = round(time.monotonic() - started, 3)
        summary = {"read": counts.total(), **counts, "seconds": seconds}
        output.print_summary(f"learned by {name}", summary, json=json)

    with feeding.connect() as client:
        fields, name = field_names.fields_of(client, index), feeding.forest_of(client, index)
        dedup = feeding.dedup(client, overrides, forest=name, fields=fields)
        own = execute(patient(client), Scope(fields=fields).fields_of(index))
        stored = Maintenance(client, forest=name, fields=fields)
        if files:
            progress = output.file_progress("learning", total_bytes(files))
        else:
            progress = output.count_progress("learning", stored.count_texts([index]))
        with output.reported(report, index=index), dedup, progress as on_progress:

            def on_learned(new: int, known: int) -> None:
                counts.update(learned=new, known=known)
                on_progress(0 if files else new + known)

            articles = read_articles(files, fields=own, id_field=id_field, on_bytes=on_progress)
            texts = texts_of(articles, own) if files else stored.texts([index])
            dedup.learn(texts, on_rejected=on_rejected, on_learned=on_learned)
    if counts["failed"]:
        raise typer.Exit(1)
