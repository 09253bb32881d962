"""`esdedup show`: from an article to its fingerprint, root and node, and from these to articles."""

from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.errors import ArticleNotFound, ForestError, SettingError
from esdedup.maintenance import ForestNode, Maintenance
from esdedup.reading.reader import Reader
from esdedup.reading.results import FullArticle


@command("show", example="esdedup show --index news --id 4711")
def show(
    *,
    index: options.Index,
    article_id: Annotated[
        str | None, typer.Option("--id", help="Id of an article.", show_default=False)
    ] = None,
    fingerprint: Annotated[
        str | None,
        typer.Option(
            "--fingerprint",
            help="A fingerprint, which is also the id of a node: the articles that have it.",
            show_default=False,
        ),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option("--root", help="The root of a cluster: its articles.", show_default=False),
    ] = None,
    paging: options.Paging,
    json: options.Json = False,
    forest: options.Forest,
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """Show the fingerprint, bands and root of an article, or the articles with a fingerprint or a root.

    Shows as well the node that the forest keeps of the text.
    """
    given = [each for each in (article_id, fingerprint, root) if each is not None]
    if len(given) != 1:
        raise SettingError("name one thing to show: --id, --fingerprint or --root")
    if article_id is not None and paging != options.Paging():
        raise SettingError("--page, --size and --after go with --fingerprint and --root")
    with server.connect() as client:
        fields = field_names.fields_of(client, index)
        reader = Reader(client, fields=fields)
        maintenance = Maintenance(client, forest=forest.name, fields=fields)
        if article_id is not None:
            article = reader.article(index, article_id)
            node, missing = _node(maintenance, article.fingerprint)
            if json:
                shown = article.model_dump(mode="json", exclude={"text"})
                output.print_json({"article": shown} | _for_programs(node, missing))
            else:
                _print_article(article)
                _print_node(node, missing)
            return
        read = reader.cluster if root is not None else reader.with_fingerprint
        found = read(index, given[0], page=paging.page, size=paging.size, after=paging.after)
        node, missing = _node(maintenance, given[0])
    if not found.total and node is None:
        what = "fingerprint" if root is None else "root"
        raise ArticleNotFound(
            f"no article in {index!r} has the {what} {given[0]!r}; node: {missing}",
            article=given[0],
            index=index,
        )
    if json:
        output.print_json(found.model_dump(mode="json") | _for_programs(node, missing))
    else:
        _print_node(node, missing)
        output.print_articles(found)


def _node(maintenance: Maintenance, node_id: str | None) -> tuple[ForestNode | None, str | None]:
    """Return a node, or why there is none."""
    if node_id is None:
        return None, "none, since the text has no fingerprint"
    try:
        node = maintenance.node(node_id)
    except ForestError as error:
        return None, f"not known: {error}"
    return node, None if node is not None else "the forest has none, or no longer"


def _for_programs(node: ForestNode | None, missing: str | None) -> dict[str, object]:
    return {"node": None if node is None else node.model_dump(mode="json"), "node_missing": missing}


def _print_article(article: FullArticle) -> None:
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


def _print_node(node: ForestNode | None, missing: str | None) -> None:
    if node is None:
        output.print_facts({"node": missing or ""})
        return
    role = "a root" if node.is_root else f"a leaf of {node.root}"
    life = "has expired"
    if node.is_live:
        life = "lives" if node.lives_until is None else f"lives until {node.lives_until}, unless needed again"
    output.print_facts(
        {
            "node": f"{role}; {life}",
            "made": f"by arrival {node.seq:,}{'' if node.made is None else f', {node.made}'}",
            "live leaves": f"{node.live_leaves:,}",
        }
    )
