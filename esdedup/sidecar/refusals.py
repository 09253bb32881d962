"""A request that is refused, in the shape in which Elasticsearch refuses one. Pure."""

import orjson

from esdedup.serving.refusals import Refused

ARTICLE_REJECTED = "esdedup_article_rejected"
"""The type of error of an article that gets no root."""


class RequestRefused(Refused):
    """A request to Elasticsearch's interface is refused as a whole; its kind is that of Elasticsearch."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason, status=status, kind=kind)

    def body(self) -> bytes:
        """Return the answer, JSON as Elasticsearch's clients expect it."""
        return error_body(self.status, self.kind, str(self))


def error_body(status: int, kind: str, reason: str) -> bytes:
    """Return an error as Elasticsearch writes one."""
    # The reason may quote half a character, which UTF-8 cannot encode.
    cause = {"type": kind, "reason": reason.encode(errors="replace").decode()}
    return orjson.dumps({"error": {"root_cause": [cause], **cause}, "status": status})
