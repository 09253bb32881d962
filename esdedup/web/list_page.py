"""The list page."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from esdedup.elastic.limits import MAX_HITS
from esdedup.messages import translatable
from esdedup.web import formats
from esdedup.web.form import PageForm
from esdedup.web.rendering import render
from esdedup.web.state import CurrentSite

SORT_NAMES = {
    "relevance": translatable("best match"),
    "newest": translatable("newest"),
    "oldest": translatable("oldest"),
    "similar-desc": translatable("most similar"),
    "similar-asc": translatable("fewest similar"),
}

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/")
async def list_page(request: Request, site: CurrentSite, form: Annotated[PageForm, Query()]) -> HTMLResponse:
    """Show the list."""
    names = await site.reader.source_names(site.index)
    page = await site.reader.list(site.index, **await form.options(site) | {"details": True})
    choices = [name for name in names if name == formats.shortened(name)]
    return render(
        "list.html",
        request,
        form=form,
        page=page,
        sources=choices,
        sorts=SORT_NAMES,
        listed=urlencode(form.parameters),
        last_page=MAX_HITS // form.size,
    )
