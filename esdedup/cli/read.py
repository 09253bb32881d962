"""`esdedup list` and `esdedup similar`: the answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import pydantic
import typer

from esdedup.cli import options, output
from esdedup.cli.texts import read_text
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading import queries
from esdedup.reading.list_request import Counting, Head, Only, Sort
from esdedup.reading.reader import Reader

_Answer = TypeVar("_Answer", bound=pydantic.BaseModel)


def list_rows(
    index: options.Index,
    query: Annotated[str | None, typer.Option("--query", help="Words that title or text must have.")] = None,
    sort: Annotated[
        Sort | None, typer.Option("--sort", help="Default: relevance with a query, else newest.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only articles from that day or moment on.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="Only articles up to it.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Only articles of that source.")] = None,
    head: Annotated[
        Head | None,
        typer.Option("--head", help="Which article stands for a row. Default: as the sort has it."),
    ] = None,
    counting: Annotated[
        Counting,
        typer.Option("--counting", help="What sorts by count count: whole clusters, or what matches."),
    ] = "similar",
    only: Annotated[
        Only | None, typer.Option("--only", help="Only rows with similar articles, or only single ones.")
    ] = None,
    no_dedup: Annotated[bool, typer.Option("--no-dedup", help="A row for each article.")] = False,
    page: options.PageNumber = 1,
    size: options.PageSize = 20,
    after: options.After = None,
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
    """List articles, one row for each group of near-duplicates, with the number of similar ones."""
    fields = Fields(text=text_field, title=title_field, time=time_field, source=source_field, link=link_field)
    if query is not None and not query.strip():
        raise SettingError("the query has no words")
    with options.client(url, api_key, ca_certs) as client:
        reader = Reader(client, fields=fields)
        wanted = queries.narrowed(
            query,
            fields=fields,
            since=since,
            until=until,
            source=source,
            source_field=reader.source_field(index) if source else None,
        )
        answer = reader.list(
            index,
            query=wanted,
            sort=sort or ("newest" if query is None else "relevance"),
            head=head,
            counting=counting,
            only=only,
            dedup=not no_dedup,
            page=page,
            size=size,
            after=after,
        )
    _print(answer, json, output.print_page)


def similar(
    index: options.Index,
    article_id: Annotated[str | None, typer.Option("--id", help="Id of the article.")] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            "--text",
            help="In place of an id, a file with a text that need not be indexed; - is standard input.",
        ),
    ] = None,
    by_source: Annotated[
        bool, typer.Option("--by-source", help="Which other media published it, with how many articles.")
    ] = False,
    other_sources: Annotated[
        bool, typer.Option("--other-sources", help="Leave out the article's own source.")
    ] = False,
    page: options.PageNumber = 1,
    size: options.PageSize = 20,
    after: options.After = None,
    json: options.Json = False,
    profile: options.ProfileName = options.DEFAULT_PROFILE,
    keywords: options.KeywordCount = None,
    weights: options.Weights = None,
    text_field: options.TextField = "text",
    forest: options.ForestName = DEFAULT_FOREST,
    title_field: options.TitleField = "title",
    time_field: options.TimeField = "published_at",
    source_field: options.SourceField = "source",
    link_field: options.LinkField = "url",
    url: options.Url = options.DEFAULT_URL,
    api_key: options.ApiKey = None,
    ca_certs: options.CaCerts = None,
) -> None:
    """Show who else published an article: the others of its cluster, newest first."""
    fields = Fields(text=text_field, title=title_field, time=time_field, source=source_field, link=link_field)
    if (article_id is None) is (text is None):
        raise SettingError("name an article with --id, or a file with --text")
    if by_source and after is not None:
        raise SettingError("pages of sources have numbers: use --page")
    if text is not None and (by_source or other_sources):
        raise SettingError("a text has no source: --by-source and --other-sources go with --id")
    content = None if text is None else read_text(text, fields)
    with options.client(url, api_key, ca_certs) as client:
        reader = Reader(
            client, fields=fields, forest=forest, profile=options.profile(profile, keywords, weights)
        )
        if content is not None:
            articles = reader.similar_to_text(index, content, page=page, size=size, after=after)
        elif by_source:
            sources = reader.sources(
                index, article_id or "", other_sources=other_sources, page=page, size=size
            )
            _print(sources, json, output.print_sources)
            return
        else:
            articles = reader.similar(
                index, article_id or "", other_sources=other_sources, page=page, size=size, after=after
            )
    _print(articles, json, output.print_similar)


def _print(answer: _Answer, json: bool, print_table: Callable[[_Answer], None]) -> None:
    if json:
        output.print_json(answer.model_dump(mode="json"))
    else:
        print_table(answer)
