"""What visitors are told when something fails: a status, and a message as JSON or as a page."""

from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from esdedup.errors import (
    ArticleNotFound,
    ArticleRejected,
    EsdedupError,
    ForestError,
    IndexBlocked,
    IndexNotReady,
    ServerError,
    ServerUnavailable,
    SettingError,
)
from esdedup.web import api
from esdedup.web.bounds import cut
from esdedup.web.languages import translatable
from esdedup.web.rendering import render_error

_STATUS: list[tuple[type[EsdedupError], int]] = [
    (SettingError, 400),
    (ArticleRejected, 400),
    (ArticleNotFound, 404),
    (ForestError, 409),
    (IndexBlocked, 503),
    (IndexNotReady, 503),
    (ServerUnavailable, 503),
]


def handle_errors(app: FastAPI) -> None:
    """Make an application answer every error."""
    app.add_exception_handler(EsdedupError, _failed)
    app.add_exception_handler(RequestValidationError, _refused)
    app.add_exception_handler(HTTPException, _not_served)
    app.add_exception_handler(Exception, _broken)


def error_answer(
    request: Request, status: int, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer for an error: JSON for programs, a page for people."""
    # It may name what the visitor has sent.
    message = cut(message)
    if request.scope["path"].removeprefix(request.scope.get("root_path", "")).startswith(api.PREFIX):
        answer: Response = JSONResponse({"error": message}, status_code=status)
    else:
        answer = render_error(request, status, message)
    answer.headers.update(headers or {})
    return answer


async def _failed(request: Request, error: Exception) -> Response:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 502)
    if status == 502 and isinstance(error, ServerError) and error.status == 400:
        # Elasticsearch cannot read what the parameters say, such as a year that a date_nanos field lacks.
        status = 400
    return error_answer(request, status, str(error))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    messages = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())
    return error_answer(request, 400, messages)


async def _not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = translatable("there is no such page") if error.status_code == 404 else str(error.detail)
    return error_answer(request, error.status_code, message, error.headers)


async def _broken(request: Request, _: Exception) -> Response:
    return error_answer(request, 500, translatable("internal error; the server's log has the details"))
