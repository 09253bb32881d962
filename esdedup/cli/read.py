"""`esdedup list`, `similar` and `show`: read an index."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import esdedup
from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.files import read_text
from esdedup.errors import ArticleNotFound, ForestError, SettingError
from esdedup.reading.list_request import MOST_SOURCES, Head, Sort
from esdedup.reading.search_form import values_by_field

if TYPE_CHECKING:
    from esdedup.maintenance import ForestNode


@command("list", example="esdedup list --index news --query 'electric ferries' --sort similar-desc")
def list_rows(
    *,
    index: options.Index,
    query: str | None = None,
    sort: Sort | None = None,
    since: str | None = None,
    until: str | None = None,
    sources: Annotated[list[str] | None, typer.Option("--source")] = None,
    conditions: Annotated[list[str] | None, typer.Option("--where", metavar="FIELD:VALUE")] = None,
    head: Head | None = None,
    min_similar: Annotated[int, typer.Option(min=0)] = 0,
    min_sources: Annotated[int, typer.Option(min=0, max=MOST_SOURCES)] = 0,
    no_dedup: bool = False,
    time_zone: options.TimeZone = "UTC",
    paging: options.PageOptions,
    json: options.Json = False,
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """List articles, one row for each cluster of near-duplicates, with the number of similar articles.

    Options:
        query: Words that must all be in the title or the text; also "a phrase", a | b, -without, begin*,
            (group).
        sort: How rows are sorted; rising counts the articles of the last 24 hours. Default: relevance with
            --query, otherwise newest.
        since: Only articles from this day or time on (ISO 8601).
        until: Only articles up to and including this day or time (ISO 8601).
        sources: Only articles from this source; repeat the option to allow several sources.
        conditions: Only articles with this value in another keyword field, such as language:en; repeat the
            option to allow several values of a field, or for several fields.
        head: Which matching article a row shows. Default: the article that decides the row's position, or
            the newest if rows are sorted by count.
        min_similar: Only rows with at least this many similar articles.
        min_sources: Only rows of clusters with at least this many sources.
        no_dedup: Show every article in its own row.
    """
    if query is not None and not query.strip():
        raise SettingError("the query has no words")
    with server.connect() as client:
        reader = esdedup.Reader(client, fields=field_names.fields_of(client, index))
        matching = reader.search_query(
            index,
            query,
            since=since,
            until=until,
            source=sources,
            where=values_by_field(conditions or []),
            time_zone=time_zone,
        )
        answer = reader.list(
            index,
            query=matching,
            sort=sort,
            head=head,
            min_similar=min_similar,
            min_sources=min_sources,
            dedup=not no_dedup,
            **vars(paging),
        )
    output.print_answer(answer, output.print_page, json=json)


@command("similar", example="esdedup similar --index news --id 4711 --by-source")
def similar(
    *,
    index: options.Index,
    article_id: Annotated[str | None, typer.Option("--id")] = None,
    text: Path | None = None,
    site: str | None = None,
    by_source: bool = False,
    other_sources: bool = False,
    time_zone: options.TimeZone = "UTC",  # noqa: ARG001 - used by its callback
    paging: options.PageOptions,
    json: options.Json = False,
    fingerprinting: options.Fingerprinting,
    where: options.Where,
) -> None:
    """Show who else published an article: the other articles of its cluster, newest first.

    Options:
        article_id: Id of the article.
        text: Instead of an id, a file with a text, which need not be indexed; - is standard input.
        site: With --text: the site of the text, as a name or an address; the site's boilerplate is left out.
            Default: the site of the article, if the file is JSON.
        by_source: Show the sources in the article's cluster, and how many articles each published.
        other_sources: Leave out the article's own source.
    """
    if (article_id is None) is (text is None):
        raise SettingError("name an article with --id, or a file with --text")
    if by_source and paging.after is not None:
        raise SettingError("--after cannot be used with --by-source: use --page")
    if text is not None and (by_source or other_sources):
        raise SettingError("a text has no source: --by-source and --other-sources require --id")
    given = (fingerprinting, where.forest, site)
    if text is None and given != (options.Fingerprinting(), None, None):
        raise SettingError(
            "an indexed article already has its cluster: --forest, --site and options of fingerprints "
            "(--profile, --overrides and so on) require --text"
        )
    profile, overrides = fingerprinting.read_profile(), fingerprinting.overrides()
    with where.connect() as client:
        fields = where.fields_of(client, index)
        reader = esdedup.Reader(
            client, fields=fields, forest=where.forest, profile=profile, overrides=overrides
        )
        if text is not None:
            content = read_text(text, reader.fields(index))
            articles = reader.similar_to_text(index, content.text, site=site or content.site, **vars(paging))
        elif by_source:
            sources = reader.sources(
                index, article_id or "", other_sources=other_sources, page=paging.page, size=paging.size
            )
            output.print_answer(sources, output.print_sources, json=json)
            return
        else:
            articles = reader.similar(index, article_id or "", other_sources=other_sources, **vars(paging))
    output.print_answer(articles, output.print_similar, json=json)


@command("show", example="esdedup show --index news --id 4711")
def show(
    *,
    index: options.Index,
    article_id: Annotated[str | None, typer.Option("--id")] = None,
    fingerprint: str | None = None,
    root: str | None = None,
    time_zone: options.TimeZone = "UTC",  # noqa: ARG001 - used by its callback
    paging: options.PageOptions,
    json: options.Json = False,
    where: options.Where,
) -> None:
    """Show the fingerprint, bands and root of an article, or the articles with a given fingerprint or root.

    Also shows the forest's node for the text.

    Options:
        article_id: Show the article with this id.
        fingerprint: Show the articles with this fingerprint, which is also the id of a node.
        root: Show the articles of the cluster with this root.
    """
    given = [each for each in (article_id, fingerprint, root) if each is not None]
    if len(given) != 1:
        raise SettingError("use exactly one of --id, --fingerprint and --root")
    if article_id is not None and paging != options.PageOptions():
        raise SettingError("--page, --size and --after require --fingerprint or --root")
    with where.connect() as client:
        fields = where.fields_of(client, index)
        reader = esdedup.Reader(client, fields=fields)
        maintenance = esdedup.Maintenance(client, forest=where.forest_of(client, index))
        if article_id is not None:
            article = reader.article(index, article_id)
            story = reader.similar(index, article_id, in_index=article.index, size=1)
            node = _node(maintenance, article.fingerprint)
            if json:
                shown = article.model_dump(mode="json", exclude={"text"})
                quoting = story.model_dump(mode="json", include={"excerpt_of", "excerpts", "is_placeholder"})
                output.print_json({"article": shown} | quoting | _as_json(node))
            else:
                _print_article(article)
                _print_node(node)
                output.print_lines(output.excerpt_lines(story))
            return
        read = reader.cluster if root is not None else reader.with_fingerprint
        found = read(index, given[0], **vars(paging))
        node = _node(maintenance, given[0])
    if not found.total and isinstance(node, str):
        what = "fingerprint" if root is None else "root"
        raise ArticleNotFound(
            f"no article in {index!r} has the {what} {given[0]!r}; node: {node}",
            article=given[0],
            index=index,
        )
    if json:
        output.print_json(found.model_dump(mode="json") | _as_json(node))
    else:
        _print_node(node)
        output.print_articles(found)


def _node(maintenance: "esdedup.Maintenance", node_id: str | None) -> "ForestNode | str":
    """Return a node of the forest, or why there is none."""
    if node_id is None:
        return "none, since the text has no fingerprint"
    try:
        return maintenance.node(node_id) or "not in the forest, or deleted from it"
    except ForestError as error:
        return f"unknown: {error}"


def _as_json(node: "ForestNode | str") -> dict[str, object]:
    if isinstance(node, str):
        return {"node": None, "node_missing": node}
    return {"node": node.model_dump(mode="json"), "node_missing": None}


def _print_article(article: "esdedup.FullArticle") -> None:
    output.print_facts(
        {
            "article": f"{article.id} in {article.index}",
            "title": output.printable(article.title or ""),
            "root": article.root or "",
            "fingerprint": article.fingerprint or "none",
            "profile": article.profile or "",
            "arrival": "" if article.seq is None else f"{article.seq:,}",
            "bands": " ".join(article.bands),
        }
    )


def _print_node(node: "ForestNode | str") -> None:
    if isinstance(node, str):
        output.print_facts({"node": node})
        return
    role = "a root" if node.is_root else f"a leaf of {node.root}"
    life = "has expired"
    if node.is_live:
        life = "lives" if node.lives_until is None else f"lives until {node.lives_until}, unless seen again"
    output.print_facts(
        {
            "node": f"{role}; {life}",
            "made": f"by arrival {node.seq:,}{'' if node.made is None else f', {node.made}'}",
            "live leaves": f"{node.live_leaves:,}",
        }
    )
