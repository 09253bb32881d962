"""Answers that refuse a request, in the shape of Elasticsearch's errors, which its clients can read."""

import orjson
from starlette.responses import Response

from esdedup.sidecar.refusals import error_body


def error_response(status: int, kind: str, reason: str, headers: dict[str, str] | None = None) -> Response:
    """Return the whole answer; parameters as for `error_body`."""
    body = orjson.dumps(error_body(status, kind, reason))
    return Response(body, status, headers, media_type="application/json")
