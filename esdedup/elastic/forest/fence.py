"""What keeps a stale owner's writes out of a forest.

Nodes are written through an alias that carries its owner's epoch. Whoever takes over moves the alias
on, and then waits until no write is under way that was let in before.
"""

import time
from typing import Any

from elasticsearch import AuthorizationException, Elasticsearch

from esdedup.errors import ServerUnavailable

_POLL_S = 0.05
# One, and one more for each other process that is at it.
_MOVES = 20
# Longer than a write may wait for its shard (one minute, unless told otherwise).
_DRAIN_S = 120.0


class Fence:
    """The alias that the nodes of a forest are written through."""

    def __init__(self, client: Elasticsearch, *, forest: str) -> None:
        """Name the forest.

        Args:
            client: Stays the caller's.
            forest: Name of the forest's index.
        """
        self._client = client
        self._forest = forest
        self._prefix = f"{forest}-w-"

    def alias(self, epoch: int) -> str:
        """Return the alias for the owner of that epoch."""
        return f"{self._prefix}{epoch}"

    def epochs(self) -> set[int]:
        """Return the epochs whose owners are let in."""
        aliases = self._client.indices.get_alias(index=self._forest)[self._forest]["aliases"]
        suffixes = (alias.removeprefix(self._prefix) for alias in aliases if alias.startswith(self._prefix))
        return {int(suffix) for suffix in suffixes if suffix.isascii() and suffix.isdigit()}

    def move(self, epoch: int) -> bool:
        """Let in the owner of that epoch alone; return false if one of a later epoch has been let in.

        Others may be at it too, who were slow to take the lease before, or take it meanwhile. Nobody
        removes the alias of a later epoch, and nobody writes before having seen, after adding its
        own, that no other is left: so the latest epoch wins.

        Raises:
            ServerUnavailable: A server of the cluster did not take note of it in time.
        """
        for _ in range(_MOVES):
            epochs = self.epochs()
            if epochs == {epoch}:
                return True
            is_late = max(epochs, default=0) > epoch
            stale = epochs & {epoch} if is_late else {each for each in epochs if each < epoch}
            actions: list[dict[str, Any]] = [
                {"remove": {"index": self._forest, "alias": self.alias(each)}} for each in stale
            ]
            if not is_late:
                mine = {"index": self._forest, "alias": self.alias(epoch), "is_write_index": True}
                actions.append({"add": mine})
            if actions and not self._client.indices.update_aliases(actions=actions)["acknowledged"]:
                raise ServerUnavailable(
                    f"cannot take the forest {self._forest!r}: a server of the cluster did not take note "
                    "in time, and may still let the owner before write"
                )
            if is_late:
                return False
        raise ServerUnavailable(f"cannot take the forest {self._forest!r}: its alias does not stay")

    def drain(self) -> bool:
        """Wait until no write to the forest is under way; return false if the server hides its tasks.

        A write is let in by its alias, and may then wait for its shard, however long ago the alias
        was moved on.

        Raises:
            ServerUnavailable: One does not end.
        """
        deadline = time.monotonic() + _DRAIN_S
        while True:
            try:
                # The client's own method warns of its being a preview: it has been one since version 5.
                answer = self._client.perform_request(
                    "GET",
                    "/_tasks?actions=indices:data/write/bulk*&detailed=true",
                    headers={"accept": "application/json"},
                ).body
            except AuthorizationException:
                return False
            tasks = [task for node in answer["nodes"].values() for task in node["tasks"].values()]
            is_unknown = bool(answer.get("node_failures"))
            if not is_unknown and not any(self._writes_here(task["description"]) for task in tasks):
                return True
            if time.monotonic() > deadline:
                raise ServerUnavailable(
                    f"cannot take the forest {self._forest!r}: a write of the owner before does not end"
                )
            time.sleep(_POLL_S)

    def _writes_here(self, description: str) -> bool:
        # As the server writes it: "requests[5], indices[forest-w-1]", and "index[forest][0]" of a shard.
        return f"[{self._forest}]" in description or self._prefix in description
