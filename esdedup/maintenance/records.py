"""The dedup objects of articles: read in bulk without texts, and changed by compare-and-set."""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from elasticsearch import Elasticsearch

from esdedup.elastic import limits
from esdedup.elastic.bulk import Operation, send_bulk
from esdedup.elastic.errors import translated
from esdedup.elastic.execute import execute, hit_pages
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.meta import read_meta
from esdedup.elastic.forest.status import state_aggregations, state_of
from esdedup.elastic.forest.stored import columns_of
from esdedup.elastic.requests import Query, aggregate, count, refresh, search
from esdedup.errors import ForestMismatch, IndexNotReady
from esdedup.fields import EditorialFields, Fields, partition_of, signature_of, terms_of
from esdedup.forest.model import NO_TIME, State

_KEYWORDS = ("root", "story", "fingerprint", "page", "profile", "seq")
NO_LINKS = {"part_of": None, "has_part": None}
"""The links of a text without a fingerprint, and of an article whose root changes."""

LONE = "~"
"""The prefix of the root of an article without a fingerprint."""

# An article may have been written or deleted since it was read.
_EXPECTED_STATUS = frozenset({200, 201, 404, 409})
# Number of articles sampled from each end of an index; Elasticsearch limits `top_hits` to 100.
_SAMPLE = 100
# A smaller sample proves nothing: its few nodes may all have been lost by accident.
_MIN_SAMPLE = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """The dedup object of one article."""

    id: str
    index: str
    routing: str | None
    # The document's version, to detect later writes.
    version: dict[str, int]
    root: str
    # The id of its story; None in an index without stories.
    story: str | None
    # `part_of`: the root that this root is a part of. `has_part`: an earlier root that is a part of it.
    # None if there is no such root.
    links: dict[str, str | None]
    # None for a text without a fingerprint.
    fingerprint: str | None
    # The signature as bytes; empty for a text without a fingerprint.
    signature: bytes
    # The content hash; None for a text without letters or digits.
    content_hash: str | None
    profile: str | None
    seq: int
    # The forest's time at the assignment; NO_TIME if none was known.
    seen_ms: int
    # The time of publication; NO_TIME if unknown.
    published_ms: int = NO_TIME
    # Fields with several values, which is invalid; this record has the first value of each.
    several: tuple[str, ...] = ()


Change = tuple[Record, dict[str, Any]]
"""An article, and new values of fields in its dedup object; None deletes a field."""


class Records:
    """The records of the articles in one or more indices; `client` should be `patient`."""

    def __init__(self, client: Elasticsearch, *, indices: Sequence[str], fields: Fields) -> None:
        self._client = client
        self._indices = list(indices)
        self._names = ",".join(indices)
        self._fields = fields
        self._seen = f"{fields.dedup}.seen"

    def count(self) -> int:
        """Count the articles that have a root."""
        return execute(self._client, count(self._names, {"exists": {"field": self._fields.root}}))

    def count_without(self) -> int:
        """Count the articles that have no root."""
        without = {"bool": {"must_not": {"exists": {"field": self._fields.root}}}}
        return execute(self._client, count(self._names, without))

    def state(self, *, latest_ms: int | None = None) -> State:
        """Return the minimum state of a forest with all these articles, ignoring times after `latest_ms`."""
        aggregations = state_aggregations(seq=self._fields.seq, time=self._seen, latest_ms=latest_ms)
        return state_of(self._aggregate(aggregations))

    def profiles(self) -> list[str]:
        """Return the labels of all profiles that the articles were fingerprinted with."""
        field = f"{self._fields.dedup}.profile"
        answer = self._aggregate({"profiles": {"terms": {"field": field, "size": 100}}})
        return [bucket["key"] for bucket in answer["profiles"]["buckets"]]

    def latest_of_hash(self, content_hash: str) -> int:
        """Return the `seq` of the latest article with a content hash; 0 if there is none."""
        of_hash = {"term": {f"{self._fields.dedup}.page": content_hash}}
        latest = {"max": {"field": self._fields.seq}}
        answer = self._aggregate({"own": {"filter": of_hash, "aggs": {"latest": latest}}})
        return int(answer["own"]["latest"]["value"] or 0)

    def batches(
        self, *, since_seq: int = 0, until_seq: int | None = None, later_than_ms: int | None = None
    ) -> Iterator[list[Record]]:
        """Yield records with these numbers or a later time, from a snapshot; latest arrivals first.

        Args:
            since_seq: The last number that is left out.
            until_seq: The last number that is included. Records without a number are included, too.
            later_than_ms: The last time that is left out.
        """
        filters: list[Query] = [{"exists": {"field": self._fields.root}}]
        after = [] if until_seq is None else [{"range": {self._fields.seq: {"gt": until_seq}}}]
        if since_seq > 0:
            filters.append({"range": {self._fields.seq: {"gt": since_seq}}})
        if later_than_ms is not None:
            filters.append({"range": {self._seen: {"gt": later_than_ms, "format": "epoch_millis"}}})
        body = {
            "query": {"bool": {"filter": filters, "must_not": after}},
            "size": limits.MAX_HITS,
            "sort": [{self._fields.seq: {"order": "desc", "missing": "_last", "unmapped_type": "long"}}],
            "track_total_hits": False,
            **self._hit_body(),
        }
        pages = hit_pages(self._client, self._names, body)
        return ([self._record_of(hit) for hit in hits] for hits in pages)

    def refuse_others_articles(self, index: ForestIndex, *, max_known: float = 0.1) -> None:
        """Raise `ForestMismatch` if an index of articles seems to belong to another forest.

        This is assumed of an index if at most `max_known` (0 to 1) of its sampled articles have their node or
        root in the forest. Some match by chance, since both forests may get the same texts. The sample omits
        articles that may have expired, and articles newer than a forest that was restored from a snapshot.
        """
        may_refresh = index.refresh_if_allowed()
        if not index.run(index.nodes.count_nodes()):
            return
        status = index.status()
        samples = self._samples(until_seq=status.state.seq, since_ms=status.live_since_ms(status.aging))
        for name, sample in samples.items():
            if len(sample) < _MIN_SAMPLE:
                continue
            ids = {each for record in sample for each in (record.fingerprint, record.root) if each}
            nodes = {node.id for node in index.run(index.nodes.by_id(ids))}
            known = sum(not nodes.isdisjoint((record.fingerprint, record.root)) for record in sample)
            if known <= max_known * len(sample):
                seen = "" if may_refresh else " (this client may not refresh it: some nodes may be missing)"
                raise ForestMismatch(
                    f"the articles in {name!r} seem to belong to a forest other than {index.name!r}, which "
                    f"has the nodes of {known} out of {len(sample)}{seen}. Name their forest, or leave them "
                    f"out; if they belong to {index.name!r}, rebuild it from all its articles",
                    forest=index.name,
                )

    def with_bands(self, bands: Sequence[tuple[Record, list[str]]]) -> set[tuple[str, str]]:
        """Return the index and id of each article that has all of the bands (at least one) given for it."""
        columns = columns_of([terms for _, terms in bands])
        filters: list[Query] = [{"terms": {f"{self._fields.dedup}.bands": column}} for column in columns]
        filters.append({"ids": {"values": [record.id for record, _ in bands]}})
        body = {"query": {"bool": {"filter": filters}}, "size": limits.MAX_HITS, "_source": False}
        (answer,) = execute(self._client, search(self._names, body))
        return {(hit["_index"], hit["_id"]) for hit in answer["hits"]["hits"]}

    @property
    def have_stories(self) -> bool:
        """Whether editors may merge and split the stories of all these indices."""
        return isinstance(self._fields, EditorialFields)

    def update(self, changes: Sequence[Change]) -> int:
        """Change fields in the dedup objects; return how many articles were written.

        With a new root, an article's links are deleted.
        """
        operations: list[Operation] = []
        moving: list[tuple[Record, str]] = []
        for record, values in changes:
            root = values.get("root")
            if root and record.routing == record.root:
                # An article that is routed by its root must move to the shard of its new root.
                moving.append((record, root))
                continue
            # With stories, the partition depends on the story, which `ArticleAudit` checks.
            partition = {} if self.have_stories or not root else {"partition": partition_of(root)}
            written = values | (NO_LINKS if root else {}) | partition
            routing = {} if record.routing is None else {"routing": record.routing}
            target = {"_index": record.index, "_id": record.id, **routing, **record.version}
            operations.append(({"update": target}, {"doc": {self._fields.dedup: written}}))
        return self._bulk(operations) + self._move(moving)

    def refresh(self) -> None:
        """Make all writes visible to searches."""
        with translated(f"refresh {self._names}"):
            self._client.indices.refresh(index=self._indices)

    def _aggregate(self, aggregations: Query) -> dict[str, Any]:
        return execute(self._client, aggregate(self._names, {"match_all": {}}, aggregations))

    def _samples(self, *, until_seq: int, since_ms: int) -> dict[str, list[Record]]:
        """Return the latest and first fingerprinted articles of each index, within these bounds."""
        filters: list[Query] = [
            {"exists": {"field": f"{self._fields.dedup}.fingerprint"}},
            {"exists": {"field": self._fields.root}},
            {"range": {self._fields.seq: {"lte": until_seq}}},
        ]
        if since_ms != NO_TIME:
            filters.append({"range": {self._seen: {"gte": since_ms, "format": "epoch_millis"}}})
        orders = {
            "latest": {self._seen: {"order": "desc", "unmapped_type": "date"}},
            "first": {self._fields.seq: {"order": "asc", "unmapped_type": "long"}},
        }
        own = {
            name: {"top_hits": {"size": _SAMPLE, **self._hit_body(), "sort": [order]}}
            for name, order in orders.items()
        }
        by_index = {"terms": {"field": "_index", "size": limits.MAX_HITS}, "aggs": own}
        answer = self._aggregate(
            {"sampled": {"filter": {"bool": {"filter": filters}}, "aggs": {"indices": by_index}}}
        )
        samples: dict[str, list[Record]] = {}
        for bucket in answer["sampled"]["indices"]["buckets"]:
            hits = {hit["_id"]: hit for name in orders for hit in bucket[name]["hits"]["hits"]}
            samples[bucket["key"]] = [self._record_of(hit) for hit in hits.values()]
        return samples

    def _hit_body(self) -> Query:
        """Return the part of a search body that requests the fields which `_record_of` reads."""
        dedup = self._fields.dedup
        fields: list[Any] = [f"{dedup}.{name}" for name in _KEYWORDS]
        fields += ({"field": f"{dedup}.{name}", "format": "epoch_millis"} for name in ("seen", "published"))
        # An index that an earlier version set up has no doc values for links, so read them from the source.
        source = [self._fields.signature, *self._fields.links]
        return {"_source": source, "docvalue_fields": fields, "seq_no_primary_term": True}

    def _record_of(self, hit: dict[str, Any]) -> Record:
        fields = hit.get("fields", {})
        found: dict[str, list[Any]] = {
            name: fields.get(f"{self._fields.dedup}.{name}", []) for name in (*_KEYWORDS, "seen", "published")
        }
        values = {name: each[0] if each else None for name, each in found.items()}
        found["signature"] = list(terms_of(hit["_source"], self._fields.signature))
        named = zip(NO_LINKS, self._fields.links, strict=True)
        if values["root"] is None:
            raise IndexNotReady(
                f"the field {self._fields.root!r} of {hit['_index']!r} has no doc values",
                index=hit["_index"],
                missing_fields=(self._fields.root,),
            )
        return Record(
            id=hit["_id"],
            index=hit["_index"],
            routing=hit.get("_routing"),
            version={"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]},
            root=values["root"],
            story=values["story"],
            links={name: " ".join(terms_of(hit["_source"], path)) or None for name, path in named},
            fingerprint=values["fingerprint"],
            signature=signature_of(hit["_source"], self._fields),
            content_hash=values["page"],
            profile=values["profile"],
            seq=int(values["seq"] or 0),
            seen_ms=NO_TIME if values["seen"] is None else int(values["seen"]),
            published_ms=NO_TIME if values["published"] is None else int(values["published"]),
            several=tuple(name for name, each in found.items() if len(each) > 1),
        )

    def _move(self, roots: Sequence[tuple[Record, str]]) -> int:
        """Move articles that are routed by their root: write each to its new shard, then delete the old copy.

        If this is interrupted, some articles exist twice until a repair runs again.
        """
        if not roots:
            return 0
        places = [_place(record, record.routing) for record, _ in roots]
        places += [_place(record, root) for record, root in roots]
        with translated(f"assign roots to articles in {self._names}"):
            found = self._client.mget(docs=places)["docs"]
        written: list[Operation] = []
        deleted: list[Operation] = []
        for (record, root), old, new in zip(roots, found[: len(roots)], found[len(roots) :], strict=True):
            if not old.get("found") or old["_seq_no"] != record.version["if_seq_no"]:
                continue
            delete = ({"delete": _place(record, record.routing) | record.version},)
            if not new.get("found"):
                condition: dict[str, Any] = {"op_type": "create"}
                deleted.append(delete)
            elif self._dedup(new).get("root") == record.root:
                # Both roots route to the same shard, so this is the article itself.
                condition = record.version
            elif self._dedup(new).get("seq", 0) > record.seq:
                # The article was indexed again with another text, which left this copy behind.
                deleted.append(delete)
                continue
            else:
                condition = {"if_seq_no": new["_seq_no"], "if_primary_term": new["_primary_term"]}
                deleted.append(delete)
            dedup = self._dedup(old) | {"root": root, **NO_LINKS, "partition": partition_of(root)}
            target = {"index": _place(record, root) | condition}
            written.append((target, old["_source"] | {self._fields.dedup: dedup}))
        moved = self._bulk(written)
        return max(moved, self._bulk(deleted))

    def _dedup(self, document: dict[str, Any]) -> dict[str, Any]:
        dedup: dict[str, Any] = document["_source"].get(self._fields.dedup) or {}
        return dedup

    def _bulk(self, operations: Sequence[Operation]) -> int:
        """Send operations that may be repeated; return how many of them changed an article."""
        # An update would recreate a deleted index without its articles.
        if not self._client.indices.exists(index=self._indices):
            raise IndexNotReady(f"one of the indices {self._names} has been deleted", status=404)
        results = send_bulk(
            self._client,
            operations,
            task=f"assign roots to articles in {self._names}",
            is_settled=lambda result: result["status"] in _EXPECTED_STATUS,
        )
        return sum(result["status"] in {200, 201} for result in results)


def _place(record: Record, routing: str | None) -> dict[str, Any]:
    return {"_index": record.index, "_id": record.id, "routing": routing}


def refuse_strangers(client: Elasticsearch, index: str, *, fields: Fields, forest: str) -> None:
    """Raise unless a forest has at least half of the sampled roots of an index, ignoring expired roots."""
    execute(client, refresh(index))
    records = Records(client, indices=[index], fields=fields)

    def sampled(since_ms: int) -> set[str]:
        samples = records._samples(until_seq=sys.maxsize, since_ms=since_ms)
        return {record.root for sample in samples.values() for record in sample}

    roots, known = sampled(NO_TIME), set[str]()
    if roots and execute(client, read_meta(forest)) is not None:
        home = ForestIndex.find(client, forest)
        home.refresh_if_allowed()
        status = home.status()
        roots = sampled(status.live_since_ms(status.aging))
        known = {node.id for node in home.run(home.nodes.by_id(roots))}
    if len(known) * 2 < len(roots):
        raise IndexNotReady(
            f"most articles in the index {index!r} are not in the forest {forest!r}, so their "
            "reprints would not join them: name the forest that has these articles, or name another index",
            index=index,
        )
