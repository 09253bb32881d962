"""Errors in the shape that Elasticsearch gives them, so that its clients can read them. Pure."""

from typing import Any

import orjson
from starlette.responses import Response


def error_body(status: int, kind: str, reason: str) -> dict[str, Any]:
    """Return the body of an answer that refuses a whole request.

    Args:
        status: The HTTP status.
        kind: The type of the error, by which programs tell errors apart.
        reason: What failed, and what to do, for people.
    """
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}, "status": status}


def error_response(status: int, kind: str, reason: str, headers: dict[str, str] | None = None) -> Response:
    """Return the whole answer; parameters as for `error_body`."""
    body = orjson.dumps(error_body(status, kind, reason))
    return Response(body, status, headers, media_type="application/json")
