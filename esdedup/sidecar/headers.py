"""Which headers a proxy passes on, and requests whose bytes would change. Pure."""

import re
from collections.abc import Iterable, Sequence

from esdedup.errors import SettingError

Header = tuple[bytes, bytes]
Headers = Sequence[Header]

# What concerns one connection alone (RFC 9110, 7.6.1); the bodies are cut into chunks anew on the next one.
_ONE_CONNECTION = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
# No header may have them (RFC 9110, 5.5), but for the tab.
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class RequestUnreadable(SettingError):
    """A request cannot be sent on unchanged."""


def end_to_end(headers: Iterable[Header]) -> list[Header]:
    """Return the headers that a proxy passes on: those that do not concern one connection alone."""
    headers = list(headers)
    named = b",".join(value for name, value in headers if name.lower() == b"connection")
    dropped = _ONE_CONNECTION.union(part.strip().lower() for part in named.split(b","))
    if any(name.lower() == b"transfer-encoding" for name, _ in headers):
        # Beside chunks a length does not count, and on the next connection it would (RFC 9112, 6.3).
        dropped |= {b"content-length"}
    return [(name, value) for name, value in headers if name.lower() not in dropped]


def to_send(headers: Iterable[Header]) -> list[tuple[str, str]]:
    """Return the headers that a request goes on with: its own, but for `Host`.

    Raises:
        RequestUnreadable: One is not UTF-8, or has control characters.
    """
    return [
        (name.decode("ascii"), as_text(value, f"the header {name.decode('ascii')}"))
        for name, value in end_to_end(headers)
        if name.lower() != b"host"
    ]


def as_text(value: bytes, what: str) -> str:
    """Return a part of a request as aiohttp wants it, which writes it as the same bytes.

    Raises:
        RequestUnreadable: It is not UTF-8, or has control characters.
    """
    if _CONTROL.search(value):
        raise RequestUnreadable(f"{what} has a control character")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise RequestUnreadable(f"{what} is not UTF-8") from None
