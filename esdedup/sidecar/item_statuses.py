"""`ItemStatuses`: how Elasticsearch has answered the items of a bulk request. Pure."""

import re
from collections import Counter
from collections.abc import Mapping

# In a string its quotes would be escaped.
_STATUS = re.compile(rb'"status"\s*:\s*(\d{3})\b')
# No status is longer, with the white space of a pretty answer.
_LONGEST = 32


class ItemStatuses:
    """Counts the statuses in an answer that comes in parts."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._rest = b""

    @property
    def counts(self) -> Mapping[int, int]:
        """How many items have each status, as far as the answer was read."""
        return self._counts

    def read(self, part: bytes) -> None:
        """Go on with the next part of the answer; one that is compressed tells nothing."""
        text = self._rest + part
        end = 0
        for found in _STATUS.finditer(text):
            self._counts[int(found[1])] += 1
            end = found.end()
        self._rest = text[max(end, len(text) - _LONGEST) :]
