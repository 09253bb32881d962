"""Describes errors as problem details (RFC 9457), in responses and in OpenAPI."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Scope

from esdedup import errors
from esdedup.errors import EsdedupError, Refused

PROBLEM_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:esdedup:problem:"
# The maximum number of characters in a detail, which may quote names chosen by callers.
_MAX_DETAIL = 1_000
# Enough to empty a full queue: the owner assigns about ten thousand articles in half a second.
_RETRY_AFTER_S = 1
_TEMPORARY = frozenset((429, 502, 503))
# Kinds of the errors that Starlette raises, by status.
_STARLETTE_KINDS = {400: "invalid_request", 404: "no_such_page", 405: "method_not_allowed"}
# The maximum number of invalid values in a message.
_MOST_NAMED = 5

# Status and kind of each error class; the first class that matches is used.
_KNOWN: list[tuple[type[EsdedupError], int, str]] = [
    (errors.ForestBusy, 503, "not_owner"),
    (errors.ForestLost, 503, "not_owner"),
    (errors.TextFailed, 500, "text_failed"),
    (errors.ArticleRejected, 400, "article_rejected"),
    (errors.ArticleNotFound, 404, "article_not_found"),
    (errors.ClockMismatch, 503, "clock_mismatch"),
    (errors.IndexBlocked, 503, "index_blocked"),
    (errors.IndexNotReady, 409, "index_not_ready"),
    (errors.ForestError, 503, "forest_not_usable"),
    (errors.SettingError, 400, "invalid_request"),
    (errors.ServerUnavailable, 502, "elasticsearch_unavailable"),
    (errors.ServerError, 502, "elasticsearch_error"),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    """The description of an error for the caller."""

    status: int
    # A stable identifier for clients: lower case with underscores.
    kind: str
    detail: str
    # Seconds after which to retry; None if the response gives no time.
    retry_after_s: int | None = None
    # The text shown on web pages; None shows the kind's text or, if there is none, the detail.
    words: str | None = None
    # Additional members of the problem details.
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, status: int, kind: str, detail: str) -> "Problem":
        """Return a problem; its detail, which may quote a caller, is truncated, without lone surrogates."""
        readable = detail.encode(errors="replace").decode()
        return cls(
            status=status,
            kind=kind,
            detail=readable if len(readable) <= _MAX_DETAIL else f"{readable[:_MAX_DETAIL]}…",
            retry_after_s=_RETRY_AFTER_S if status in _TEMPORARY else None,
        )

    @classmethod
    def of_error(cls, error: BaseException) -> "Problem":
        """Describe an error; an unexpected error becomes an internal error without details."""
        if isinstance(error, Refused):
            problem = cls.of(error.status, error.kind, str(error))
            wait_s = error.retry_after_s
            return problem if wait_s is None else dataclasses.replace(problem, retry_after_s=wait_s)
        for known, status, kind in _KNOWN:
            if isinstance(error, known):
                return cls.of(status, kind, str(error))
        if isinstance(error, EsdedupError):
            return cls.of(500, "failed", str(error))
        if isinstance(error, HTTPException):
            kind = _STARLETTE_KINDS.get(error.status_code, "refused")
            return cls.of(error.status_code, kind, str(error.detail))
        if isinstance(error, RequestValidationError):
            return cls.of(400, "invalid_request", _wrong_values(error))
        return cls.of(500, "internal_error", "internal error; the server's log has the details")

    def body(self) -> dict[str, Any]:
        """Return the members of the problem details."""
        return {
            "type": f"{TYPE_PREFIX}{self.kind}",
            "title": self.kind.replace("_", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            **self.facts,
        }

    def response(self) -> Response:
        """Return the response in JSON."""
        body = json.dumps(self.body(), ensure_ascii=False)
        return Response(body, self.status, self.headers, media_type=PROBLEM_TYPE)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response, for a body of any type."""
        headers = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        if self.status == 401:
            is_ours = self.kind == "token"
            scheme = 'X-Esdedup-Token realm="esdedup"' if is_ours else 'Basic realm="Elasticsearch"'
            headers["WWW-Authenticate"] = scheme
        return headers


Answer = Callable[[Scope, Problem], Response]
"""Builds the response to a failed request, in the format that the request's path requires."""


_EXAMPLE = Problem.of(404, "article_not_found", "there is no article 'en-17-3' in 'news'")


class ProblemDetails(BaseModel):
    """An error (RFC 9457)."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE.body()]})

    type: str
    title: str
    status: int
    detail: str


def described(**statuses: str) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of an API description from keywords such as ``s400``."""
    content = {PROBLEM_TYPE: {"schema": ProblemDetails.model_json_schema()}}
    named = {int(status[1:]): text for status, text in statuses.items()}
    return {
        **{status: {"description": text, "content": content} for status, text in named.items()},
        "default": {"description": "Any other error.", "content": content},
    }


def handle_errors(
    app: FastAPI,
    answer: Answer,
    *,
    problem_of: Callable[[Request, Exception], Problem] = lambda _, error: Problem.of_error(error),
) -> None:
    """Register handlers for every error of an application; `answer` builds the response."""

    async def handle(request: Request, error: Exception) -> Response:
        if isinstance(error, ClientDisconnect):
            # Nobody receives this response.
            return Response(status_code=400)
        response = answer(request.scope, problem_of(request, error))
        if isinstance(error, HTTPException):
            response.headers.update(error.headers or {})
        return response

    for kind in (ClientDisconnect, HTTPException, RequestValidationError, EsdedupError, Exception):
        app.add_exception_handler(kind, handle)


def _wrong_values(error: RequestValidationError) -> str:
    named = []
    for each in error.errors():
        name = ".".join(map(str, each["loc"][1:])) or each["loc"][-1]
        named.append(f"{name}: {each['msg'].removeprefix('Value error, ')}")
    return "; ".join(named[:_MOST_NAMED]) + ("; …" if len(named) > _MOST_NAMED else "")
