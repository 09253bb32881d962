"""A request that is refused, in the shape in which Elasticsearch refuses one."""

from typing import Any

import orjson

from esdedup.errors import EsdedupError


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
        """Return the error as Elasticsearch's clients expect it."""
        cause = {"type": self.type, "reason": self.reason}
        return {"error": {"root_cause": [cause], **cause}, "status": self.status}

    def body_bytes(self) -> bytes:
        """Return the same as JSON."""
        # The reason may quote half a character, which UTF-8 cannot encode.
        reason = self.reason.encode(errors="replace").decode()
        return orjson.dumps(RequestRefused(self.status, self.type, reason).body())


class BulkMalformed(RequestRefused):
    """The body of a bulk request cannot be read, so none of its articles is taken."""
