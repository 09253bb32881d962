"""Sockets to listen on, and their addresses."""

import socket

from esdedup.errors import SettingError


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Args:
        host: An address or a name of this machine.
        port: 0 takes a free one.

    Raises:
        SettingError: Nobody can listen there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise SettingError(
            f"cannot listen on {host} port {port}: {error.strerror}; --port 0 takes a free one"
        ) from error
    # Its connections inherit it. Without it the body of an answer, which is sent after the head, waits until
    # the head is acknowledged: up to 40 ms. (asyncio sets it only where the socket names its protocol.)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address_of(listening: socket.socket, *, scheme: str = "http") -> str:
    """Return the address at which a socket is reached."""
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
