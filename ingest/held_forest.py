"""`HeldForest`: a forest of this process, opened when it is needed."""

from collections.abc import Callable, Iterator

from elasticsearch import Elasticsearch

from esdedup.elastic.closing import Closing
from esdedup.elastic.forest.expiry import Expired, expiring
from esdedup.elastic.forest.store import Contents, ElasticStore
from esdedup.elastic.given_client import is_inherited
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Aging, Forest

MEMORY_BYTES = 256 * 2**20
"""The most that nodes kept in memory may take by default: some 800,000 of `verified`."""


class HeldForest(Closing):
    """Takes the forest's lease when it is first used, and again if it was closed or lost. Not thread-safe."""

    def __init__(
        self,
        client: Elasticsearch,
        *,
        name: str,
        profile: Profile,
        aging: Aging | None,
        wait_s: float,
        lease_ttl_s: float,
        memory_bytes: int | None,
        address: str | None = None,
        on_new: Callable[[], None] = lambda: None,
    ) -> None:
        """Open nothing yet. Parameters are those of `ElasticStore`.

        Args:
            client: Owned by the caller.
            name: The forest's index.
            profile: Its profile.
            aging: How long nodes live from now on; None leaves it as it was.
            wait_s: How long to wait for another owner to end.
            lease_ttl_s: How long the lease holds without a renewal.
            address: Where this process takes articles for others; None if it takes none.
            memory_bytes: The most that nodes kept in memory may take; None to keep none.
            on_new: Called when a forest has been opened to which nothing has arrived yet.
        """
        self._client = client
        self._name = name
        self._profile = profile
        self._aging = aging
        self._wait_s = wait_s
        self._lease_ttl_s = lease_ttl_s
        self._address = address
        self._memory_bytes = memory_bytes
        self._on_new = on_new
        self._store: ElasticStore | None = None

    @property
    def is_open(self) -> bool:
        """Whether this process owns it, as far as it knows."""
        return self._store is not None and not self._store.is_lost

    def close(self) -> None:
        """Release the forest if it is open; in a forked process, it stays with the one that opened it."""
        if is_inherited(self._client):
            return
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def open(self) -> tuple[Forest, int]:
        """Return the forest, and the time, milliseconds since 1970; see `ElasticStore` for what it raises."""
        former = self._store
        store = self._open_store()
        if store is not former and store.state().seq == 0:
            self._on_new()
        return Forest(store), store.now_ms()

    def contents(self) -> Contents:
        """Count what the forest holds."""
        store = self._open_store()
        return store.contents()

    def expiring(self) -> Iterator[Expired]:
        """Delete expired nodes, some at a time; yield what was done so far."""
        store = self._open_store()
        steps = expiring(store.writer, store.aging)
        while True:
            with store.writer.noticing_deletion():
                expired = next(steps, None)
            if expired is None:
                return
            yield expired

    def expire(self) -> Expired:
        """Delete all expired nodes."""
        expired = Expired()
        for after in self.expiring():
            expired = after
        return expired

    def _open_store(self) -> ElasticStore:
        if self._store is None or self._store.is_lost:
            # If the opening fails, there is no store.
            self._store = None
            self._store = ElasticStore(
                self._client,
                forest=self._name,
                profile=self._profile,
                aging=self._aging,
                wait_s=self._wait_s,
                lease_ttl_s=self._lease_ttl_s,
                address=self._address,
                memory_bytes=self._memory_bytes,
            )
        return self._store
