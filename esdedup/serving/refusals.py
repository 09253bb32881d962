"""A request that is refused. Pure."""

from typing import ClassVar

from esdedup.errors import EsdedupError


class Refused(EsdedupError):
    """A request is refused; the message says why.

    Attributes:
        status: The HTTP status.
        kind: By which programs tell refusals apart: lower case with underscores, never changed.
        retry_after_s: After how many seconds to try again; None: as is usual for the status.
    """

    usual_status: ClassVar[int] = 400
    usual_kind: ClassVar[str] = "invalid_request"

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        kind: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s
        self.status = self.usual_status if status is None else status
        self.kind = self.usual_kind if kind is None else kind
