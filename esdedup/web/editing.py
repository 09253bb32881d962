"""Lets editors whom a proxy names edit stories over HTTP: by forms on the pages, and as JSON."""

from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse, RedirectResponse

from esdedup.errors import EditRefused, Refused, SettingError
from esdedup.maintenance.editor import MOST_NAMED, AsyncEditor, EditHistory, EditRequest, EditResult
from esdedup.messages import translatable
from esdedup.origins import is_foreign
from esdedup.serving.problems import described
from esdedup.web.api import ERRORS, NOT_FOUND, PREFIX, check_is_json
from esdedup.web.article_pages import article_at
from esdedup.web.context import NOTICE_FIELDS, Context, ContextDep
from esdedup.web.form import MAX_CHOSEN, submitted_form
from esdedup.web.rendering import render

_MOST_SHOWN = 200
_PLACE = {"index", "id"}

router = APIRouter(include_in_schema=False)
_NOT_AN_EDITOR = described(s403="No proxy names the visitor as an editor, or another site sent the request.")
api_router = APIRouter(prefix=PREFIX, responses=ERRORS | _NOT_AN_EDITOR)


async def _editor_of(context: ContextDep) -> AsyncEditor:
    """Return the operations on stories; refuse visitors whom the proxy does not name as editors."""
    if context.stories is None or context.editor is None:
        raise Refused(
            translatable("only editors named by a proxy may edit stories: see `serve --editor-header NAME`"),
            status=403,
            kind="not_an_editor",
        )
    # Refuse even origins that may read responses: their forms would be sent with the editor's credentials.
    if is_foreign(context.request.method, context.request.headers.get):
        raise Refused(translatable("pages of other sites cannot edit"), status=403, kind="foreign_page")
    return context.stories


EditorDep = Annotated[AsyncEditor, Depends(_editor_of)]


@api_router.get("/edits", summary="The edits of stories")
async def edits(context: ContextDep, editor: EditorDep) -> EditHistory:
    """Returns all edits, earliest first, including edits that were undone."""
    return await editor.history(context.index)


@api_router.post(
    "/edits",
    summary="Merge, split or name stories, move articles, or undo an edit",
    responses=NOT_FOUND,
    dependencies=[Depends(check_is_json)],
)
async def edit(context: ContextDep, editor: EditorDep, body: EditRequest) -> EditResult:
    """Only for editors whom a proxy names, and in indices that were set up for editing.

    An article is named by its id, or by its index and id if several indices have that id.
    """
    return await editor.edit(context.index, body, by=context.editor or "")


@router.get("/edits", response_class=HTMLResponse)
async def edits_page(context: ContextDep, editor: EditorDep) -> HTMLResponse:
    """Show the edits, latest first, with a button to undo each."""
    history = await editor.history(context.index)
    latest = history.edits[-_MOST_SHOWN:][::-1]
    return render(
        "edits.html",
        context,
        edits=latest,
        undone=history.undone,
        total=len(history.edits),
        articles=history.articles,
        most_named=MOST_NAMED,
        notice=await context.notice(),
    )


@router.post("/edit")
async def edit_by_form(context: ContextDep, editor: EditorDep) -> RedirectResponse:
    """Make the edit that a form requests, and redirect to the page with the form, which then reports it."""
    sent = await submitted_form(context.request)
    given, chosen = dict(sent), dict.fromkeys(value for name, value in sent if name == "chosen")
    kept = [("chosen", each) for each in chosen]
    if "choose" in given:
        # Another page of the list keeps the chosen rows in its address.
        return _redirect(context, given["choose"], kept)
    # Error pages link to the page with the form.
    back = _redirect(context, given.get("back", ""), kept[:MAX_CHOSEN])
    context.request.state.back = back.headers["location"]
    request: dict[str, Any] = {"kind": given.get("kind"), "why": given.get("why", "").strip()}
    if request["kind"] == "undo":
        request["undoes"] = given.get("number")
    elif "id" not in given:
        # The list's form names the chosen rows.
        if len(chosen) < 2:
            raise EditRefused(translatable("choose at least two rows"))
        if not all(all(each.partition("/")) for each in chosen):
            raise SettingError("chosen: a chosen row must be given as INDEX/ID")
        places = (dict(zip(("index", "id"), each.split("/", 1), strict=True)) for each in chosen)
        request["to"], *request["ids"] = places
    else:
        article = await context.article(given["id"], in_index=given.get("index") or None)
        if request["kind"] == "name":
            request |= {name: given.get(name, "") for name in ("name", "note")}
            request["to"] = article.model_dump(include=_PLACE)
        else:
            if request["kind"] != "split":
                if not (to := given.get("to", "").strip()):
                    raise EditRefused(
                        translatable(
                            "name an article of the other story, by its id or the address of its page"
                        )
                    )
                request["to"] = (await article_at(context, to)).model_dump(include=_PLACE)
            request["ids"] = [article.model_dump(include=_PLACE)]
    made = await editor.edit(context.index, EditRequest(**request), by=context.editor or "")
    numbers = (made.edit.number, made.articles, made.same_text)
    return _redirect(context, given.get("back", "/edits"), [*zip(NOTICE_FIELDS, numbers, strict=True)])


def _redirect(context: Context, to: str, parameters: list[tuple[str, Any]]) -> RedirectResponse:
    """Redirect to a page of this site, with these parameters in place of any of an earlier edit."""
    # An address that begins with two slashes would name another host.
    path, _, query = to.lstrip("/\\").partition("?")
    kept = [each for each in parse_qsl(query) if each[0] not in {"chosen", *NOTICE_FIELDS}]
    return RedirectResponse(f"{context.prefix}/{path}?{urlencode(kept + parameters)}", status_code=303)
