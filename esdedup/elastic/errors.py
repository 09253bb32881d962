"""Translates the client's exceptions into those of `esdedup.errors`."""

import contextlib
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import elastic_transport
from elasticsearch import ApiError, UnsupportedProductError

from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.errors import IndexBlocked, IndexNotReady, ServerError, ServerUnavailable, SettingError

_NOT_ALLOWED = {
    401: "check the user and the password, or the API key",
    403: "check the privileges of the user or the API key",
}
_BLOCK = "cluster_block_exception"
_CLOSED = "index_closed_exception"
FULL = "Limit of total fields"
MORE_FIELDS = "raise `index.mapping.total_fields.limit`, a setting of the index or its template"
_NO_REASON = "the server gives no reason"
_LOST_POINT = "search_context_missing_exception"
# With status 503, the server soon removes the block itself: the cluster is starting, or is electing a master.
_BLOCKED_STATUS = frozenset({403, 429})
_FULL_DISK = "read-only-allow-delete"
# The client raises the same error for a request that it cannot write and a response that it cannot read.
_REQUEST_IS_NOT_JSON = "Unable to serialize"


@contextlib.contextmanager
def translated(task: str, *, index: str | None = None) -> Iterator[None]:
    """Raise `ServerError`, or `SettingError` for a request that is not JSON, in place of the client's errors.

    `task` follows "cannot" in messages; `index` is the index, alias or pattern of the request.
    """
    try:
        yield
    except UnsupportedProductError as error:
        raise ServerUnavailable(
            f"cannot {task}: the server that answers is not Elasticsearch; `esdedup.connect` makes a client "
            "for OpenSearch",
            index=index,
        ) from error
    except ApiError as error:
        raise refused(task, error.body, status=error.meta.status, index=index, why=reason(error)) from error
    except elastic_transport.TlsError as error:
        raise ServerUnavailable(
            f"cannot {task}: no secure connection ({_first_line(error.message)}); "
            "check the certificates, and whether the address begins with http:// instead of https://",
            index=index,
        ) from error
    except elastic_transport.ConnectionTimeout as error:
        raise ServerUnavailable(f"cannot {task}: the server did not answer in time", index=index) from error
    except elastic_transport.ConnectionError as error:
        # A server with TLS closes connections on which it receives plain requests.
        closed = "; if the server uses TLS, its address begins with https://" * ("aborted" in error.message)
        why = f"no server answers ({_first_line(error.message)}){closed}"
        raise ServerUnavailable(f"cannot {task}: {why}", index=index) from error
    except elastic_transport.SerializationError as error:
        if error.message.startswith(_REQUEST_IS_NOT_JSON):
            # The client's own message may quote the whole request.
            cause = _first_line(str(error.errors[0] if error.errors else error.message))
            raise SettingError(f"cannot {task}: the request cannot be written as JSON ({cause})") from error
        raise ServerUnavailable(
            f"cannot {task}: the response is not JSON, so the server is not Elasticsearch", index=index
        ) from error
    except elastic_transport.TransportError as error:
        raise ServerUnavailable(f"cannot {task}: {_first_line(error.message)}", index=index) from error


def is_blocked(answer: object) -> bool:
    """Return whether a request or item was refused because of a block that somebody must remove."""
    return isinstance(answer, dict) and _type(answer) == _BLOCK and answer.get("status") in _BLOCKED_STATUS


def is_closed(answer: object) -> bool:
    """Return whether a request or item was refused because its index is closed."""
    return _type(answer) == _CLOSED


def is_lost_point(answer: object) -> bool:
    """Return whether a search was refused because the server has lost its point in time."""
    cause = _cause(answer)
    causes = cause.get("root_cause", []) if isinstance(cause, dict) else []
    return any(isinstance(each, dict) and each.get("type") == _LOST_POINT for each in causes)


def reason(error: ApiError) -> str:
    """Return the reason that Elasticsearch gives for a refusal, in one line."""
    # The response to a HEAD request has no body.
    text = _first_line(error.message) if error.message not in {"", "None"} else _NO_REASON
    return _reason(error.body) or text


def refused(
    task: str, body: object, *, status: int, index: str | None = None, why: str | None = None
) -> ServerError:
    """Return the error for a refused request, a failed search among several, or a failed item of a bulk."""
    why = why or _reason(body) or _NO_REASON
    message = f"cannot {task}: {why}"
    if is_blocked(body):
        action = (
            "free disk space, so that Elasticsearch removes the block"
            if _FULL_DISK in why
            else "remove the block, a setting of the index or the cluster"
        )
        return IndexBlocked(f"{message} {action}; then run this again", status=status, index=index)
    if is_closed(body):
        index = _cause(body).get("index", index)  # the request may have named an alias
        message = f"cannot {task}: the index {index!r} is closed"
        return IndexNotReady(f"{message}: open it first", status=status, index=index)
    if FULL in str(body):
        return IndexNotReady(f"{message}; {MORE_FIELDS}", status=status, index=index)
    if status in _NOT_ALLOWED:
        return ServerError(f"{message}; {_NOT_ALLOWED[status]}", status=status, index=index)
    if status == HTTPStatus.NOT_FOUND:
        return IndexNotReady(message, status=status, index=index)
    if status in BUSY_STATUSES:
        return ServerUnavailable(message, status=status, index=index)
    return ServerError(f"{message} (status {status})", status=status, index=index)


def _cause(answer: object) -> Any:
    return answer.get("error") if isinstance(answer, dict) else None


def _type(answer: object) -> object:
    cause = _cause(answer)
    return cause.get("type") if isinstance(cause, dict) else None


def _reason(body: object) -> str | None:
    cause = _cause(body)
    if isinstance(cause, dict):
        causes = [cause, *cause.get("root_cause", [])]
        reasons = [each["reason"] for each in causes if isinstance(each, dict) and each.get("reason")]
        if reasons:
            return _first_line(reasons[-1] if cause.get("reason") == "all shards failed" else reasons[0])
    return _first_line(str(cause)) if cause else None


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0][:300]
