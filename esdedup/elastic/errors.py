"""Foreign exceptions become ours here, and nowhere else."""

import contextlib
from collections.abc import Iterator

import elastic_transport
from elasticsearch import (
    ApiError,
    AuthenticationException,
    AuthorizationException,
    NotFoundError,
    UnsupportedProductError,
)

from esdedup.errors import IndexNotReady, ServerError, ServerUnavailable

UNAVAILABLE_STATUS = frozenset({429, 502, 503, 504})


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
    except (AuthenticationException, AuthorizationException) as error:
        raise ServerError(f"cannot {task}: {reason(error)}; check the API key and what it may do") from error
    except NotFoundError as error:
        raise IndexNotReady(f"cannot {task}: {reason(error)}") from error
    except ApiError as error:
        if error.meta.status in UNAVAILABLE_STATUS:
            raise ServerUnavailable(f"cannot {task}: {reason(error)}") from error
        raise ServerError(f"cannot {task}: {reason(error)} (status {error.meta.status})") from error
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


def reason(error: ApiError) -> str:
    """Return why Elasticsearch refused, in its own words, in one line."""
    body = error.body
    cause = body.get("error") if isinstance(body, dict) else None
    if isinstance(cause, dict):
        causes = [cause, *cause.get("root_cause", [])]
        reasons = [each["reason"] for each in causes if isinstance(each, dict) and each.get("reason")]
        if reasons:
            return _first_line(reasons[-1] if cause.get("reason") == "all shards failed" else reasons[0])
    if cause:
        return _first_line(str(cause))
    # A HEAD request is refused without a word.
    return _first_line(error.message) if error.message not in {"", "None"} else "the server gives no reason"


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0][:300]
