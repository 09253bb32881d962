"""The fence that keeps a stale owner's writes out of a forest.

An owner writes through an alias whose name contains its epoch. The next owner replaces that alias with its
own, and then waits until all writes that the old alias admitted have finished.
"""

import time
from typing import Any, Literal

from elasticsearch import AuthorizationException, Elasticsearch

from esdedup.elastic.errors import translated
from esdedup.elastic.forest.stored import EDITS_SUFFIX
from esdedup.errors import ServerUnavailable

# Grace period for the previous owner's writes if the task API is unavailable.
GRACE_S = 2.0
_POLL_S = 0.05
# The maximum number of attempts; each other process that takes the forest at the same time may cost one.
_MOVES = 20
# Longer than the minute for which, by default, a write waits for its shard.
_DRAIN_S = 120.0


class Fence:
    """The alias through which an owner writes to a forest."""

    def __init__(self, client: Elasticsearch, *, forest: str) -> None:
        self._client = client
        self._forest = forest
        self._prefix = f"{forest}-w-"

    def alias(self, epoch: int) -> str:
        """Return the alias of the owner with this epoch."""
        return f"{self._prefix}{epoch}"

    def epochs(self) -> set[int]:
        """Return the epochs whose owners can write."""
        aliases = self._client.indices.get_alias(index=self._forest)[self._forest]["aliases"]
        suffixes = (alias.removeprefix(self._prefix) for alias in aliases if alias.startswith(self._prefix))
        return {int(suffix) for suffix in suffixes if suffix.isascii() and suffix.isdigit()}

    def move(self, epoch: int) -> bool:
        """Admit only the owner of this epoch; return False if a later epoch has been admitted.

        Several processes may call this at the same time: slow processes that took the lease earlier, and the
        latest owner. The latest epoch wins, since no process removes the alias of a later epoch, and each
        process writes only after it has added its own alias and checked that no other alias is left.
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
                    f"cannot take the forest {self._forest!r}: a server of the cluster did not acknowledge "
                    "the change in time, and may still admit the previous owner's writes",
                    index=self._forest,
                )
            if is_late:
                return False
        raise ServerUnavailable(
            f"cannot take the forest {self._forest!r}: other processes keep moving its alias",
            index=self._forest,
        )

    def drain(self) -> None:
        """Wait until no write to the forest is running, or for `GRACE_S` if the client may not list tasks.

        A write may wait for its shard long after the alias that admitted it was removed.
        """
        deadline = time.monotonic() + _DRAIN_S
        while True:
            try:
                # The client's own method warns that this API is a preview, as it has been since version 5.
                answer = self._client.perform_request(
                    "GET",
                    "/_tasks?actions=indices:data/write/bulk*&detailed=true",
                    headers={"accept": "application/json"},
                ).body
            except AuthorizationException:
                time.sleep(GRACE_S)
                return
            tasks = [task for node in answer["nodes"].values() for task in node["tasks"].values()]
            is_unknown = bool(answer.get("node_failures"))
            if not is_unknown and not any(
                # Descriptions read "requests[5], indices[forest-w-1]", and "index[forest][0]" for a shard.
                f"[{self._forest}]" in task["description"] or self._prefix in task["description"]
                for task in tasks
            ):
                return
            if time.monotonic() > deadline:
                raise ServerUnavailable(
                    f"cannot take the forest {self._forest!r}: a write of its previous owner still runs",
                    index=self._forest,
                )
            time.sleep(_POLL_S)

    def let_edit(self, verb: Literal["add", "remove"]) -> None:
        """Add or remove the alias through which editors write. After "remove", no edit is in progress."""
        alias = {"index": self._forest, "alias": f"{self._forest}{EDITS_SUFFIX}"}
        with translated(f"{verb} an alias of the forest {self._forest!r}", index=self._forest):
            self._client.options(ignore_status=404).indices.update_aliases(actions=[{verb: alias}])
        if verb == "remove":
            self.drain()
