"""`ExpirySchedule`: expired nodes are deleted now and then, in small steps between other work."""

import time
from collections.abc import Callable, Iterator

from esdedup.elastic.forest.expiry import Expired


class ExpirySchedule:
    """Begins a deletion every so often, and goes on with it a step at a time."""

    def __init__(
        self, begin: Callable[[], Iterator[Expired]], *, every_s: float, first_after_s: float = 0.0
    ) -> None:
        """Delete nothing yet.

        Args:
            begin: Begins a deletion, which goes on with each value that is taken; see `expiring`.
            every_s: From the beginning of a deletion to that of the next.
            first_after_s: From now to the first.
        """
        self._begin = begin
        self._every_s = every_s
        self._due_s = time.monotonic() + first_after_s
        self._running: Iterator[Expired] | None = None

    def abandon(self) -> None:
        """Do not go on with a deletion, such as one of a forest that was closed."""
        self._running = None

    def step(self) -> Expired | None:
        """Go on with a deletion; return what it has deleted so far, or None if there is nothing to do now."""
        if self._running is None:
            if time.monotonic() < self._due_s:
                return None
            self._due_s = time.monotonic() + self._every_s
            self._running = self._begin()
        try:
            expired = next(self._running, None)
        except BaseException:
            self._running = None
            raise
        if expired is None:
            self._running = None
        return expired
