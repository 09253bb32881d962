"""`esdedup merge`, `split`, `move`, `name` and `edits`: editors' changes to stories."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.errors import SettingError
from esdedup.forest.stories import Edit
from esdedup.maintenance.editor import MOST_NAMED, EditHistory, Editor, EditRequest

Ids = Annotated[list[str], typer.Argument(metavar="ID...", show_default=False)]
By = Annotated[str, typer.Option("--by", help="Name of the editor.", show_default=False)]
Why = Annotated[str, typer.Option("--why", help="The reason, which `esdedup edits` shows.")]


@command("merge", example="esdedup merge 17 42 --index news --by 'A. Chen'")
def merge(
    ids: Ids,
    *,
    index: options.Index,
    by: By,
    why: Why = "",
    json: options.Json = False,
    where: options.Where,
) -> None:
    """Merge the stories of some articles into one story, which keeps the name of the first article's story.

    Articles that arrive later with the same roots also belong to the merged story.
    """
    if len(ids) < 2:
        raise SettingError("name at least two articles, one of each story to merge")
    request = EditRequest(kind="merge", to=ids[0], ids=tuple(ids[1:]), why=why)
    _edit(where, index, request, by=by, json=json)


@command("split", example="esdedup split 42 --index news --by 'A. Chen'")
def split(
    ids: Ids,
    *,
    index: options.Index,
    by: By,
    why: Why = "",
    json: options.Json = False,
    where: options.Where,
) -> None:
    """Split some articles, and all articles with the same texts, from their story into a new story."""
    request = EditRequest(kind="split", ids=tuple(ids), why=why)
    _edit(where, index, request, by=by, json=json)


@command("move", example="esdedup move 42 --to 17 --index news --by 'A. Chen'")
def move(
    ids: Ids,
    *,
    to: Annotated[str, typer.Option(metavar="ID", show_default=False)],
    index: options.Index,
    by: By,
    why: Why = "",
    json: options.Json = False,
    where: options.Where,
) -> None:
    """Move articles, and all articles with the same texts, to the story of another article.

    Options:
        to: An article of the story to move them to.
    """
    request = EditRequest(kind="move", ids=tuple(ids), to=to, why=why)
    _edit(where, index, request, by=by, json=json)


@command("name", example="esdedup name 17 --name 'Harbour fire' --index news --by 'A. Chen'")
def name(
    article: Annotated[str, typer.Argument(metavar="ID", show_default=False)],
    *,
    name: Annotated[str, typer.Option(show_default=False)] = "",
    note: Annotated[str, typer.Option(show_default=False)] = "",
    index: options.Index,
    by: By,
    why: Why = "",
    json: options.Json = False,
    where: options.Where,
) -> None:
    """Give the story of an article a name and a note, in place of any earlier ones.

    Options:
        name: The name, which pages show with the story; without a name and a note, both are removed.
        note: A note for the other editors and for readers of the pages.
    """
    request = EditRequest(kind="name", to=article, name=name, note=note, why=why)
    _edit(where, index, request, by=by, json=json)


@command("edits", example="esdedup edits --index news")
def edits(
    *,
    undo: Annotated[int | None, typer.Option(metavar="NUMBER", min=1)] = None,
    by: Annotated[str | None, typer.Option("--by", help="Name of the editor who undoes the edit.")] = None,
    why: Why = "",
    index: options.Index,
    json: options.Json = False,
    where: options.Where,
) -> None:
    """List the edits of a forest's stories, or undo one edit.

    Options:
        undo: The number of the edit to undo; later edits stay in effect. An edit that undid another one can
            be undone too.
    """
    if undo is not None:
        if by is None:
            raise SettingError("--undo requires --by, the name of the editor")
        request = EditRequest(kind="undo", undoes=undo, why=why)
        _edit(where, index, request, by=by, json=json)
        return
    with where.connect() as client:
        fields = where.fields_of(client, index)
        found = Editor(client, forest=where.forest, fields=fields).history(index)
    output.print_answer(found, _print_history, json=json)


def _edit(where: options.Where, index: str, request: EditRequest, *, by: str, json: bool) -> None:
    with where.connect() as client:
        editor = Editor(client, forest=where.forest, fields=where.fields_of(client, index))
        made = editor.edit(index, request, by=by)
    moved = f"articles moved to another story: {made.articles:,}"
    line = f"edit {made.edit.number}: {'name and note saved' if request.kind == 'name' else moved}"
    if made.same_text:
        line += f", of which {made.same_text:,} have the same text as those named"
    output.print_answer(made, lambda _: output.show(line, markup=False), json=json)


def _print_history(found: EditHistory) -> None:
    rows = [
        (
            each.number,
            each.kind if each.undoes is None else f"undo {each.undoes}",
            "undone" if each.number in found.undone else "",
            each.by,
            datetime.fromtimestamp(each.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M"),
            _stories(each, found),
            each.why,
        )
        for each in found.edits
    ]
    output.print_table(None, ("edit", "kind", "", "by", "when (UTC)", "stories", "why"), rows, numbers=(0,))


def _stories(edit: Edit, found: EditHistory) -> str:
    """Return the titles of the stories and texts of an edit, and of the story that they got into."""

    def title(key: str) -> str:
        article = found.articles.get(key)
        return output.passage((article.title or article.id) if article else key)

    keys = [*edit.stories, *edit.texts]
    moved = " + ".join([*map(title, keys[:MOST_NAMED]), *["…"] * (len(keys) > MOST_NAMED)])
    target = title(edit.into) if edit.into and edit.kind != "split" else ""
    return " → ".join(filter(None, (moved, target, edit.name)))
