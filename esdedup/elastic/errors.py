"""Foreign exceptions become ours here, and nowhere else."""

import contextlib
from collections.abc import Iterator
from typing import Any

import elastic_transport
from elasticsearch import ApiError, UnsupportedProductError

from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.errors import IndexNotReady, ServerError, ServerUnavailable

_NOT_ALLOWED_STATUS = frozenset({401, 403})
_NOT_FOUND_STATUS = 404


@contextlib.contextmanager
def translated(task: str) -> Iterator[None]:
    """Raise our errors for the client's.

    Args:
        task: What is being done, to follow "cannot".

    Raises:
        ServerUnavailable: Nothing answers, or no Elasticsearch.
        IndexNotReady: The index is missing.
        ServerError: Elasticsearch refused.
    """
    try:
        yield
    except UnsupportedProductError as error:
        raise ServerUnavailable(f"cannot {task}: the server that answers is not Elasticsearch") from error
    except ApiError as error:
        raise _refused(task, reason(error), error.meta.status) from error
    except elastic_transport.TlsError as error:
        raise ServerUnavailable(
            f"cannot {task}: no secure connection ({_first_line(error.message)}); "
            "check the address and the certificates"
        ) from error
    except elastic_transport.ConnectionTimeout as error:
        raise ServerUnavailable(f"cannot {task}: the server did not answer in time") from error
    except elastic_transport.ConnectionError as error:
        raise ServerUnavailable(
            f"cannot {task}: no server answers there ({_first_line(error.message)})"
        ) from error
    except elastic_transport.SerializationError as error:
        raise ServerUnavailable(
            f"cannot {task}: the server's answer is no JSON, so it is not Elasticsearch"
        ) from error
    except elastic_transport.TransportError as error:
        raise ServerUnavailable(f"cannot {task}: {_first_line(error.message)}") from error


def refused(task: str, body: dict[str, Any], *, status: int) -> ServerError:
    """Return our error for one of several answers that came in one.

    Args:
        task: What was being done, to follow "cannot".
        body: The answer.
        status: Its status.
    """
    return _refused(task, _reason(body) or "the server gives no reason", status)


def reason(error: ApiError) -> str:
    """Return why Elasticsearch refused, in its own words, in one line."""
    # A HEAD request is refused without a word.
    said = _first_line(error.message) if error.message not in {"", "None"} else "the server gives no reason"
    return _reason(error.body) or said


def _refused(task: str, why: str, status: int) -> ServerError:
    if status in _NOT_ALLOWED_STATUS:
        return ServerError(f"cannot {task}: {why}; check the API key and what it may do")
    if status == _NOT_FOUND_STATUS:
        return IndexNotReady(f"cannot {task}: {why}")
    if status in BUSY_STATUSES:
        return ServerUnavailable(f"cannot {task}: {why}")
    return ServerError(f"cannot {task}: {why} (status {status})")


def _reason(body: object) -> str | None:
    cause = body.get("error") if isinstance(body, dict) else None
    if isinstance(cause, dict):
        causes = [cause, *cause.get("root_cause", [])]
        reasons = [each["reason"] for each in causes if isinstance(each, dict) and each.get("reason")]
        if reasons:
            return _first_line(reasons[-1] if cause.get("reason") == "all shards failed" else reasons[0])
    return _first_line(str(cause)) if cause else None


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0][:300]
