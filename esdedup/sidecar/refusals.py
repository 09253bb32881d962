"""A request that is refused, in the shape in which Elasticsearch refuses one. Pure."""

import orjson

from esdedup.errors import EsdedupError

ARTICLE_REJECTED = "esdedup_article_rejected"
"""The type of error of an article that gets no root."""


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

    def body(self) -> bytes:
        """Return the answer, JSON as Elasticsearch's clients expect it."""
        # The reason may quote half a character, which UTF-8 cannot encode.
        cause = {"type": self.type, "reason": self.reason.encode(errors="replace").decode()}
        return orjson.dumps({"error": {"root_cause": [cause], **cause}, "status": self.status})


class BulkMalformed(RequestRefused):
    """The body of a bulk request cannot be read, so none of its articles is taken."""
