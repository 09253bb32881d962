"""Detects requests that pages of other sites make a browser send. Pure.

The web pages and the embedded node refuse such requests. Host names are checked against DNS rebinding, where
another site's name resolves to this server. IP addresses cannot be rebound, so they are always accepted.
"""

import ipaddress
import re
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from esdedup.errors import SettingError

_ANY = "*"
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:\d{1,5})?")


def is_known_host(host: str, names: Collection[str] = ()) -> bool:
    """Return whether a `Host` header is localhost, an IP address, or one of `names` (in lower case)."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return False
    return name == "localhost" or name.endswith(".localhost") or name in names or _address(name) is not None


def is_foreign(method: str, header: Callable[[str], str | None]) -> bool:
    """Return whether a page of another site made a browser send a request; followed links do not count.

    `header` returns the value of a header. Older browsers send only `Origin`; other clients send neither.
    """
    site, origin = header("Sec-Fetch-Site"), header("Origin")
    if method in {"GET", "HEAD"}:
        return site == "cross-site" and header("Sec-Fetch-Dest") != "document"
    if site is not None:
        return site not in {"same-origin", "none"}
    return origin is not None and urlsplit(origin).netloc != (header("Host") or "")


def origin_of(given: str) -> str:
    """Return an origin in the form that browsers send; raises `SettingError` if it is invalid."""
    origin = given.strip().lower().removesuffix("/")
    if origin != _ANY and not _ORIGIN.fullmatch(origin):
        raise SettingError(
            f"{given!r} is not an origin: use the form https://desk.example or "
            "http://localhost:5173, or * for all"
        )
    # Browsers omit the default port.
    return re.sub(r"^(http:.*):80$|^(https:.*):443$", lambda found: found[1] or found[2], origin)


def is_allowed(origin: str | None, origins: Collection[str]) -> bool:
    """Return whether a request comes from a page of an allowed origin."""
    return origin is not None and (origin in origins or _ANY in origins)


def is_loopback(host: str) -> bool:
    """Return whether a host name or IP address is reachable from this machine only."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def is_wildcard(host: str) -> bool:
    """Return whether an IP address stands for all addresses of this machine."""
    address = _address(host)
    return address is not None and address.is_unspecified


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def address_of(address: str | None) -> str | None:
    """Return a server's address without a trailing slash; raises `ValueError` if it is invalid."""
    if address is None:
        return None
    parts = urlsplit(address)
    is_one = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    if not is_one or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("it must look like https://sidecar-1:9500")
    return address.rstrip("/")
