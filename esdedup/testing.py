"""`InMemoryDedup` and `AsyncInMemoryDedup`: feeders without Elasticsearch, for the tests of your programs.

from esdedup.testing import InMemoryDedup

def test_a_reprint_joins_the_original():
    dedup = InMemoryDedup()
    dedup.setup("news")
    original, reprint = dedup.enrich(actions)
    assert original["_source"]["dedup"]["root"] == reprint["_source"]["dedup"]["root"]
"""

import dataclasses
import functools
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import cast

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.elastic.forest.expiry import Expired
from esdedup.elastic.meta import WritableIndex
from esdedup.elastic.names import DEFAULT_FOREST, check_index_name
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import Fields, editorial
from esdedup.fingerprint import WORKERS
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import DEFAULT, Profile, get_profile
from esdedup.forest import Aging, Store
from esdedup.forest.forest import MOST_PLAUSIBLE_LEAVES
from esdedup.forest.model import DEFAULT_RETENTION
from esdedup.forest.store import MemoryStore
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigner import Assigner
from esdedup.ingest.async_dedup import AsyncDedup
from esdedup.ingest.batches import BATCH_SIZE, check_batch_size
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.learn import learn
from esdedup.ingest.owner import Owner, OwnerSettings
from esdedup.neighbours.relation import relation_of
from esdedup.reading.reader import Reader
from esdedup.times import DEFAULT_FORMAT

__all__ = ["AsyncInMemoryDedup", "InMemoryDedup"]


class InMemoryDedup(Dedup):
    """A `Dedup` whose forest is in memory, without client and server.

    It assigns articles by the same laws and adds the same dedup objects. `close` keeps the forest. An index
    exists once it was set up; after `setup_template`, every index exists. There are no articles, so there is
    no `reader`, and `setup` gives no story to earlier articles. For the parameters, see `Dedup`.
    """

    def __init__(
        self,
        *,
        profile: Profile | str = DEFAULT,
        fields: Fields | None = None,
        forest: str = DEFAULT_FOREST,
        retention: timedelta = DEFAULT_RETENTION,
        batch_size: int = BATCH_SIZE,
        most_plausible_leaves: int = MOST_PLAUSIBLE_LEAVES,
        overrides: Overrides = NO_OVERRIDES,
        workers: int = WORKERS,
    ) -> None:
        check_batch_size(batch_size)
        self._profile = get_profile(profile)
        self._fields = fields
        self._forest_name = check_index_name(forest)
        self._batch_size = batch_size
        settings = OwnerSettings(
            retention=retention,
            most_plausible_leaves=most_plausible_leaves,
            overrides=overrides,
            workers=workers,
        )
        self._owner = cast(Owner, _Owner(self._profile, settings))
        self._indices: dict[str, WritableIndex] = {}
        self._template: WritableIndex | None = None

    @property
    def reader(self) -> Reader:  # type: ignore[override] # the base class sets an attribute
        """Raise `SettingError`: nothing is indexed, so there is nothing to read."""
        raise SettingError("an InMemoryDedup indexes no articles, so there is nothing to read")

    def close(self) -> None:
        """Do nothing: the forest stays in memory."""

    def setup(
        self,
        index: str,
        *,
        shards: int | None = None,  # noqa: ARG002 - nothing is stored
        route_by_root: bool = False,
        language: str | None = None,  # noqa: ARG002
        forest: str | None = None,
        editorial: bool = False,
        keyword_fields: Collection[str] = (),  # noqa: ARG002
    ) -> bool:
        """Prepare an index, as `Dedup.setup` does; return whether it is new."""
        if check_index_name(index) in {self._forest_name, forest}:
            raise SettingError(f"{index!r} is the forest, which holds no articles: name another index")
        before = self._indices.get(index)
        new = self._index(forest or (before.forest if before else None), is_editorial=editorial)
        self._indices[index] = dataclasses.replace(new, name=index, is_routed_by_root=route_by_root)
        return before is None

    def setup_template(
        self,
        name: str,
        *,
        forest: str | None = None,
        editorial: bool = False,
        keyword_fields: Collection[str] = (),  # noqa: ARG002
    ) -> None:
        """Prepare every index that is not set up itself, whatever the template's name."""
        check_index_name(name)
        self._template = self._index(forest, is_editorial=editorial)

    def _index(self, forest: str | None, *, is_editorial: bool) -> WritableIndex:
        named = dataclasses.replace(self._fields or Fields(), time_format=DEFAULT_FORMAT)
        return WritableIndex(fields=editorial(named, is_editorial=is_editorial), forest=forest)

    def _check_process(self) -> None:
        """Do nothing: a forked process has a forest of its own."""

    def _check_index(self, name: str) -> WritableIndex:
        index = self._indices.get(name) or (self._template and dataclasses.replace(self._template, name=name))
        if index is None:
            raise IndexNotReady(f"the index {name!r} does not exist: set it up", index=name, status=404)
        if (refusal := index.refusal(self._forest_name)) is not None:
            raise IndexNotReady(refusal, index=name)
        return index


class AsyncInMemoryDedup(AsyncDedup):
    """An `AsyncDedup` that feeds an `InMemoryDedup`."""

    def __init__(self, dedup: InMemoryDedup) -> None:
        self._dedup = self._blocking = dedup
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="esdedup-dedup")


class _Owner:
    """The owner of a forest in memory; has the methods of `Owner` that `InMemoryDedup` calls."""

    def __init__(self, profile: Profile, settings: OwnerSettings) -> None:
        self._assigner = Assigner(
            profile,
            overrides=settings.overrides,
            most_plausible_leaves=settings.most_plausible_leaves,
            threads=settings.workers,
        )
        self._store = MemoryStore(aging=cast(Aging, settings.aging), relation=relation_of(profile))
        self._lock = threading.Lock()
        self.learn = functools.partial(
            learn,
            fingerprinter=Fingerprinter(profile, threads=settings.workers),
            open_store=self._locked,
            overrides=settings.overrides,
        )

    @contextmanager
    def _locked(self) -> Iterator[Store]:
        with self._lock:
            yield self._store

    def assign(self, articles: Sequence[ArticleAction]) -> None:
        with self._locked() as store:
            self._assigner.assign(articles, store=store, now_ms=int(time.time() * 1000)).result()

    def expire(self) -> Expired:
        # Expired nodes are dropped while articles are assigned.
        return Expired()
