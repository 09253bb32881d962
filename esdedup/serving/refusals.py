"""A request that is refused. Pure."""

from typing import ClassVar

from esdedup.errors import EsdedupError


class Refused(EsdedupError):
    """A request is refused; the message says why.

    Attributes:
        status: The HTTP status.
        kind: By which programs tell refusals apart: lower case with underscores, never changed.
    """

    usual_status: ClassVar[int] = 400
    usual_kind: ClassVar[str] = "invalid_request"

    def __init__(self, detail: str, *, status: int | None = None, kind: str | None = None) -> None:
        super().__init__(detail)
        self.status = self.usual_status if status is None else status
        self.kind = self.usual_kind if kind is None else kind
