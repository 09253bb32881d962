"""Responses to errors: problem details for API clients, a page for visitors."""

import dataclasses
import logging
from http import HTTPStatus

from fastapi import Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.types import Scope

from esdedup.errors import EditRefused, PageTooDeep, ServerError, ServerUnavailable
from esdedup.messages import translatable
from esdedup.serving.problems import Problem
from esdedup.web import api

# Path prefixes of the API, feeds and exports; all other paths are pages.
_DATA_PATHS = (api.ROOT, "/feed.", "/export.")
# Messages for visitors, by kind of problem; the detail for programmers is shown in small print.
_WORDS = {
    "article_not_found": translatable("There is no such article. It may have been deleted."),
    "article_rejected": translatable("The text of this article cannot be read."),
    "elasticsearch_error": translatable("Elasticsearch could not process this request."),
    "forest_not_usable": translatable("Similar articles cannot be found at the moment."),
    "index_not_ready": translatable("The articles cannot be read: their index is missing, or not set up."),
    "internal_error": translatable("internal error; the server's log has the details"),
    "invalid_request": translatable("A value in the address or the form of this page is invalid."),
    "late": translatable("The request took too long. Try again, perhaps with a narrower search."),
}
_TOO_DEEP = translatable("No more pages can be shown. Narrow the search, or choose another order.")

log = logging.getLogger("esdedup")


def error_answer(scope: Scope, problem: Problem) -> Response:
    """Return the response to an error: a page, or problem details under `_DATA_PATHS`."""
    if _path(scope).startswith(_DATA_PATHS):
        return problem.response()
    # Imported here, because the API alone needs no templates.
    from esdedup.web.languages import language_of
    from esdedup.web.rendering import render

    context = scope["app"].state.context_of(Request(scope))
    words = problem.words or _WORDS.get(problem.kind, problem.detail)
    detail = "" if problem.detail == words else problem.detail
    message = language_of(context).gettext(words)
    back = getattr(context.request.state, "back", None)
    shown = {"message": message, "detail": detail, "back": back}
    answer = render("error.html", context, status_code=problem.status, **shown)
    answer.headers.update(problem.headers)
    return answer


def problem_of(request: Request, error: Exception) -> Problem:
    """Return the problem to report for an error, without disclosing addresses."""
    if isinstance(error, HTTPException) and error.status_code == HTTPStatus.NOT_FOUND:
        if _path(request.scope).startswith(api.ROOT):
            return Problem.of(404, "no_such_endpoint", "there is no such endpoint; see the API's description")
        return Problem.of(404, "no_such_page", translatable("there is no such page"))
    if type(error) is ServerError and error.status == 400:
        # Elasticsearch cannot use a parameter, such as a year outside the range of a date_nanos field.
        return Problem.of(400, "invalid_request", str(error))
    problem = Problem.of_error(error)
    if isinstance(error, ServerUnavailable):
        # Do not disclose the address of Elasticsearch.
        log.warning("no answer for %s: %s", _path(request.scope), error)
        detail = translatable("Elasticsearch does not answer; the server's log has the details")
        return dataclasses.replace(problem, detail=detail)
    if isinstance(error, EditRefused):
        return dataclasses.replace(problem, words=str(error))
    if isinstance(error, PageTooDeep):
        return dataclasses.replace(problem, words=_TOO_DEEP)
    return problem


def _path(scope: Scope) -> str:
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))
