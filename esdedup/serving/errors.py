"""What an application answers when something fails: every error becomes a problem."""

from collections.abc import Callable

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from esdedup.errors import EsdedupError
from esdedup.serving.problems import Answer, Problem

# Of those that Starlette raises.
_KINDS = {400: "invalid_request", 404: "no_such_page", 405: "method_not_allowed"}
# Of many wrong values, those that are named.
_MOST_NAMED = 5


def of_http(_request: Request, error: HTTPException) -> Problem:
    """Return what is said of an error of Starlette's."""
    return Problem.of(error.status_code, _KINDS.get(error.status_code, "refused"), str(error.detail))


def handle_errors(
    app: FastAPI,
    answer: Answer,
    *,
    problem_of: Callable[[Request, EsdedupError], Problem] = lambda _, error: Problem.of_error(error),
    problem_of_http: Callable[[Request, HTTPException], Problem] = of_http,
) -> None:
    """Let an application answer every error.

    Args:
        app: The application.
        answer: Gives a problem its shape.
        problem_of: Says what one of our errors is.
        problem_of_http: The same of one that Starlette raises.
    """

    async def failed(request: Request, error: Exception) -> Response:
        assert isinstance(error, EsdedupError)
        return answer(request.scope, problem_of(request, error))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        found = error.errors()
        named = [
            f"{'.'.join(map(str, each['loc'][1:])) or each['loc'][-1]}: "
            f"{each['msg'].removeprefix('Value error, ')}"
            for each in found
        ]
        detail = "; ".join(named[:_MOST_NAMED]) + ("; …" if len(named) > _MOST_NAMED else "")
        return answer(request.scope, Problem.of(400, "invalid_request", detail))

    async def not_served(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        response = answer(request.scope, problem_of_http(request, error))
        response.headers.update(error.headers or {})
        return response

    async def left(_request: Request, _error: Exception) -> Response:
        # Nobody reads it.
        return Response(status_code=400)

    async def broken(request: Request, error: Exception) -> Response:
        return answer(request.scope, Problem.of_error(error))

    app.add_exception_handler(EsdedupError, failed)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, not_served)
    app.add_exception_handler(ClientDisconnect, left)
    app.add_exception_handler(Exception, broken)
