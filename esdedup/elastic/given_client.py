"""Checks that the clients which callers give were not inherited by a forked process.

A fork copies open connections and held locks, but no threads: two processes on one connection read each
other's answers, and nobody renews the child's copy of a lease.
"""

import os
import weakref
from typing import Any

from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup.elastic.inherited_sockets import has_connected, has_inherited_socket
from esdedup.errors import ClientForked

_Client = Elasticsearch | AsyncElasticsearch

# The process in which this package has used the connections of each client.
_users: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()


def is_inherited(client: _Client) -> bool:
    """Return whether this client belongs to a process before a fork.

    It does if this package has connected with it there, or if it has a connection from there, whoever opened
    that.
    """
    connections = client.transport.node_pool
    user = _users.get(connections)
    if user == os.getpid():
        return False
    nodes = connections.all()
    return any(map(has_inherited_socket, nodes)) or (user is not None and any(map(has_connected, nodes)))


def refuse_inherited(client: _Client) -> None:
    """Make sure that this process may use a client. To be called before locks are taken or anything is sent.

    Raises:
        ClientForked: It belongs to a process before a fork.
    """
    connections = client.transport.node_pool
    if is_inherited(client):
        user = _users.get(connections, os.getppid())
        raise ClientForked(
            f"this process ({os.getpid()}) was forked from process {user}, and this client has connections "
            "from before that: they would read each other's answers. In each process make a client, and a "
            "Dedup (or Maintenance, Reader) with it.",
            process=user,
        )
    _users[connections] = os.getpid()
