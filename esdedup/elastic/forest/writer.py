"""A forest's index in the hands of its one owner: every write goes through here."""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from esdedup.elastic.closing import Closing
from esdedup.elastic.forest.documents import StoredNode
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.lease import Lease
from esdedup.errors import EsdedupError, ForestLost
from esdedup.forest.model import Aging, State

# Where the server does not tell what is under way: a write of the owner before should have ended.
_MARGIN_S = 2.0


class ForestWriter(Closing):
    """Writes to a forest while it holds the lease, and never after it has lost it."""

    def __init__(self, index: ForestIndex, *, wait_s: float = 0.0, lease_ttl_s: float = 30.0) -> None:
        """Take the lease.

        Args:
            index: The forest's.
            wait_s: How long to wait for another owner to end.
            lease_ttl_s: How long the lease holds without a renewal.

        Raises:
            ForestBusy: Another process owns it.
        """
        self.index = index
        self._lease = Lease(index.client, forest=index.name, ttl_s=lease_ttl_s)
        if not self._lease.acquire(wait_s=wait_s):
            time.sleep(_MARGIN_S)
        with self.giving_back():
            index.refresh()

    @contextlib.contextmanager
    def giving_back(self) -> Iterator[None]:
        """Give the lease back if what is done meanwhile fails: nobody else would."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(EsdedupError):
                self._lease.release()
            raise

    def close(self) -> None:
        """Make what was written visible to others, and give the lease back."""
        try:
            self.index.refresh()
        finally:
            self._lease.release()

    def drop(self) -> None:
        """Delete the forest, and its lease with it."""
        self._lease.renew()
        self._lease.abandon()
        self.index.drop()

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken the forest; nothing can be done with it here any more."""
        return self._lease.is_lost

    def renew(self) -> None:
        """Make sure that the lease is held.

        Raises:
            ForestLost: Another process has taken it.
        """
        self._lease.renew()

    def write(self, nodes: Sequence[StoredNode], *, state: State | None = None) -> None:
        """Write the state, roots, then leaves, each acknowledged before the next.

        Raises:
            ForestLost: Another process has taken the forest.
        """
        roots = [node for node in nodes if node.is_root]
        with self._fenced() as alias:
            if state is not None:
                self.index.write_state(state, roots, alias=alias)
            else:
                self.index.write_nodes(roots, alias=alias)
            self._lease.renew()
            self.index.write_nodes([node for node in nodes if not node.is_root], alias=alias)

    def write_ordered_since(self, seq: int) -> None:
        """Note that the order of the nodes up to `seq` tells nothing any more.

        Raises:
            ForestLost: Another process has taken the forest.
        """
        with self._fenced() as alias:
            self.index.write_ordered_since(seq, alias=alias)

    def write_aging(self, aging: Aging, *, dead_before_ms: int) -> None:
        """Note how long nodes live from now on, and the `seen` before which they have expired already.

        Raises:
            ForestLost: Another process has taken the forest.
        """
        with self._fenced() as alias:
            self.index.write_aging(aging, dead_before_ms=dead_before_ms, alias=alias)

    def delete(self, hits: Iterable[dict[str, Any]]) -> int:
        """Delete nodes, unless they have been written since they were found.

        Args:
            hits: Of a search for nodes, with their versions.

        Returns:
            How many were deleted.

        Raises:
            ForestLost: Another process has taken the forest.
        """
        with self._fenced() as alias:
            return self.index.delete_nodes(hits, alias=alias)

    @contextlib.contextmanager
    def _fenced(self) -> Iterator[str]:
        """Give the alias to write through, with the lease renewed if it was due."""
        self._lease.renew()
        try:
            yield self._lease.alias
        except ForestLost as error:
            raise self._lease.lost() from error
