"""Which connections of a client this process has inherited by a fork.

A client does not know when it connected. So a forked process notes the sockets that are open when it begins:
they are its parent's, and those that it opens later are its own.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_DESCRIPTORS = Path("/dev/fd")

_Socket = tuple[int, int, int]

# What was open when this process was forked; empty if it was not, or if its system does not list it.
_inherited: set[_Socket | None] = set()


def has_inherited_socket(node: Any) -> bool:
    """Return whether a node of a client would send requests through a socket from before the fork."""
    return bool(_inherited) and any(_identity(each) in _inherited for each in _idle_sockets(node))


def has_connected(node: Any) -> bool:
    """Return whether a node of a client has opened a connection; True if that cannot be told."""
    pools = _pools(node)
    if pools is not None:
        return any(pool.num_connections for pool in pools)
    return getattr(node, "session", node) is not None


def _idle_sockets(node: Any) -> Iterator[int]:
    """Yield the descriptors that the next requests may use. A request that was under way keeps its own."""
    for pool in _pools(node) or ():
        # A closed pool has no queue.
        for connection in list(getattr(pool.pool, "queue", ())):
            if (connected := getattr(connection, "sock", None)) is not None:
                yield connected.fileno()
    # The session of aiohttp, once there is one.
    connector = getattr(getattr(node, "session", None), "connector", None)
    for connections in list(getattr(connector, "_conns", {}).values()):
        for protocol, _ in connections:
            if protocol.transport is not None:
                yield protocol.transport.get_extra_info("socket").fileno()


def _pools(node: Any) -> list[Any] | None:
    """Return the node's pools of urllib3, its own or those of requests; None if it uses another library."""
    if (pool := getattr(node, "pool", None)) is not None:
        return [pool]
    adapters = getattr(getattr(node, "session", None), "adapters", None)
    if adapters is None:
        return None
    containers = [adapter.poolmanager.pools for adapter in adapters.values()]
    return [container[key] for container in containers for key in container.keys()]  # noqa: SIM118 - no dict


def _identity(descriptor: int) -> _Socket | None:
    """Return what tells an open file from all others, even those that get its descriptor later."""
    try:
        status = os.fstat(descriptor)
    except OSError:  # closed
        return None
    return descriptor, status.st_dev, status.st_ino


def _note_inherited() -> None:
    _inherited.clear()
    with contextlib.suppress(OSError):
        _inherited.update(_identity(int(each.name)) for each in _DESCRIPTORS.iterdir())
    _inherited.discard(None)


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_note_inherited)
