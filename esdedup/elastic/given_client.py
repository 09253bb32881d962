"""Checks the clients that callers give: blocking or asynchronous, and not inherited by a forked process.

A fork copies open connections and held locks, but no threads: two processes on one connection read each
other's answers, and nobody renews the child's copy of a lease.
"""

import os
import weakref
from typing import Any

from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup.errors import ClientForked, SettingError

_Client = Elasticsearch | AsyncElasticsearch

# The process that uses the connections of each client.
_users: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()


def take_blocking(client: _Client, *, taker: str) -> None:
    """Check a client that is given to `taker`, and note this process as its user. Sends nothing.

    Raises:
        SettingError: It is asynchronous.
    """
    if isinstance(client, AsyncElasticsearch):
        raise SettingError(f"client is an AsyncElasticsearch; {taker} needs an Elasticsearch")
    _users.setdefault(client.transport.node_pool, os.getpid())


def take_async(client: _Client, *, taker: str) -> None:
    """Check a client that is given to `taker`, and note this process as its user. Sends nothing.

    Raises:
        SettingError: It is not asynchronous.
    """
    if isinstance(client, Elasticsearch):
        raise SettingError(f"client is an Elasticsearch; {taker} needs an AsyncElasticsearch")
    _users.setdefault(client.transport.node_pool, os.getpid())


def is_inherited(client: _Client) -> bool:
    """Return whether the process before a fork has used this client."""
    connections = client.transport.node_pool
    user = _users.get(connections, os.getpid())
    return user != os.getpid() and any(map(_has_connected, connections.all()))


def refuse_inherited(client: _Client) -> None:
    """Make sure that this process may use a client. To be called before locks are taken or anything is sent.

    Raises:
        ClientForked: The process before a fork has used it.
    """
    if is_inherited(client):
        user = _users[client.transport.node_pool]
        raise ClientForked(
            f"this process ({os.getpid()}) was forked from process {user}, which has used this client: they "
            "would read each other's answers. In each process make a client, and a Dedup (or Maintenance, "
            "Reader) with it.",
            process=user,
        )
    _users[client.transport.node_pool] = os.getpid()


def _has_connected(node: Any) -> bool:
    """Return whether a node of a client has opened a connection; True if that cannot be told."""
    made: int = getattr(getattr(node, "pool", None), "num_connections", 1)
    return made > 0
