"""A request that is refused. Pure."""

import dataclasses

from esdedup.errors import EsdedupError


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class Refused(EsdedupError):
    """A request is refused; the message says why."""

    # The HTTP status.
    status: int = 400
    # By which programs tell refusals apart: lower case with underscores, never changed.
    kind: str = "invalid_request"
    # After how many seconds to try again; None: as is usual for the status.
    retry_after_s: int | None = None
