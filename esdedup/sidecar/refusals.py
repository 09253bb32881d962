"""A request that is refused, in the shape in which Elasticsearch refuses one. Pure."""

from typing import Any

import orjson

from esdedup.errors import EsdedupError


def error_body(status: int, kind: str, reason: str) -> dict[str, Any]:
    """Return the body of an answer that refuses a whole request, as Elasticsearch's clients expect it.

    Args:
        status: The HTTP status.
        kind: The type of the error, by which programs tell errors apart.
        reason: What failed, and what to do, for people.
    """
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}, "status": status}


class RequestRefused(EsdedupError):
    """A request to Elasticsearch's interface is refused as a whole.

    Attributes:
        status: The HTTP status.
        type: The kind of error, as Elasticsearch names it.
        reason: What is wrong with the request.
    """

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(status, kind, reason)
        self.status = status
        self.type = kind
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.type}: {self.reason}"

    def body(self) -> dict[str, Any]:
        """Return the answer."""
        return error_body(self.status, self.type, self.reason)

    def body_bytes(self) -> bytes:
        """Return the same as JSON."""
        # The reason may quote half a character, which UTF-8 cannot encode.
        reason = self.reason.encode(errors="replace").decode()
        return orjson.dumps(error_body(self.status, self.type, reason))


class BulkMalformed(RequestRefused):
    """The body of a bulk request cannot be read, so none of its articles is taken."""
