"""A forest's index: its documents, and the requests that read and write them."""

import collections
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import tenacity
from elasticsearch import ApiError, Elasticsearch

from esdedup.elastic.errors import translated
from esdedup.errors import ForestError, ForestLost, ForestMismatch, ServerUnavailable
from esdedup.forest.laws import LeafCounts
from esdedup.forest.model import NO_TIME, Aging, Node, State
from esdedup.profile import Profile
from esdedup.simhash import from_hex
from esdedup.templates import forest_index

_Item = TypeVar("_Item")
_Document = tuple[str, dict[str, Any]]
"""A document's id, and what it holds."""

FORMAT = 1
"""Of the forest's index; an index of another format is refused."""

STATE_ID = "~state"
# Limits of Elasticsearch: terms in one query, hits and buckets in one answer.
_MAX_TERMS = 65_536
_MAX_HITS = 10_000
_MAX_BUCKETS = 65_536
# What one bulk request may hold.
_BULK_NODES = 5_000
_SHARED_SEEN = 2**62
_FIELDS = [{"field": "root"}, {"field": "seq"}, {"field": "seen", "format": "epoch_millis"}]


class ForestIndex:
    """The index of one forest. Knows nothing of who may write to it."""

    def __init__(self, client: Elasticsearch, *, name: str, profile: Profile) -> None:
        """Name the index; `open` makes sure of it.

        Args:
            client: Stays the caller's.
            name: Of the index.
            profile: The forest's; stored with it.
        """
        self._client = client
        self._forest = name
        self._profile = profile

    def open(self) -> None:
        """Make the index if there is none, and check that it is a forest of this profile and format.

        Raises:
            ForestMismatch: It is not.
        """
        wanted = {"format": FORMAT, "profile": self._profile.label}
        with translated(f"open the forest {self._forest!r}"):
            if not self._client.indices.exists(index=self._forest):
                body = forest_index(meta=wanted)
                try:
                    self._client.indices.create(index=self._forest, **body)
                except ApiError as error:
                    # Another process was faster.
                    if error.error != "resource_already_exists_exception":
                        raise
            answer = self._client.indices.get_mapping(index=self._forest)
        if self._forest not in answer:
            raise ForestMismatch(
                f"{self._forest!r} is an alias of {', '.join(answer)}: name the index itself"
            )
        mappings = answer[self._forest]["mappings"]
        found = mappings.get("_meta", {}).get("esdedup")
        if found is None:
            raise ForestMismatch(f"the index {self._forest!r} is no forest of esdedup; name another one")
        if found["format"] != FORMAT:
            raise ForestMismatch(
                f"the forest {self._forest!r} has format {found['format']}; this version of esdedup reads "
                f"format {FORMAT}: use the version that made it, or name another forest"
            )
        if found["profile"] != self._profile.label:
            raise ForestMismatch(
                f"the forest {self._forest!r} was made with profile {found['profile']!r}, and this is "
                f"{self._profile.label!r}: fingerprints of two profiles do not compare; name another forest"
            )

    def state(self) -> State:
        """Read the state of the last plan that was written."""
        with translated(f"read the state of the forest {self._forest!r}"):
            document = self._client.options(ignore_status=404).get(index=self._forest, id=STATE_ID)
            answer = self._client.search(
                index=self._forest,
                size=0,
                aggs={"seq": {"max": {"field": "seq"}}},
                allow_partial_search_results=False,
            )
        # A crash may have left nodes that are newer than the state: their numbers are taken.
        last_seq = int(answer["aggregations"]["seq"]["value"] or 0)
        stored = document["_source"]["state"] if document.get("found") else {}
        return State(
            seq=max(last_seq, stored.get("seq", 0)),
            time_ms=stored.get("time_ms", NO_TIME),
            origin_ms=stored.get("origin_ms", NO_TIME),
        )

    def candidates(
        self, fingerprints: npt.NDArray[np.uint64], *, aging: Aging, state: State
    ) -> Iterator[Node]:
        """Yield the live nodes that share a key with one of `fingerprints`."""
        terms = sorted({term for terms in self._profile.layout.terms(fingerprints) for term in terms})
        for chunk in _chunks(terms, _MAX_TERMS):
            yield from self._search({"bool": {"filter": [{"terms": {"keys": chunk}}, *_live(aging, state)]}})

    def nodes(self, node_ids: Iterable[str]) -> Iterator[Node]:
        """Yield the nodes of those ids that there are."""
        for chunk in _chunks(sorted(node_ids), _MAX_HITS):
            yield from self._search({"ids": {"values": chunk}})

    def count_leaves(self, roots: set[str], *, aging: Aging, state: State, end_ms: int) -> LeafCounts:
        """Count the live leaves of `roots`; those that live through the batch are counted as one."""
        counts: dict[str, collections.Counter[int]] = {root: collections.Counter() for root in roots}
        # Only those that expire within the batch are told apart: one bucket a step of `seen`.
        span_ms = max(0, end_ms - state.time_ms) if state.time_ms != NO_TIME else 0
        steps = min(span_ms // aging.granularity_ms + 2, _MAX_BUCKETS // 2)
        expiring: dict[str, Any] = {
            "filter": {"range": {"seen": {"lte": end_ms - aging.retention_ms}}},
            "aggs": {"seen": {"terms": {"field": "seen", "size": steps}}},
        }
        for chunk in _chunks(sorted(roots), max(1, _MAX_BUCKETS // (steps + 2))):
            leaves = {
                "filter": [{"terms": {"root": chunk}}, *_live(aging, state)],
                "must_not": {"ids": {"values": chunk}},
            }
            by_root = {
                "terms": {"field": "root", "size": len(chunk)},
                "aggs": {"expiring": expiring, "timeless": {"missing": {"field": "seen"}}},
            }
            with translated(f"count leaves in the forest {self._forest!r}"):
                answer = self._client.search(
                    index=self._forest,
                    query={"bool": leaves},
                    aggs={"roots": by_root},
                    size=0,
                    allow_partial_search_results=False,
                )
            for bucket in answer["aggregations"]["roots"]["buckets"]:
                counted = counts[bucket["key"]]
                if bucket["expiring"]["seen"]["sum_other_doc_count"]:
                    raise ForestError(
                        f"cannot count the leaves of {bucket['key']}: they expire at more than {steps:,} "
                        "different times within one batch; use smaller batches"
                    )
                counted.update(
                    {each["key"]: each["doc_count"] for each in bucket["expiring"]["seen"]["buckets"]}
                )
                counted[NO_TIME] = bucket["timeless"]["doc_count"]
                counted[_SHARED_SEEN] = bucket["doc_count"] - counted.total()
        return counts

    def write_state(self, state: State, roots: Sequence[Node], *, alias: str) -> None:
        """Write the state and roots, acknowledged, through the alias of the owner.

        Raises:
            ForestLost: The alias has been moved on.
        """
        values = {"seq": state.seq, "time_ms": state.time_ms, "origin_ms": state.origin_ms}
        self._write([(STATE_ID, {"state": values}), *self._documents(roots)], alias)

    def write_nodes(self, nodes: Sequence[Node], *, alias: str) -> None:
        """Write nodes, acknowledged, through the alias of the owner.

        Raises:
            ForestLost: The alias has been moved on.
        """
        self._write(self._documents(nodes), alias)

    def refresh(self) -> None:
        """Make visible all that has been written."""
        with translated(f"refresh the forest {self._forest!r}"):
            answer = self._client.indices.refresh(index=self._forest)
        if answer["_shards"]["failed"]:
            raise ServerUnavailable(f"cannot refresh the forest {self._forest!r}: a shard failed")

    def _search(self, query: dict[str, Any]) -> Iterator[Node]:
        """Yield all nodes that match, page by page; nothing else writes meanwhile."""
        after: list[Any] | None = None
        while True:
            with translated(f"search the forest {self._forest!r}"):
                answer = self._client.search(
                    index=self._forest,
                    query=query,
                    size=_MAX_HITS,
                    sort=[{"seq": "asc"}],
                    search_after=after,
                    source=False,
                    docvalue_fields=_FIELDS,
                    track_total_hits=False,
                    allow_partial_search_results=False,
                )
            hits = answer["hits"]["hits"]
            yield from map(_node, hits)
            if len(hits) < _MAX_HITS:
                return
            after = hits[-1]["sort"]

    def _documents(self, nodes: Sequence[Node]) -> list[_Document]:
        """Write nodes as documents; a time that is not known is left out."""
        keys = self._profile.layout.terms(from_hex(node.id for node in nodes))
        return [
            (
                node.id,
                {"root": node.root, "seq": node.seq, "keys": terms}
                | ({} if node.seen_ms == NO_TIME else {"seen": node.seen_ms}),
            )
            for node, terms in zip(nodes, keys, strict=True)
        ]

    def _write(self, documents: Sequence[_Document], alias: str) -> None:
        """Write documents, each acknowledged, again where the server was busy."""
        for chunk in _chunks(documents, _BULK_NODES):
            pending: Sequence[_Document] = chunk
            for attempt in tenacity.Retrying(
                retry=tenacity.retry_if_exception_type(_BusyError),
                stop=tenacity.stop_after_attempt(8),
                wait=tenacity.wait_random_exponential(multiplier=0.2, max=10),
                reraise=True,
            ):
                with attempt:
                    pending = self._write_once(pending, alias)
                    if pending:
                        raise _BusyError(
                            f"cannot write to the forest {self._forest!r}: the server is too busy"
                        )

    def _write_once(self, documents: Sequence[_Document], alias: str) -> list[_Document]:
        """Write documents; return those that the server was too busy for."""
        operations: list[dict[str, Any]] = []
        for document_id, document in documents:
            operations += ({"index": {"_id": document_id}}, document)
        with translated(f"write to the forest {self._forest!r}"):
            answer = self._client.bulk(index=alias, operations=operations, require_alias=True)
        if not answer["errors"]:
            return []
        busy = []
        for item, written in zip(answer["items"], documents, strict=True):
            result = item["index"]
            if result["status"] == 404:
                raise ForestLost(f"the forest {self._forest!r} has another owner")
            if result["status"] in {429, 502, 503, 504}:
                busy.append(written)
            elif result["status"] >= 300:
                raise ServerUnavailable(
                    f"cannot write node {written[0]} to the forest {self._forest!r}: "
                    f"{result['error'].get('reason', result['error'])}"
                )
        return busy


class _BusyError(ServerUnavailable):
    """The server took some of the documents only."""


def _live(aging: Aging, state: State) -> list[dict[str, Any]]:
    """Filter nodes that live at the state's time."""
    if state.time_ms == NO_TIME:
        return []
    live: list[dict[str, Any]] = [{"range": {"seen": {"gt": state.time_ms - aging.retention_ms}}}]
    if aging.is_live(NO_TIME, at_ms=state.time_ms, origin_ms=state.origin_ms):
        live.append({"bool": {"must_not": {"exists": {"field": "seen"}}}})
    return [{"bool": {"should": live}}]


def _node(hit: dict[str, Any]) -> Node:
    fields = hit["fields"]
    seen_ms = int(fields["seen"][0]) if "seen" in fields else NO_TIME
    return Node(hit["_id"], fields["root"][0], int(fields["seq"][0]), seen_ms)


def _chunks(items: Sequence[_Item], size: int) -> Iterable[Sequence[_Item]]:
    return (items[at : at + size] for at in range(0, len(items), size))
