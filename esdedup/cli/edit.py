"""`esdedup merge`, `split`, `move` and `edits`: what editors say of stories."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.errors import SettingError
from esdedup.maintenance.editor import EditHistory, Editor, EditRequest

Ids = Annotated[list[str], typer.Argument(metavar="ID...", show_default=False)]
By = Annotated[str, typer.Option("--by", help="Who says so.", show_default=False)]
Why = Annotated[str, typer.Option("--why", help="The reason, for those who read `esdedup edits`.")]


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
    """Make one story of the stories of some articles; it keeps the name that the first one's has.

    Articles that arrive later with their roots belong to it too.
    """
    if len(ids) < 2:
        raise SettingError("name an article of each story that is to be merged, at least two")
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
    """Make a story of its own of some articles of a story, and of all that have the same text as they."""
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
    """Move articles, and all that have the same text as they, to the story of another article.

    Options:
        to: An article of the story that they belong to from now on.
    """
    request = EditRequest(kind="move", ids=tuple(ids), to=to, why=why)
    _edit(where, index, request, by=by, json=json)


@command("edits", example="esdedup edits --index news")
def edits(
    *,
    undo: Annotated[int | None, typer.Option(metavar="NUMBER", min=1)] = None,
    by: Annotated[str | None, typer.Option("--by", help="Who undoes it.")] = None,
    why: Why = "",
    index: options.Index,
    json: options.Json = False,
    where: options.Where,
) -> None:
    """List what editors said of a forest's stories, or undo it.

    Options:
        undo: The number of an edit that counts no more; those after it stand. One that undid another can be
            undone too.
    """
    if undo is not None:
        if by is None:
            raise SettingError("--undo needs --by: who undoes it")
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
    said = f"edit {made.edit.number}: articles with another story: {made.articles:,}"
    output.print_answer(made, lambda _: output.show(said, markup=False), json=json)


def _print_history(found: EditHistory) -> None:
    rows = [
        (
            each.number,
            each.kind if each.undoes is None else f"undo {each.undoes}",
            "undone" if each.number in found.undone else "",
            each.by,
            datetime.fromtimestamp(each.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M"),
            each.why,
        )
        for each in found.edits
    ]
    output.print_table(None, ("edit", "kind", "", "by", "when (UTC)", "why"), rows, numbers=(0,))
