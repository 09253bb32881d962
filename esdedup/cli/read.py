"""`esdedup list` and `esdedup similar`: the answers."""

from typing import Annotated

import typer

from esdedup import queries
from esdedup.cli import options, output
from esdedup.dedup import Dedup
from esdedup.fields import Fields
from esdedup.queries import Sort


def list_rows(
    index: options.Index,
    query: Annotated[str | None, typer.Option("--query", help="Words that title or text must have.")] = None,
    sort: Annotated[
        Sort | None, typer.Option("--sort", help="Default: relevance with a query, else newest.")
    ] = None,
    page: options.PageNumber = 1,
    size: options.PageSize = 20,
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
    wanted = None if query is None else queries.words(query, fields)
    order = sort or ("newest" if query is None else "relevance")
    with options.client(url, api_key, ca_certs) as client:
        answer = Dedup(client, fields=fields).list(index, query=wanted, sort=order, page=page, size=size)
    if json:
        output.print_json(answer.model_dump(mode="json"))
    else:
        output.print_page(answer)


def similar(
    index: options.Index,
    article_id: Annotated[str, typer.Option("--id", help="Id of the article.")],
    page: options.PageNumber = 1,
    size: options.PageSize = 20,
    json: options.Json = False,
    title_field: options.TitleField = "title",
    time_field: options.TimeField = "published_at",
    source_field: options.SourceField = "source",
    link_field: options.LinkField = "url",
    url: options.Url = options.DEFAULT_URL,
    api_key: options.ApiKey = None,
    ca_certs: options.CaCerts = None,
) -> None:
    """Show who else published an article: the others of its cluster, newest first."""
    fields = Fields(title=title_field, time=time_field, source=source_field, link=link_field)
    with options.client(url, api_key, ca_certs) as client:
        answer = Dedup(client, fields=fields).similar(index, article_id, page=page, size=size)
    if json:
        output.print_json(answer.model_dump(mode="json"))
    else:
        output.print_similar(answer)
