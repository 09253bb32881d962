"""What visitors are told when something fails: problem details for programs, a page for people."""

import dataclasses
import logging
from collections.abc import Callable, Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from esdedup.errors import EsdedupError, PageTooDeep, ServerError, ServerUnavailable
from esdedup.messages import translatable
from esdedup.serving.problems import Problem
from esdedup.web import api

# What stands at the beginning of the paths that programs read; people read all others.
_OF_PROGRAMS = (api.ROOT, "/feed.", "/export.")
# Of those that Starlette raises, and those of `bodies`.
_KINDS = {
    400: "invalid_request",
    404: "no_such_page",
    405: "method_not_allowed",
    413: "body_too_large",
    503: "requests",
}
# What people read of a problem whose detail is for programmers; they read that, too, in small letters.
_WORDS = {
    "article_not_found": translatable("There is no such article. It may have been deleted."),
    "article_rejected": translatable("The text of this article cannot be read."),
    "elasticsearch_error": translatable("Elasticsearch cannot answer this."),
    "forest_not_usable": translatable("What is known of similar articles cannot be read at the moment."),
    "index_not_ready": translatable("The articles cannot be read: their index is missing, or not set up."),
    "invalid_request": translatable("A value in the address of this page is not possible."),
    "late": translatable("This took too long. Try again, perhaps with a narrower search."),
}
_TOO_DEEP = translatable("Pages reach no further down. Narrow the search, or choose another order.")

log = logging.getLogger("esdedup")


def handle_errors(
    app: FastAPI, *, problem_of: Callable[[EsdedupError], Problem | None] = lambda _: None
) -> None:
    """Make an application answer every error.

    Args:
        app: The application.
        problem_of: Returns what is answered to an error of ours, if that differs from what follows here.
    """

    async def failed(request: Request, error: Exception) -> Response:
        assert isinstance(error, EsdedupError)
        problem = problem_of(error)
        return await _failed(request, error) if problem is None else error_answer(request, problem)

    app.add_exception_handler(EsdedupError, failed)
    app.add_exception_handler(RequestValidationError, _refused)
    app.add_exception_handler(HTTPException, _not_served)
    app.add_exception_handler(Exception, _broken)


def error_answer(
    request: Request,
    problem: Problem,
    headers: Mapping[str, str] | None = None,
    *,
    words: str | None = None,
) -> Response:
    """Return the answer for an error, in the form that its path has.

    Args:
        request: What is answered.
        problem: What failed.
        headers: Further ones of the answer.
        words: What people read of it. Default: what is known of its kind, else its detail.
    """
    if _path(request).startswith(_OF_PROGRAMS):
        answer = problem.response()
    else:
        # Not for all: the API alone needs no templates.
        from esdedup.web.rendering import render_error

        words = words or _WORDS.get(problem.kind, problem.detail)
        answer = render_error(request, problem.status, words, detail=problem.detail)
        answer.headers.update(problem.headers)
    answer.headers.update(headers or {})
    return answer


def refused_answer(request: Request, error: HTTPException) -> Response:
    """Return the answer to a request that is refused before, or by, the choice of a route."""
    kind, detail = _KINDS.get(error.status_code, "refused"), str(error.detail)
    if error.status_code == 404:
        detail = translatable("there is no such page")
        if _path(request).startswith(api.ROOT):
            kind, detail = "no_such_endpoint", "there is no such endpoint: /openapi.json describes all"
    return error_answer(request, Problem.of(error.status_code, kind, detail), error.headers)


def _path(request: Request) -> str:
    return str(request.scope["path"]).removeprefix(request.scope.get("root_path", ""))


async def _failed(request: Request, error: Exception) -> Response:
    if type(error) is ServerError and error.status == 400:
        # Elasticsearch cannot read what the parameters say, such as a year that a date_nanos field lacks.
        return error_answer(request, Problem.of(400, "invalid_request", str(error)))
    problem = Problem.of_error(error)
    if isinstance(error, ServerUnavailable):
        # Where Elasticsearch is, is nobody's business.
        log.warning("no answer for %s: %s", _path(request), error)
        detail = translatable("Elasticsearch does not answer; the server's log has the details")
        problem = dataclasses.replace(problem, detail=detail)
    return error_answer(request, problem, words=_TOO_DEEP if isinstance(error, PageTooDeep) else None)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    detail = "; ".join(
        f"{each['loc'][-1]}: {each['msg'].removeprefix('Value error, ')}" for each in error.errors()
    )
    return error_answer(request, Problem.of(400, "invalid_request", detail))


async def _not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refused_answer(request, error)


async def _broken(request: Request, _: Exception) -> Response:
    detail = translatable("internal error; the server's log has the details")
    return error_answer(request, Problem.of(500, "internal_error", detail))
