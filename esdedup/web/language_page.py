"""The switch of languages: keeps what a visitor chooses, and leads back to the page."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse

from esdedup.web.languages import COOKIE

_YEAR_S = 365 * 24 * 3600
# Of an address: a list's words may take most of it, and an article's page has the list's in its own.
_LONGEST_BACK = 32_000

router = APIRouter(include_in_schema=False)


@router.get("/language")
async def choose_language(
    request: Request,
    to: Literal["en", "zh"],
    back: Annotated[str, Query(max_length=_LONGEST_BACK)] = "/",
) -> RedirectResponse:
    """Keep the language in a cookie, and lead back."""
    prefix = request.scope.get("root_path", "")
    # Two slashes at the beginning would be another host's address.
    path = back.lstrip("/\\")
    answer = RedirectResponse(f"{prefix}/{path}", status_code=303)
    is_safe = request.url.scheme == "https"
    answer.set_cookie(
        COOKIE, to, max_age=_YEAR_S, path=prefix or "/", secure=is_safe, httponly=True, samesite="lax"
    )
    return answer
