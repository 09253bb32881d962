"""A forest's index: how it is opened, what is written to it."""

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from elasticsearch import ApiError, Elasticsearch

from esdedup.elastic.client import PartlyRefused, patient, until_all_is_taken
from esdedup.elastic.errors import translated
from esdedup.elastic.forest.documents import Document, StoredNode, chunks, documents
from esdedup.elastic.forest.meta import Meta, read_meta, refuse_incomplete, refuse_others
from esdedup.elastic.forest.search import NodeSearch
from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.elastic.mappings import forest_index
from esdedup.errors import ForestLost, ForestMissing, ServerError
from esdedup.fingerprint.bands import LAYOUTS, Layout
from esdedup.fingerprint.profile import Profile
from esdedup.forest.model import NO_TIME, Aging, State
from esdedup.neighbours.relation import relation_of

DEFAULT_AGING = Aging.of(retention=timedelta(days=30))
STATE_ID = "~state"
AGING_ID = "~aging"
REBUILT_ID = "~rebuilt"
# What one bulk request may hold.
_BULK_DOCUMENTS = 5_000


class ForestIndex:
    """The index of one forest. Knows nothing of who may write to it."""

    def __init__(self, client: Elasticsearch, *, name: str, meta: Meta) -> None:
        self.client = client
        self.name = name
        self.meta = meta
        self.relation = relation_of(meta)
        self.search = NodeSearch(client, forest=name, relation=self.relation, layout=self.layout)

    @property
    def layout(self) -> Layout:
        """The layout of the nodes' keys."""
        return LAYOUTS[self.meta.layout]

    @classmethod
    def find(cls, client: Elasticsearch, name: str) -> "ForestIndex":
        """Find the forest of that name.

        The client is given patience: what the server is too busy for is asked again.

        Raises:
            ForestMismatch: That index is no forest, or of an unknown format.
            ForestMissing: There is none.
            ForestIncomplete: A rebuild of it has not ended.
        """
        client = patient(client)
        found = read_meta(client, name)
        if found is None:
            raise ForestMissing(
                f"there is no forest {name!r}; the first article that is indexed makes it", forest=name
            )
        refuse_incomplete(name, found)
        return cls(client, name=name, meta=found)

    @classmethod
    def open(cls, client: Elasticsearch, name: str, *, profile: Profile) -> "ForestIndex":
        """Find the forest of that name, and make it if there is none.

        Raises:
            ForestMismatch: It was made with another profile, or in an unknown format.
        """
        index = cls.make(client, name, meta=Meta.of(profile))
        refuse_others(name, index.meta, profile)
        return index

    @classmethod
    def make(cls, client: Elasticsearch, name: str, *, meta: Meta) -> "ForestIndex":
        """Find the forest of that name, whatever it says of itself; make it if there is none.

        Raises:
            ForestMismatch: That index is no forest, or of an unknown format.
        """
        client = patient(client)
        found = read_meta(client, name)
        if found is None:
            with translated(f"make the forest {name!r}"):
                body = forest_index(meta=dataclasses.asdict(meta))
                try:
                    client.indices.create(index=name, **body)
                except ApiError as error:
                    # Another process was faster.
                    if error.error != "resource_already_exists_exception":
                        raise
            found = read_meta(client, name) or meta
        return cls(client, name=name, meta=found)

    def write_meta(self, meta: Meta) -> None:
        """Let the index say something else of itself."""
        with translated(f"complete the forest {self.name!r}"):
            self.client.indices.put_mapping(index=self.name, meta={"esdedup": dataclasses.asdict(meta)})
        self.meta = meta

    def drop(self) -> None:
        """Delete the index, with all that is in it."""
        with translated(f"delete the forest {self.name!r}"):
            self.client.options(ignore_status=404).indices.delete(index=self.name)

    def state(self) -> State:
        """Read the state of the last plan that was written."""
        stored = State(**self._stored(STATE_ID))
        with translated(f"read the state of the forest {self.name!r}"):
            answer = self.client.search(
                index=self.name,
                size=0,
                aggs=state_aggregations(seq="seq", time="made"),
                allow_partial_search_results=False,
            )["aggregations"]
        # A crash may have left nodes that are newer than the state, and a state may be lost.
        return stored.after(state_of(answer))

    def ordered_since(self) -> int:
        """Return the seq up to which nodes were rebuilt or repaired, so that their order tells nothing."""
        return self._stored(REBUILT_ID).get("seq", 0)

    def write_ordered_since(self, seq: int, *, alias: str) -> None:
        """Write that number, through the alias of the owner.

        Raises:
            ForestLost: The alias has been moved on.
        """
        self._write([(REBUILT_ID, {"state": {"seq": seq}})], alias)

    def size_bytes(self) -> int:
        """Return the space that the index takes on disk, without its copies."""
        with translated(f"read the size of the forest {self.name!r}"):
            answer = self.client.indices.stats(index=self.name, metric="store")
        return int(answer["_all"]["primaries"]["store"]["size_in_bytes"])

    def aging(self) -> Aging | None:
        """Return how long nodes lived for the last one that wrote to the forest, None before."""
        stored = self._stored(AGING_ID)
        return (
            Aging(retention_ms=stored["retention_ms"], granularity_ms=stored["granularity_ms"])
            if stored
            else None
        )

    def live_since_ms(self, aging: Aging) -> int:
        """Return the `seen` from which on (inclusive) a node lives now; NO_TIME: all of them live.

        What expired when nodes lived for a shorter time does not live.
        """
        return max(self.dead_before_ms(), self.state().live_since_ms(aging))

    def dead_before_ms(self) -> int:
        """Return the `seen` before which nodes had expired when nodes began to live longer, or NO_TIME."""
        return self._stored(AGING_ID).get("dead_before_ms", NO_TIME)

    def write_aging(self, aging: Aging, *, dead_before_ms: int, alias: str) -> None:
        """Write how long nodes live, through the alias of the owner.

        Args:
            aging: From now on.
            dead_before_ms: Nodes seen until before that have expired, whatever comes.
            alias: The owner's.

        Raises:
            ForestLost: The alias has been moved on.
        """
        state = dataclasses.asdict(aging) | {"dead_before_ms": dead_before_ms}
        self._write([(AGING_ID, {"state": state})], alias)

    def write_state(self, state: State, roots: Sequence[StoredNode], *, alias: str) -> None:
        """Write the state and roots, acknowledged, through the alias of the owner.

        Raises:
            ForestLost: The alias has been moved on.
        """
        self._write([(STATE_ID, {"state": dataclasses.asdict(state)}), *self._documents(roots)], alias)

    def write_nodes(self, nodes: Sequence[StoredNode], *, alias: str) -> None:
        """Write nodes, acknowledged, through the alias of the owner.

        Raises:
            ForestLost: The alias has been moved on.
        """
        self._write(self._documents(nodes), alias)

    @until_all_is_taken
    def delete_nodes(self, hits: Iterable[dict[str, Any]], *, alias: str) -> int:
        """Delete those nodes that are as they were found; return how many.

        Raises:
            ForestLost: The alias has been moved on.
        """
        operations = [
            {
                "delete": {
                    "_id": hit["_id"],
                    "if_seq_no": hit["_seq_no"],
                    "if_primary_term": hit["_primary_term"],
                }
            }
            for hit in hits
        ]
        if not operations:
            return 0
        with translated(f"remove nodes of the forest {self.name!r}"):
            answer = self.client.bulk(index=alias, operations=operations, timeout=_BULK_TIMEOUT)
        results = [item["delete"] for item in answer["items"]]
        for result in results:
            # A node that is gone has no error; one that was written since has, and so has a busy server.
            if result["status"] == 404 and "error" in result:
                raise ForestLost(f"the forest {self.name!r} has another owner", forest=self.name)
            if result["status"] in BUSY_STATUSES:
                raise PartlyRefused(f"cannot remove nodes of {self.name!r}: the server is too busy")
        return sum(result["status"] == 200 for result in results)

    @until_all_is_taken
    def refresh(self) -> None:
        """Make visible all that has been written."""
        with translated(f"refresh the forest {self.name!r}"):
            answer = self.client.indices.refresh(index=self.name)
        if answer["_shards"]["failed"]:
            raise PartlyRefused(f"cannot refresh the forest {self.name!r}: a shard failed")

    def _stored(self, document_id: str) -> dict[str, int]:
        """Return the numbers in one of the forest's own documents, none if it is not there."""
        with translated(f"read the state of the forest {self.name!r}"):
            document = self.client.options(ignore_status=404).get(index=self.name, id=document_id)
        return dict(document["_source"]["state"]) if document.get("found") else {}

    def _documents(self, nodes: Sequence[StoredNode]) -> list[Document]:
        return documents(nodes, self.relation, self.layout)

    def _write(self, documents: Sequence[Document], alias: str) -> None:
        """Write documents, each acknowledged, again where the server was busy."""
        for chunk in chunks(documents, _BULK_DOCUMENTS):
            self._write_chunk(dict(chunk), alias)

    @until_all_is_taken
    def _write_chunk(self, documents: dict[str, dict[str, Any]], alias: str) -> None:
        """Write documents, and take out those that are written."""
        operations: list[dict[str, Any]] = []
        for document_id, document in documents.items():
            operations += ({"index": {"_id": document_id}}, document)
        with translated(f"write to the forest {self.name!r}"):
            answer = self.client.bulk(
                index=alias,
                operations=operations,
                require_alias=True,
                timeout=_BULK_TIMEOUT,
                filter_path=_BULK_ANSWER,
            )
        if not answer["errors"]:
            return
        for item, document_id in zip(answer["items"], list(documents), strict=True):
            result = item["index"]
            if result["status"] == 404:
                raise ForestLost(f"the forest {self.name!r} has another owner", forest=self.name)
            if result["status"] < 300:
                del documents[document_id]
            elif result["status"] not in BUSY_STATUSES:
                raise ServerError(
                    f"cannot write node {document_id} to the forest {self.name!r}: "
                    f"{result['error'].get('reason', result['error'])}",
                    status=result["status"],
                    index=self.name,
                )
        raise PartlyRefused(f"cannot write to the forest {self.name!r}: the server is too busy")


# Shorter than the client's patience: what it has given up must not be written later than what follows.
_BULK_TIMEOUT = "30s"
_BULK_ANSWER = ["errors", "items.index.status", "items.index.error.reason"]


def state_aggregations(*, seq: str, time: str) -> dict[str, Any]:
    """Return the aggregations that `state_of` reads, over documents with those fields."""
    return {
        "seq": {"max": {"field": seq}},
        "last": {"max": {"field": time}},
        "first": {"min": {"field": time}},
    }


def state_of(aggregations: dict[str, Any]) -> State:
    """Read a state from the answer to `state_aggregations`."""
    seq, last, first = (aggregations[name]["value"] for name in ("seq", "last", "first"))
    return State(
        seq=int(seq or 0),
        time_ms=NO_TIME if last is None else int(last),
        origin_ms=NO_TIME if first is None else int(first),
    )
