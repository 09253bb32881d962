"""Cursors: text that says where the next page begins. The client sends it back; the server keeps no state."""

import base64
import binascii
import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from esdedup.errors import SettingError

_INVALID = "that is not a valid cursor: pass `next` of the previous page unchanged"
# Elasticsearch's numbers have 64 bits; the ends stand for an article without a time.
_BEYOND = 2**63


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cursor:
    """The position at which a page begins."""

    # The number of the page, from 1.
    page: int = 1
    # How many rows come before it.
    offset: int = 0
    # The sort values of the last row before it; None if the page is found by its offset.
    place: list[Any] | None = None

    def next(self, *, rows: int, place: list[Any] | None) -> "Cursor":
        """Return where the next page begins, after a page of `rows` rows that ends at `place`."""
        return Cursor(page=self.page + 1, offset=self.offset + rows, place=place)

    def write(self, identity: Sequence[Any]) -> str:
        """Return the cursor as text.

        Args:
            identity: Identifies the list, as JSON values; `read` requires the same.
        """
        values = [_digest(identity), self.page, self.offset, self.place]
        return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, identity: Sequence[Any]) -> "Cursor":
        """Read what `write` returned.

        Raises:
            SettingError: It is not a cursor, or belongs to another list.
        """
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            digest, page, offset, place = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        except (UnicodeError, binascii.Error, ValueError, TypeError, RecursionError) as error:
            raise SettingError(_INVALID) from error
        if digest != _digest(identity):
            raise SettingError(
                "that cursor belongs to another list: index, query, sort and options must be the same "
                "as for the previous page"
            )
        # The sort values: time, order of arrival, index.
        is_place = place is None or (isinstance(place, list) and list(map(type, place)) == [int, int, str])
        if type(page) is not int or type(offset) is not int or page < 1 or offset < 0 or not is_place:
            raise SettingError(_INVALID)
        if not all(-_BEYOND <= number < _BEYOND for number in (page, offset, *(place or [])[:2])):
            raise SettingError(_INVALID)
        return cls(page=page, offset=offset, place=place)


def _digest(identity: Sequence[Any]) -> str:
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(errors="backslashreplace"), digest_size=6).hexdigest()
