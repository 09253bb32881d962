"""A request that is refused. Pure."""

from esdedup.errors import EsdedupError


class Refused(EsdedupError):
    """A request is refused; the message says why.

    Attributes:
        status: The HTTP status.
        kind: By which programs tell refusals apart: lower case with underscores, never changed.
        retry_after_s: After how many seconds to try again; None: as is usual for the status.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int = 400,
        kind: str = "invalid_request",
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.retry_after_s = status, kind, retry_after_s
