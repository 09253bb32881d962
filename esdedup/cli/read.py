"""`esdedup list` and `esdedup similar`: reading an index."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import pydantic
import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.texts import read_text
from esdedup.errors import SettingError
from esdedup.reading.list_request import Counting, Head, Only, Sort
from esdedup.reading.reader import Reader
from esdedup.reading.search_form import values_by_field

_Answer = TypeVar("_Answer", bound=pydantic.BaseModel)


@command("list", example="esdedup list --index news --query 'electric ferries' --sort similar-desc")
def list_rows(
    *,
    index: options.Index,
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            help='Words that the title or the text must contain: all of them; "a phrase", a | b, -without, '
            "begin*, (group).",
        ),
    ] = None,
    sort: Annotated[
        Sort | None,
        typer.Option(
            "--sort",
            help="How rows are sorted. Default: relevance with --query and without --only, else newest.",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only articles from this day or moment on, ISO 8601.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", help="Only articles up to this day or moment, inclusive, ISO 8601."),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option("--source", help="Only articles from this source; repeat it for one of several."),
    ] = None,
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="FIELD:VALUE",
            help="Only articles with this value in a further keyword field, such as language:en; repeat it "
            "for one of several values, or for several fields.",
        ),
    ] = None,
    head: Annotated[
        Head | None,
        typer.Option(
            "--head",
            help="Which matching article a row shows. Default: the one that decides its position; the newest "
            "if rows are sorted by count.",
        ),
    ] = None,
    counting: Annotated[
        Counting,
        typer.Option(
            "--counting",
            help="What the sorts by count compare: all articles of a cluster, or only those that match.",
        ),
    ] = "similar",
    only: Annotated[
        Only | None,
        typer.Option(
            "--only", help="Only rows with similar articles, or only rows without; needs a sort by time."
        ),
    ] = None,
    no_dedup: Annotated[
        bool, typer.Option("--no-dedup", help="Show every article in a row of its own.")
    ] = False,
    paging: options.Paging,
    json: options.Json = False,
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """List articles, one row for each cluster of near-duplicates, with the number of similar articles."""
    if query is not None and not query.strip():
        raise SettingError("the query has no words")
    with server.connect() as client:
        reader = Reader(client, fields=field_names.fields_of(client, index))
        matching = reader.search_query(
            index, query, since=since, until=until, source=sources, where=values_by_field(conditions or [])
        )
        answer = reader.list(
            index,
            query=matching,
            sort=sort,
            head=head,
            counting=counting,
            only=only,
            dedup=not no_dedup,
            page=paging.page,
            size=paging.size,
            after=paging.after,
        )
    _print(answer, json, output.print_page)


@command("similar", example="esdedup similar --index news --id 4711 --by-source")
def similar(
    *,
    index: options.Index,
    article_id: Annotated[str | None, typer.Option("--id", help="Id of the article.")] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            "--text",
            help="Instead of an id, a file with a text, which need not be indexed; - is standard input.",
        ),
    ] = None,
    site: Annotated[
        str | None,
        typer.Option(
            "--site",
            help="With --text and --overrides: the site that the text comes from, a name or an address. "
            "Default: what the file says, if it is an article as JSON.",
            show_default=False,
        ),
    ] = None,
    by_source: Annotated[
        bool,
        typer.Option(
            "--by-source", help="Show the sources in its cluster, and how many articles each published."
        ),
    ] = False,
    other_sources: Annotated[
        bool, typer.Option("--other-sources", help="Leave out the article's own source.")
    ] = False,
    paging: options.Paging,
    json: options.Json = False,
    fingerprinting: options.Fingerprinting,
    forest: options.Forest,
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """Show who else published an article: the other articles of its cluster, newest first."""
    if (article_id is None) is (text is None):
        raise SettingError("name an article with --id, or a file with --text")
    if by_source and paging.after is not None:
        raise SettingError("--after does not go with --by-source: use --page")
    if text is not None and (by_source or other_sources):
        raise SettingError("a text has no source: --by-source and --other-sources go with --id")
    given = (fingerprinting, forest, site)
    if text is None and given != (options.Fingerprinting(), options.Forest(), None):
        raise SettingError(
            "an indexed article has its cluster: --forest, --site and options of fingerprints (--profile, "
            "--overrides and so on) go with --text"
        )
    profile, overrides = fingerprinting.profile(), fingerprinting.overrides()
    with server.connect() as client:
        fields = field_names.fields_of(client, index)
        reader = Reader(client, fields=fields, forest=forest.name, profile=profile, overrides=overrides)
        if text is not None:
            content = read_text(text, reader.fields(index))
            articles = reader.similar_to_text(
                index,
                content.text,
                site=site or content.site,
                page=paging.page,
                size=paging.size,
                after=paging.after,
            )
        elif by_source:
            sources = reader.sources(
                index, article_id or "", other_sources=other_sources, page=paging.page, size=paging.size
            )
            _print(sources, json, output.print_sources)
            return
        else:
            articles = reader.similar(
                index,
                article_id or "",
                other_sources=other_sources,
                page=paging.page,
                size=paging.size,
                after=paging.after,
            )
    _print(articles, json, output.print_similar)


def _print(answer: _Answer, json: bool, print_table: Callable[[_Answer], None]) -> None:
    if json:
        output.print_json(answer.model_dump(mode="json"))
    else:
        print_table(answer)
