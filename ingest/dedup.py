"""`Dedup`: what a program uses to feed an index, and to read it."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from elasticsearch import Elasticsearch
from esdedup.ingest.actions import BulkAction
from esdedup.ingest.enricher import Enricher, OnAssigned, OnRejected

from esdedup.elastic.article_indices import Articles
from esdedup.elastic.closing import Closing
from esdedup.elastic.forest.expiry import Expired, expire
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.names import DEFAULT_FOREST, check_index_name
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile
from esdedup.forest import Aging, Forest
from esdedup.reading.reader import Reader


class Dedup(Closing, Reader):
    """Gives articles their cluster before they are indexed, and reads as a `Reader` does.

    The forest of clusters lives in the same Elasticsearch. It is opened, and its lease taken, by the
    first article that needs it, and given back by `close`; reading never needs it. Not safe for use
    by several threads at once.
    """

    def __init__(
        self,
        client: Elasticsearch,
        *,
        profile: Profile = DEFAULT,
        fields: Fields = Fields(),  # noqa: B008 - frozen
        forest: str = DEFAULT_FOREST,
        retention: timedelta | None = None,
        batch_size: int = 1_000,
        wait_s: float = 0.0,
        lease_ttl_s: float = 30.0,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            client: Stays the caller's, who closes it.
            profile: Decides fingerprints; must be the one that the forest was made with.
            fields: The names of the articles' fields.
            forest: Name of the forest's index. Several article indices may share one.
            retention: How long after an article its cluster stays open to further ones; None: as long
                as before, 30 days in a new forest. What has expired stays so when this grows.
            batch_size: Articles that are assigned together, 1 to 5,000.
            wait_s: How long to wait for another process that owns the forest.
            lease_ttl_s: How long others wait for this process when it neither goes on nor gives the
                forest back; at least 1.

        Raises:
            SettingError: A value is out of its range.
        """
        if not 1 <= lease_ttl_s < float("inf"):
            raise SettingError(f"lease_ttl_s is {lease_ttl_s}; it must be at least 1")
        if not 1 <= batch_size <= 5_000:
            raise SettingError(f"batch_size is {batch_size}; it must be from 1 to 5,000")
        check_index_name(forest)
        super().__init__(client, fields=fields, forest=forest, profile=profile)
        self._profile = profile
        self._forest_name = forest
        self._aging = None if retention is None else Aging.of(retention=retention)
        self._wait_s = wait_s
        self._lease_ttl_s = lease_ttl_s
        self._articles = Articles(client, fields=fields)
        self._enricher = Enricher(
            profile=profile,
            fields=fields,
            open_forest=self._open_forest,
            check_index=self._articles.check,
            batch_size=batch_size,
        )
        self._store: ElasticStore | None = None
        self._forest: Forest | None = None

    def close(self) -> None:
        """Give the forest back, if it was opened. It is opened again when needed."""
        store, self._store, self._forest = self._store, None, None
        if store is not None:
            store.close()

    def setup(self, index: str, *, shards: int | None = None, route_by_root: bool = False) -> bool:
        """Give `index` the fields that esdedup writes; make it if there is none.

        Args:
            index: Its name.
            shards: Of a new index; None: as the server has it.
            route_by_root: Let each article lie on the shard that its root says, so that the order by
                count is exact on any number of shards. The price: whoever gets, updates or deletes an
                article by its id has to say its root as routing; an article that is indexed again with
                another text leaves its old copy on the other shard; bulk actions must name their index;
                and very large clusters make shards uneven. It suits indices that are only appended to.
                For a new index.

        Returns:
            Whether the index was made.

        Raises:
            IndexNotReady: It has such fields with another mapping; or it is there, and not routed so.
            SettingError: No index can have that name, or so many shards.
            ServerError: Elasticsearch does not answer, or refuses.
        """
        return self._articles.setup(index, shards=shards, route_by_root=route_by_root)

    def check(self, index: str) -> None:
        """Make sure that `index` is ready for articles.

        Raises:
            IndexNotReady: It is missing, or lacks the fields.
            ServerError: Elasticsearch does not answer, or refuses.
        """
        self._articles.check(index)

    def enrich(
        self,
        actions: Iterable[BulkAction],
        *,
        backfill: bool = False,
        on_rejected: OnRejected | None = None,
        on_assigned: OnAssigned | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the bulk `actions` with the dedup object in their articles, lazily, batch by batch.

        When an action is yielded, its cluster has been written. Deletions, and updates without the
        text, pass through in their place.

        Args:
            actions: What ``elasticsearch.helpers.bulk`` takes.
            backfill: Take the forest's time from the articles instead of the clock. It never goes back:
                articles older than the retention, run through again, start anew.
            on_rejected: Told of each article that cannot be taken, which is left out; logs a warning
                if not given.
            on_assigned: Told what became of each article, just before it is yielded.

        Raises:
            IndexNotReady: An action's index lacks the fields.
            ForestError: The forest belongs to another process, or to another profile.
            ServerError: Elasticsearch does not answer, or refuses.
        """
        return self._enricher.enrich(
            actions, backfill=backfill, on_rejected=on_rejected, on_assigned=on_assigned
        )

    def expire(self) -> Expired:
        """Delete from the forest what has expired; for whoever feeds it without end, from time to time.

        `Maintenance.expire` does the same for a forest that nobody feeds at the moment.

        Raises:
            ForestError: The forest belongs to another process, or to another profile.
            ServerError: Elasticsearch does not answer, or refuses.
        """
        self._open_forest()
        assert self._store is not None
        return expire(self._store.owned, self._store.aging)

    def _open_forest(self) -> Forest:
        if self._store is not None and self._store.is_lost:
            self._store = self._forest = None
        if self._forest is None:
            self._store = ElasticStore(
                self._client,
                forest=self._forest_name,
                profile=self._profile,
                aging=self._aging,
                wait_s=self._wait_s,
                lease_ttl_s=self._lease_ttl_s,
            )
            self._forest = Forest(self._store)
        return self._forest
