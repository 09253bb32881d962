"""Where a page ended, as text that a client hands back for the next one. No server remembers anything."""

import base64
import binascii
import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from esdedup.errors import SettingError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cursor:
    """The place after which a page begins."""

    # The page's number, from 1.
    page: int = 1
    # How many rows come before it.
    offset: int = 0
    # The sort values of the last of them; None where the order is counted through from its beginning.
    place: list[Any] | None = None

    def write(self, of: Sequence[Any]) -> str:
        """Return it as text.

        Args:
            of: JSON that tells what the pages are of; it must be the same when the text is read.
        """
        values = [_digest(of), self.page, self.offset, self.place]
        return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, of: Sequence[Any]) -> "Cursor":
        """Read what `write` returned.

        Raises:
            SettingError: It is none, or belongs to other pages.
        """
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            digest, page, offset, place = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        except (UnicodeError, binascii.Error, ValueError, TypeError, RecursionError) as error:
            raise SettingError("that cursor is none: take `next` of the page before, as it is") from error
        if digest != _digest(of):
            raise SettingError(
                "that cursor belongs to another list: index, query, sort and options must be the same "
                "as on the page before"
            )
        # Time, order of arrival, index.
        is_place = place is None or (isinstance(place, list) and list(map(type, place)) == [int, int, str])
        if type(page) is not int or type(offset) is not int or page < 1 or offset < 0 or not is_place:
            raise SettingError("that cursor is none: take `next` of the page before, as it is")
        return cls(page=page, offset=offset, place=place)


def _digest(of: Sequence[Any]) -> str:
    text = json.dumps(of, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(errors="backslashreplace"), digest_size=6).hexdigest()
