"""The clock that advances a forest's time: this machine's clock, if the server's clock agrees with it."""

import time

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.status import read_server_time
from esdedup.errors import ClockMismatch, ForestAhead
from esdedup.forest.model import State
from esdedup.times import DAY_MS, iso

# Corrections of a running clock are usually smaller than this, which is much less than the tolerated day.
_JUMP_MS = 60_000
# Each of these may be a day ahead of the next one: the forest's time, the clock of the process that fed it,
# the server's clock, this machine's clock.
_MAX_AHEAD_MS = 3 * DAY_MS


class Clock:
    """This machine's clock, compared with the server's clock when first used and after each jump."""

    def __init__(self, index: ForestIndex) -> None:
        self._index = index
        # The difference between this machine's clock and its monotonic clock at the last comparison.
        self._checked_ms: int | None = None

    def now_ms(self) -> int:
        """Return the time, milliseconds since 1970."""
        now_ms = int(time.time() * 1000)
        offset_ms = now_ms - int(time.monotonic() * 1000)
        if self._checked_ms is None or abs(offset_ms - self._checked_ms) > _JUMP_MS:
            server_ms = self._index.run(read_server_time(self._index.name))
            if abs(now_ms - server_ms) > DAY_MS:
                raise ClockMismatch(
                    f"this machine's clock says {iso(now_ms)}, and Elasticsearch's clock {iso(server_ms)}: a "
                    "wrong time would expire live clusters. Set the clock that is wrong",
                    here_ms=now_ms,
                    server_ms=server_ms,
                )
            self._checked_ms = offset_ms
        return now_ms

    def latest_ms(self) -> int:
        """Return the latest plausible time of a forest, three days ahead of this machine's clock."""
        return self.now_ms() + _MAX_AHEAD_MS

    def check(self, state: State) -> int:
        """Return the time; raise `ForestAhead` if the forest's time is in the future."""
        now_ms = self.now_ms()
        if state.time_ms > now_ms + _MAX_AHEAD_MS:
            raise ForestAhead(
                f"the time of the forest {self._index.name!r} is {iso(state.time_ms)}, but it is "
                f"{iso(now_ms)}: the clock of a process that fed it was ahead, so live clusters seem to have "
                "expired. A repair with all of the forest's articles corrects this time",
                forest=self._index.name,
                time_ms=state.time_ms,
            )
        return now_ms
