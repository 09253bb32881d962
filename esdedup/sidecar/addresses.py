"""Addresses of Elasticsearch, and the credentials that stand in them. Pure."""

import dataclasses
import re
from urllib.parse import unquote, urlsplit, urlunsplit

_BETWEEN = re.compile(r"\s*,\s*(?=https?://)", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Addresses:
    """The servers of one cluster."""

    # Without credentials.
    urls: tuple[str, ...]
    # User and password; None if no address has any.
    credentials: tuple[str, str] | None


def checked_address(address: str) -> str:
    """Return the address of one server, without a slash at its end.

    Raises:
        ValueError: It is no address, or has more in it.
    """
    parts = urlsplit(address)
    is_one = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    if not is_one or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("it must be like https://sidecar-1:9500")
    return address.rstrip("/")


def read_addresses(text: str) -> Addresses:
    """Read addresses that are separated by commas.

    Raises:
        ValueError: One is no address, or they name several users. The message quotes nothing.
    """
    urls: list[str] = []
    found: set[tuple[str, str]] = set()
    for address in _BETWEEN.split(text.strip()):
        parts = urlsplit(address)
        if parts.scheme.lower() not in {"http", "https"} or not parts.hostname:
            raise ValueError("an address must be like https://localhost:9200")
        if parts.username is not None:
            found.add((unquote(parts.username), unquote(parts.password or "")))
        urls.append(urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])))
    if len(found) > 1:
        raise ValueError("the addresses name several users; give one")
    return Addresses(tuple(urls), next(iter(found), None))
