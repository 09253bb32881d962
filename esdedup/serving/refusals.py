"""The error for a refused request. Pure."""

import dataclasses

from esdedup.errors import EsdedupError


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class Refused(EsdedupError):
    """A request is refused; the message says why."""

    # The HTTP status.
    status: int = 400
    # A stable identifier for clients: lower case with underscores.
    kind: str = "invalid_request"
    # Seconds after which to retry; None uses the default for the status.
    retry_after_s: int | None = None
