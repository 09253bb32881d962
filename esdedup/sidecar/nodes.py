"""`Nodes`: the addresses of one cluster, used in turn."""

import asyncio
import itertools
from collections.abc import Sequence

from yarl import URL

from esdedup.errors import SettingError

# For so long a node that has refused a connection comes after the others.
_AVOIDED_S = 5.0


class Nodes:
    """Says which node comes next."""

    def __init__(self, urls: Sequence[str]) -> None:
        """Take addresses.

        Args:
            urls: A path before Elasticsearch's own paths is kept, a user and a password are not.

        Raises:
            SettingError: There is none, or one is not valid.
        """
        if not urls:
            raise SettingError("urls names no server")
        self._nodes = [Node(url) for url in urls]
        self._turns = itertools.count()
        self.is_secure = any(node.is_secure for node in self._nodes)
        """Whether one of them is reached by TLS."""

    def in_turn(self) -> list["Node"]:
        """Return all nodes in the order in which to try them; those that have refused lately come last."""
        avoided = [node for node in self._nodes if node.is_avoided()]
        used = [node for node in self._nodes if node not in avoided]
        first = next(self._turns) % max(len(used), 1)
        return [*used[first:], *used[:first], *avoided]


class Node:
    """One address."""

    def __init__(self, url: str) -> None:
        try:
            given = URL(url)
            host, port = given.host, given.port
        except ValueError:
            host = port = None
        if not host or not port or given.scheme not in {"http", "https"} or given.raw_query_string:
            # The message does not quote it: it may contain a password.
            raise SettingError("urls must be like https://localhost:9200")
        self.is_secure = given.scheme == "https"
        self._origin = URL.build(scheme=given.scheme, host=host, port=port)
        self._prefix = given.raw_path.rstrip("/")
        self._avoided_until_s = 0.0

    def __str__(self) -> str:
        return str(self._origin)

    def url(self, target: str) -> URL:
        """Return the address of a path and query, none of whose bytes change."""
        path, _, query = target.partition("?")
        return URL.build(
            scheme=self._origin.scheme,
            authority=self._origin.raw_authority,
            path=self._prefix + path,
            query_string=query,
            encoded=True,
        )

    def avoid(self) -> None:
        """Let this node come after the others for a while."""
        self._avoided_until_s = asyncio.get_running_loop().time() + _AVOIDED_S

    def is_avoided(self) -> bool:
        """Return whether this node comes after the others."""
        return asyncio.get_running_loop().time() < self._avoided_until_s
