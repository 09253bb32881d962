"""Reads and repairs the dedup objects of articles in bulk, without their texts."""

import base64
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from elasticsearch import Elasticsearch

from esdedup.elastic import limits
from esdedup.elastic.client import PartlyRefused, patient, retry_while_refused
from esdedup.elastic.errors import is_blocked, refused, translated
from esdedup.elastic.execute import hit_pages
from esdedup.elastic.forest.documents import columns_of
from esdedup.elastic.forest.status import state_aggregations, state_of
from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.elastic.names import check_index_names
from esdedup.elastic.requests import Query
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import Fields, partition_of
from esdedup.forest.model import NO_TIME, State

# An article may have been written or deleted since it was read.
_EXPECTED_STATUS = frozenset({200, 201, 404, 409})
# Articles of an index in one of its orders; aggregations return no more hits.
_SAMPLE = 100
LONE = "~"
"""How the root of an article without a fingerprint begins."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """The dedup object of one article."""

    id: str
    index: str
    routing: str | None
    # The document's version, to detect later writes.
    version: dict[str, int]
    root: str
    # None for a text without a fingerprint.
    fingerprint: str | None
    # What is compared with others, as bytes; empty for a text without a fingerprint.
    signature: bytes
    profile: str | None
    seq: int
    # The forest's time at the assignment; NO_TIME where none was known.
    seen_ms: int
    # When it counts as published; NO_TIME where that is not known.
    published_ms: int = NO_TIME


class Records:
    """Reads and repairs the records of the articles in some indices."""

    def __init__(self, client: Elasticsearch, *, indices: Sequence[str], fields: Fields) -> None:
        """Use some indices; nothing is sent yet.

        Args:
            client: Closed by the caller.
            indices: Names, aliases or patterns; at least one.
            fields: The names of the articles' fields.

        Raises:
            SettingError: `indices` is a string, or empty, or contains an empty name.
        """
        check_index_names(indices)
        if not indices:
            raise SettingError("name the indices of the articles, as a list")
        self._client = patient(client)
        self._indices = list(indices)
        self._fields = fields

    def count(self) -> int:
        """Count the articles that have a root."""
        return self._count({"exists": {"field": self._fields.root}})

    def count_without(self) -> int:
        """Count the articles that have no root."""
        return self._count({"bool": {"must_not": {"exists": {"field": self._fields.root}}}})

    def state(self, *, latest_ms: int | None = None) -> State:
        """Return the lowest state that a forest with all these articles can have.

        Args:
            latest_ms: Later times are left out. None: none is.
        """
        aggregations = state_aggregations(seq=self._fields.seq, time=self._seen, latest_ms=latest_ms)
        return state_of(self._aggregate(aggregations))

    def profiles(self) -> list[str]:
        """Return the labels of the profiles that the articles were fingerprinted with."""
        field = f"{self._fields.dedup}.profile"
        answer = self._aggregate({"profiles": {"terms": {"field": field, "size": 100}}})
        return [bucket["key"] for bucket in answer["profiles"]["buckets"]]

    def pages(self, *, later_than_ms: int | None = None) -> Iterator[list[Record]]:
        """Yield all records of one point in time, page by page, the latest arrivals first.

        Args:
            later_than_ms: Only those with a later `seen`.
        """
        filters: list[Query] = [{"exists": {"field": self._fields.root}}]
        if later_than_ms is not None:
            filters.append({"range": {self._seen: {"gt": later_than_ms, "format": "epoch_millis"}}})
        body = self._page_body({"bool": {"filter": filters}})
        pages = hit_pages(self._client, ",".join(self._indices), body)
        return ([self._record_of(hit) for hit in hits] for hits in pages)

    def samples(self, *, until_seq: int, since_ms: int) -> dict[str, list[Record]]:
        """Return some articles of each index, the latest and the first, with a fingerprint.

        Args:
            until_seq: Only arrivals up to this number.
            since_ms: Only arrivals with at least this `seen`; NO_TIME for all.
        """
        filters: list[Query] = [
            {"exists": {"field": f"{self._fields.dedup}.fingerprint"}},
            {"exists": {"field": self._fields.root}},
            {"range": {self._fields.seq: {"lte": until_seq}}},
        ]
        if since_ms != NO_TIME:
            filters.append({"range": {self._seen: {"gte": since_ms, "format": "epoch_millis"}}})
        hits = {"size": _SAMPLE, **self._hit_body()}
        orders: dict[str, Query] = {
            "latest": {self._seen: {"order": "desc", "unmapped_type": "date"}},
            "first": {self._fields.seq: {"order": "asc", "unmapped_type": "long"}},
        }
        answer = self._aggregate(
            {
                "sampled": {
                    "filter": {"bool": {"filter": filters}},
                    "aggs": {
                        "indices": {
                            "terms": {"field": "_index", "size": limits.MAX_HITS},
                            "aggs": {
                                name: {"top_hits": {**hits, "sort": [order]}}
                                for name, order in orders.items()
                            },
                        }
                    },
                }
            }
        )
        return {
            bucket["key"]: list(
                {
                    hit["_id"]: self._record_of(hit)
                    for name in orders
                    for hit in bucket[name]["hits"]["hits"]
                }.values()
            )
            for bucket in answer["sampled"]["indices"]["buckets"]
        }

    def with_bands(self, bands: Sequence[tuple[Record, list[str]]]) -> set[tuple[str, str]]:
        """Return the indices and ids of those articles whose bands contain the given terms.

        Args:
            bands: Articles, and the terms that each should have; at least one term each.
        """
        clauses: list[dict[str, Any]] = [
            {"terms": {f"{self._fields.dedup}.bands": column}}
            for column in columns_of([terms for _, terms in bands])
        ]
        ids = [record.id for record, _ in bands]
        with translated(f"read the articles in {self._names}"):
            answer = self._client.search(
                index=self._indices,
                query={"bool": {"filter": [{"ids": {"values": ids}}, *clauses]}},
                size=limits.MAX_HITS,
                source=False,
                allow_partial_search_results=False,
            )
        return {(hit["_index"], hit["_id"]) for hit in answer["hits"]["hits"]}

    @retry_while_refused
    def assign_roots(self, roots: Sequence[tuple[Record, str]]) -> int:
        """Write new roots into articles; an article that has been written since it was read stays as it is.

        Args:
            roots: Articles, and the new root of each.

        Returns:
            How many articles were written.
        """
        # An article that is routed by its root has to move to the shard of its new root.
        moving = [(record, root) for record, root in roots if record.routing == record.root]
        staying = [(record, root) for record, root in roots if record.routing != record.root]
        if not staying:
            return self._move(moving)
        changes = [(record, {"root": root, "partition": partition_of(root)}) for record, root in staying]
        return self._bulk(self._updates(changes)) + self._move(moving)

    def clear_fingerprints(self, records: Sequence[Record]) -> int:
        """Remove the fingerprints of articles, with what belongs to them; return how many were written."""
        cleared = dict.fromkeys(("fingerprint", "signature", "bands"))
        return self.update([(record, cleared) for record in records])

    @retry_while_refused
    def update(self, changes: Sequence[tuple[Record, dict[str, Any]]]) -> int:
        """Change fields of dedup objects, except in articles that have been written since they were read.

        Args:
            changes: Articles, and the new values of their fields; None deletes a value.

        Returns:
            How many articles were written.
        """
        return self._bulk(self._updates(changes))

    def _updates(self, changes: Sequence[tuple[Record, dict[str, Any]]]) -> list[dict[str, Any]]:
        operations: list[dict[str, Any]] = []
        for record, values in changes:
            routing = {} if record.routing is None else {"routing": record.routing}
            operations += (
                {"update": {"_index": record.index, "_id": record.id, **routing, **record.version}},
                {"doc": {self._fields.dedup: values}},
            )
        return operations

    def _move(self, roots: Sequence[tuple[Record, str]]) -> int:
        """Move articles that are routed by their root: write each by its new root, then delete the old copy.

        After an interruption in between an article exists twice, until this runs again.
        """
        if not roots:
            return 0
        places = [
            {"_index": record.index, "_id": record.id, "routing": record.routing} for record, _ in roots
        ]
        with translated(f"assign roots to articles in {self._names}"):
            found = self._client.mget(docs=places)["docs"]
        written: list[dict[str, Any]] = []
        deleted: list[dict[str, Any]] = []
        for (record, root), document in zip(roots, found, strict=True):
            if document.get("found") and document["_seq_no"] == record.version["if_seq_no"]:
                source = document["_source"]
                dedup = source[self._fields.dedup] | {"root": root, "partition": partition_of(root)}
                written += (
                    {"index": {"_index": record.index, "_id": record.id, "routing": root}},
                    source | {self._fields.dedup: dedup},
                )
                deleted.append(
                    {
                        "delete": {
                            "_index": record.index,
                            "_id": record.id,
                            "routing": record.routing,
                            **record.version,
                        }
                    }
                )
        if not deleted:
            return 0
        moved = self._bulk(written)
        # If both roots route to one shard, the write replaced the old copy, and the delete is refused.
        self._bulk(deleted)
        return moved

    def _bulk(self, operations: Sequence[dict[str, Any]]) -> int:
        """Send operations that may be repeated; return how many changed an article.

        Raises:
            PartlyRefused: The server was too busy for some.
            IndexBlocked: The disk is full, or the index has a block.
            ServerError: It refused one.
        """
        with translated(f"assign roots to articles in {self._names}"):
            items = self._client.bulk(operations=operations)["items"]
        results = [result for item in items for result in item.values()]
        for each in results:
            is_busy = each["status"] in BUSY_STATUSES and not is_blocked(each)
            if not is_busy and each["status"] not in _EXPECTED_STATUS:
                task = f"assign a root to the article {each['_id']} in {each['_index']!r}"
                raise refused(task, each, status=each["status"], index=each["_index"])
        if any(each["status"] in BUSY_STATUSES for each in results):
            raise PartlyRefused(f"cannot assign roots to articles in {self._names}: the server is too busy")
        return sum(each["status"] in {200, 201} for each in results)

    def refresh(self) -> None:
        """Make written articles visible to searches."""
        with translated(f"refresh {self._names}"):
            self._client.indices.refresh(index=self._indices)

    @property
    def _seen(self) -> str:
        return f"{self._fields.dedup}.seen"

    @property
    def _names(self) -> str:
        return ", ".join(self._indices)

    def _count(self, query: dict[str, Any]) -> int:
        with translated(f"count the articles in {self._names}"):
            answer = self._client.count(index=self._indices, query=query, allow_no_indices=False)
            return int(answer["count"])

    def _aggregate(self, aggregations: dict[str, Any]) -> dict[str, Any]:
        with translated(f"read the articles in {self._names}"):
            answer = self._client.search(
                index=self._indices,
                size=0,
                aggs=aggregations,
                allow_no_indices=False,
                allow_partial_search_results=False,
            )
        result: dict[str, Any] = answer["aggregations"]
        return result

    def _page_body(self, query: Query) -> dict[str, Any]:
        return {
            "query": query,
            "size": limits.MAX_HITS,
            "sort": [{self._fields.seq: {"order": "desc", "missing": "_last", "unmapped_type": "long"}}],
            "track_total_hits": False,
            **self._hit_body(),
        }

    def _hit_body(self) -> dict[str, Any]:
        """Return the part of a search that makes `_record_of` understand its hits."""
        dedup = self._fields.dedup
        fields: list[Any] = [
            f"{dedup}.{name}" for name in ("root", "fingerprint", "signature", "profile", "seq")
        ]
        fields += ({"field": f"{dedup}.{name}", "format": "epoch_millis"} for name in ("seen", "published"))
        return {"_source": False, "docvalue_fields": fields, "seq_no_primary_term": True}

    def _record_of(self, hit: dict[str, Any]) -> Record:
        fields = hit.get("fields", {})
        values = {
            name: fields[full][0] if (full := f"{self._fields.dedup}.{name}") in fields else None
            for name in ("root", "fingerprint", "signature", "profile", "seq", "seen", "published")
        }
        if values["root"] is None:
            raise IndexNotReady(
                f"the field {self._fields.root!r} of {hit['_index']!r} has no doc values",
                index=hit["_index"],
                missing_fields=[self._fields.root],
            )
        return Record(
            id=hit["_id"],
            index=hit["_index"],
            routing=hit.get("_routing"),
            version={"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]},
            root=values["root"],
            fingerprint=values["fingerprint"],
            signature=base64.b64decode(values["signature"] or ""),
            profile=values["profile"],
            seq=0 if values["seq"] is None else int(values["seq"]),
            seen_ms=NO_TIME if values["seen"] is None else int(values["seen"]),
            published_ms=NO_TIME if values["published"] is None else int(values["published"]),
        )
