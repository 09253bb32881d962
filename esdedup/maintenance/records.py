"""Reads the dedup objects of articles in bulk, without their texts."""

from collections.abc import Iterator, Sequence
from typing import Any

from elasticsearch import Elasticsearch

from esdedup.elastic import limits
from esdedup.elastic.errors import translated
from esdedup.elastic.execute import hit_pages
from esdedup.elastic.forest.documents import columns_of
from esdedup.elastic.forest.status import state_aggregations, state_of
from esdedup.elastic.names import check_index_names
from esdedup.elastic.requests import Query
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import Fields, signature_of, terms_of
from esdedup.forest.model import NO_TIME, State
from esdedup.maintenance.record import Record
from esdedup.maintenance.record_writer import RecordWriter

# Articles of an index in one of its orders; aggregations return no more hits.
_SAMPLE = 100


class Records:
    """Reads the records of the articles in some indices; `writer` changes them."""

    def __init__(self, client: Elasticsearch, *, indices: Sequence[str], fields: Fields) -> None:
        """Use some indices; nothing is sent yet.

        Args:
            client: Closed by the caller; should be `patient`.
            indices: Names, aliases or patterns; at least one.
            fields: The names of the articles' fields.

        Raises:
            SettingError: `indices` is a string, or empty, or contains an empty name.
        """
        check_index_names(indices)
        if not indices:
            raise SettingError("name the indices of the articles, as a list")
        self._client = client
        self._indices = list(indices)
        self._fields = fields
        self.writer = RecordWriter(self._client, indices=indices, fields=fields)

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

    def latest_of_page(self, page: str) -> int:
        """Return the `seq` of the latest article that has a page; 0 if there is none."""
        of_page = {"term": {f"{self._fields.dedup}.page": page}}
        latest = {"max": {"field": self._fields.seq}}
        answer = self._aggregate({"own": {"filter": of_page, "aggs": {"latest": latest}}})
        return int(answer["own"]["latest"]["value"] or 0)

    def batches(self, *, later_than_ms: int | None = None) -> Iterator[list[Record]]:
        """Yield all records of one point in time, some at a time, the latest arrivals first.

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
        fields: list[Any] = [f"{dedup}.{name}" for name in ("root", "fingerprint", "page", "profile", "seq")]
        fields += ({"field": f"{dedup}.{name}", "format": "epoch_millis"} for name in ("seen", "published"))
        return {"_source": [self._fields.signature], "docvalue_fields": fields, "seq_no_primary_term": True}

    def _record_of(self, hit: dict[str, Any]) -> Record:
        fields = hit.get("fields", {})
        found: dict[str, list[Any]] = {
            name: fields.get(f"{self._fields.dedup}.{name}", [])
            for name in ("root", "fingerprint", "page", "profile", "seq", "seen", "published")
        }
        values = {name: each[0] if each else None for name, each in found.items()}
        source = hit["_source"]
        found["signature"] = list(terms_of(source, self._fields.signature))
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
            signature=signature_of(source, self._fields),
            page=values["page"],
            profile=values["profile"],
            seq=0 if values["seq"] is None else int(values["seq"]),
            seen_ms=NO_TIME if values["seen"] is None else int(values["seen"]),
            published_ms=NO_TIME if values["published"] is None else int(values["published"]),
            several=tuple(name for name, each in found.items() if len(each) > 1),
        )
