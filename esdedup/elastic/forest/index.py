"""A forest's index: finds, creates, reads, refreshes and deletes it. `ForestWriter` writes nodes."""

import dataclasses
import logging
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

import tenacity
from elasticsearch import ApiError, Elasticsearch

from esdedup.elastic.errors import translated
from esdedup.elastic.execute import execute, hit_pages
from esdedup.elastic.forest.lease import Lease
from esdedup.elastic.forest.log import EVERY_LOG, LogNodes, log_body
from esdedup.elastic.forest.meta import REBUILT_SUFFIX, Lookup, Meta, read_meta, refuse_others
from esdedup.elastic.forest.search import NodeSearch
from esdedup.elastic.forest.status import ForestStatus, read_status
from esdedup.elastic.forest.stored import search_body
from esdedup.elastic.limits import DEFAULT_LIMITS, Limits
from esdedup.elastic.mappings import forest_index, template_of
from esdedup.elastic.pages import Hits
from esdedup.elastic.patience import patient, retrying
from esdedup.elastic.requests import Query, Requests
from esdedup.errors import ForestIncomplete, ForestMissing, IndexNotReady, ServerBusy, ServerError
from esdedup.fingerprint.profile import Profile

log = logging.getLogger("esdedup")

_Result = TypeVar("_Result")

# A refresh waits a minute for a shard without a primary, and then reports neither success nor failure for it.
# So a response within this time covers all shards.
_REFRESH_S = 50.0
# With any of these in its mapping or settings, a forest would be mistaken for another index, or lose data.
_HARMFUL = {"_data_stream_timestamp", "_routing", "_source", "enabled", "esdedup"}
_HARMFUL |= {"blocks", "default_pipeline", "final_pipeline", "lifecycle", "mode", "sort", "translog"}


class ForestIndex:
    """The index of one forest, and a patient client for it."""

    def __init__(
        self, client: Elasticsearch, *, name: str, meta: Meta, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        """Use an existing index; `client` should be `patient`. See `find` and `make`."""
        self.client = client
        self.name = name
        self.meta = meta
        self.limits = limits
        # False once the server has refused a refresh.
        self.may_refresh = True
        self.relation = meta.relation
        self.search = NodeSearch(
            forest=name,
            relation=self.relation,
            layout=meta.key_layout,
            limits=limits,
            scan=self.hit_pages,
        )
        self.log = LogNodes(forest=name, relation=self.relation) if meta.is_log else None

    @property
    def nodes(self) -> NodeSearch | LogNodes:
        """The operations, for `run`, that read the forest's nodes: by searches, or from a copy of its log."""
        return self.log or self.search

    @classmethod
    def find(cls, client: Elasticsearch, name: str, *, limits: Limits = DEFAULT_LIMITS) -> "ForestIndex":
        """Find a forest with any profile. Requests to it are retried while the server is unavailable."""
        client = patient(client)
        meta = execute(client, read_meta(name))
        if meta is None:
            raise ForestMissing.of(name)
        return cls(client, name=name, meta=meta, limits=limits)

    @classmethod
    def open(
        cls,
        client: Elasticsearch,
        name: str,
        *,
        profile: Profile,
        lookup: Lookup | None = None,
        shards: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> "ForestIndex":
        """Find a forest, which must have this profile, lookup and shards; create it if there is none.

        Without `lookup` and `shards`, an existing forest may have any, and a new forest gets `memory` and 1.
        """
        made = Meta.of(profile, lookup=lookup, shards=1 if shards is None else shards)
        index = cls.make(client, name, meta=made, limits=limits)
        refuse_others(name, index.meta, profile, lookup=lookup, shards=shards)
        return index

    @classmethod
    def make(
        cls, client: Elasticsearch, name: str, *, meta: Meta, limits: Limits = DEFAULT_LIMITS
    ) -> "ForestIndex":
        """Find a forest with any profile; create it if there is none."""
        client = patient(client)
        found = execute(client, read_meta(name))
        if found is None:
            if execute(client, read_meta(f"{name}{REBUILT_SUFFIX}")):
                reason = "is being rebuilt from articles; if the rebuild was interrupted, repeat it"
                raise ForestIncomplete(f"the forest {name!r} {reason}", forest=name)
            refuse_templates(client, name)
            with translated(f"make the forest {name!r}", index=name):
                body = forest_index(meta=dataclasses.asdict(meta))
                try:
                    client.indices.create(index=name, **body)
                except ApiError as error:
                    # Another process may have created the index first.
                    if error.error != "resource_already_exists_exception":
                        raise
            found = execute(client, read_meta(name)) or meta
        return cls(client, name=name, meta=found, limits=limits)

    def run(self, requests: Requests[_Result]) -> _Result:
        """Execute an operation, such as a method of `search` returns, and return its result."""
        return execute(self.client, requests)

    def status(self, *, latest_ms: int | None = None) -> ForestStatus:
        """Read the forest's status as of the last refresh; times later than `latest_ms` are ignored."""
        return self.run(read_status(self.name, latest_ms=latest_ms))

    def hit_pages(
        self, query: Query, *, sort: Sequence[Any] = ("_doc",), versions: bool = False, repeated: bool = False
    ) -> Iterator[Hits]:
        """Yield the hits of `search_body`, in pages, for all documents that match at the first request."""
        size = self.limits.max_hits
        body = search_body(query, sort=sort, versions=versions, repeated=repeated, size=size)
        return hit_pages(self.client, self.name, body)

    def log_pages(self, query: Query = EVERY_LOG, *, versions: bool = False) -> Iterator[Hits]:
        """Yield the matching documents of a log in their order, in pages, as `hit_pages` does."""
        return hit_pages(self.client, self.name, log_body(query, versions=versions))

    def setting(self, name: str) -> str:
        """Return a setting of the index, such as `uuid`, which is new when an index is created again."""
        with translated(f"find the forest {self.name!r}", index=self.name):
            answer = self.client.indices.get(index=self.name, features="settings")
        return str(next(iter(answer.values()))["settings"]["index"][name])

    def size_bytes(self) -> int:
        """Return the space that the index takes on disk, without replicas."""
        with translated(f"read the size of the forest {self.name!r}", index=self.name):
            answer = self.client.indices.stats(index=self.name, metric="store")
        return int(answer["_all"]["primaries"]["store"]["size_in_bytes"])

    @retrying(tenacity.retry_if_exception_type(ServerBusy)).wraps
    def refresh(self) -> None:
        """Make all writes visible to searches."""
        client = self.client.options(request_timeout=_REFRESH_S)
        with translated(f"refresh the forest {self.name!r}", index=self.name):
            shards = client.indices.refresh(index=self.name)["_shards"]
        if shards["failed"] or not shards["successful"]:
            raise ServerBusy(f"cannot refresh the forest {self.name!r}: a shard failed", index=self.name)

    def refresh_if_allowed(self) -> bool:
        """Refresh if the client has the privilege; return whether it has it. Log a missing privilege once."""
        try:
            self.refresh()
        except ServerError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            if self.may_refresh:
                log.warning(
                    "this client may not refresh the forest %r (it lacks the privilege `maintenance`): "
                    "recent writes to the forest may seem to be missing",
                    self.name,
                )
            self.may_refresh = False
        return self.may_refresh

    def block_writes(self, value: bool | None) -> None:
        """Block writes to the index, or admit them (None)."""
        with translated(f"prepare the forest {self.name!r}", index=self.name):
            self.client.indices.put_settings(index=self.name, settings={"index.blocks.write": value})

    def copy_to(self, name: str, aliases: Sequence[str]) -> None:
        """Create the forest `name`, with these aliases, as a copy of this one, which takes no more writes."""
        self.block_writes(True)
        free = {"index.blocks.write": None}
        with translated(f"make the forest {name!r}", index=name):
            answer = self.client.indices.clone(
                index=self.name, target=name, settings=free, aliases={each: {} for each in aliases}
            )
        if not answer["shards_acknowledged"]:
            raise ServerBusy(f"the forest {name!r} has not been copied from {self.name!r} yet", index=name)

    def drop(self, lease: Lease | None = None) -> None:
        """Delete the index, together with a lease that this process holds on it."""
        if lease is not None:
            lease.renew()
            lease.abandon()
        with translated(f"delete the forest {self.name!r}", index=self.name):
            self.client.options(ignore_status=404).indices.delete(index=self.name)


def refuse_templates(client: Elasticsearch, name: str) -> None:
    """Raise if an index template would give a forest of this name aliases or harmful settings."""
    asking = client.options(ignore_status=HTTPStatus.FORBIDDEN).indices
    with translated(f"check the name of the forest {name!r}", index=name):
        given = asking.simulate_index_template(name=name).get("template", {})
        found = template_of(name, asking.get_index_template().get("index_templates", []))
    mapping, settings = given.get("mappings", {}), given.get("settings", {}).get("index", {})
    harmful = _HARMFUL.intersection([*mapping, *mapping.get("_meta", ()), *settings])
    if added := [*(f"the alias {each}" for each in given.get("aliases", ())), *sorted(harmful)]:
        raise IndexNotReady(
            f"the template {found and found['name']!r} would give the forest {name!r} {', '.join(added)}: "
            "choose another name, narrow its index patterns, or add an empty template of higher priority",
            index=name,
        )
