"""The clock that moves a forest's time, which never goes back: this machine's, if the server's agrees."""

import time

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.status import read_server_time
from esdedup.errors import ClockMismatch, ForestAhead
from esdedup.forest.model import State
from esdedup.times import DAY_MS, iso

# More than the usual correction of a running clock, much less than the tolerance of a day.
_JUMP_MS = 60_000
# Given the tolerances, a forest's time can be a day later than its feeder's clock, that clock a day later
# than the server's, and the server's a day later than this machine's.
_MOST_AHEAD_MS = 3 * DAY_MS


class Clock:
    """Reads the clock of this machine; compares it with the server's at first, and whenever it jumps."""

    def __init__(self, index: ForestIndex) -> None:
        self._index = index
        # The difference between this machine's clock and its monotonic one, when the server's agreed.
        self._checked_ms: int | None = None

    def now_ms(self) -> int:
        """Return the time, milliseconds since 1970."""
        now_ms = int(time.time() * 1000)
        offset_ms = now_ms - int(time.monotonic() * 1000)
        if self._checked_ms is None or abs(offset_ms - self._checked_ms) > _JUMP_MS:
            self._compare(now_ms)
            self._checked_ms = offset_ms
        return now_ms

    def latest_ms(self) -> int:
        """Return the latest time that a forest can have now: three days more than the clock shows."""
        return self.now_ms() + _MOST_AHEAD_MS

    def check(self, state: State) -> int:
        """Make sure that a forest's time is not in the future; return the time."""
        now_ms = self.now_ms()
        if state.time_ms > now_ms + _MOST_AHEAD_MS:
            raise ForestAhead(
                f"the time of the forest {self._index.name!r} is {iso(state.time_ms)}, and now is "
                f"{iso(now_ms)}: it was fed under a clock that was ahead, and takes living clusters for "
                "expired. A repair with all its articles sets its time back",
                forest=self._index.name,
                time_ms=state.time_ms,
            )
        return now_ms

    def _compare(self, now_ms: int) -> None:
        server_ms = self._index.run(read_server_time(self._index.name))
        if abs(now_ms - server_ms) > DAY_MS:
            raise ClockMismatch(
                f"the clock of this machine says {iso(now_ms)}, that of Elasticsearch {iso(server_ms)}: a "
                "wrong time would expire living clusters. Set the clock that is wrong",
                here_ms=now_ms,
                server_ms=server_ms,
            )
