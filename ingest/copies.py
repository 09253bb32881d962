"""Adopts what lies in read-only indices: copies of them have the articles with their roots."""

from collections.abc import Callable
from typing import Any

from elasticsearch import Elasticsearch
from esdedup.ingest.adopt import Adoption
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.enricher import log_rejected
from esdedup.ingest.in_place import Hit, block_of, routing_of

from esdedup.elastic.errors import translated
from esdedup.elastic.execute import hit_pages
from esdedup.elastic.forest.documents import chunks
from esdedup.elastic.patience import patient
from esdedup.elastic.requests import Query
from esdedup.errors import ArticleRejected, IndexNotReady, SettingError
from esdedup.fields import Fields

# What a copy takes over; others are private to an index, or tell of its life so far.
_COPIED_SETTINGS = (
    *("number_of_shards", "number_of_replicas", "routing", "analysis", "similarity", "mapping", "sort"),
    *("codec", "refresh_interval", "max_result_window"),
)
_IDS_AT_ONCE = 1_000


class AdoptionIntoCopies(Adoption):
    """Writes each article with its root into a copy of its index, which then takes over its aliases.

    The indices stay as they are. They must be read-only, so that nothing changes meanwhile.
    """

    def __init__(
        self,
        client: Elasticsearch,
        index: str,
        *,
        suffix: str,
        fields: Fields | None = None,
        on_rejected: Callable[[ArticleRejected], None] = log_rejected,
    ) -> None:
        """Look at the indices behind a name; nothing is written.

        Args:
            client: Closed by the caller.
            index: An index, alias or pattern, or several names, separated by commas.
            suffix: What the name of a copy has more than that of its index.
            fields: As for `Adoption`.
            on_rejected: Called for each article that cannot be enriched, and is copied as it is.

        Raises:
            IndexNotReady: Also if an index is not read-only, or was set up.
        """
        if not suffix:
            raise SettingError("the copies have no suffix: they need other names than their indices")
        self._suffix = suffix
        super().__init__(client, index, fields=fields, on_rejected=on_rejected)
        for each in self.found:
            if each.is_set_up:
                raise IndexNotReady(
                    f"the index {each.index!r} was set up already: leave it out", index=each.index
                )

    def swap(self) -> None:
        """Give the copies the aliases of their indices, all in one request.

        Raises:
            IndexNotReady: A copy has not all articles of its index: run again first.
        """
        client = patient(self._client)
        self._copy_rejected()
        with translated(f"swap the aliases of {self._index!r}", index=self._index):
            client.indices.refresh(index=[*map(self._copy_of, self._sources)])
            actions: list[dict[str, Any]] = []
            for name, each in self._sources.items():
                copy = self._copy_of(name)
                here, there = (int(client.count(index=one)["count"]) for one in (name, copy))
                if here != there:
                    raise IndexNotReady(
                        f"the index {name!r} has {here:,} articles and its copy {there:,}: adopt it again",
                        index=name,
                    )
                for alias, options in each.get("aliases", {}).items():
                    actions.append({"add": {"index": copy, "alias": alias, **options}})
                    actions.append({"remove": {"index": name, "alias": alias}})
            if actions:
                client.indices.update_aliases(actions=actions)

    @property
    def _to_do(self) -> Query:
        # The name may be a pattern, which the copies match too.
        return {"bool": {"must": super()._to_do, "filter": self._in_sources}}

    @property
    def _in_sources(self) -> Query:
        return {"terms": {"_index": sorted(self._sources)}}

    def _copy_of(self, index: str) -> str:
        return index + self._suffix

    def _indices(self) -> dict[str, dict[str, Any]]:
        found = super()._indices()
        copies = set(map(self._copy_of, found))
        self._sources = {name: each for name, each in found.items() if name not in copies}
        return self._sources

    def _refuse_unwritable(self, indices: dict[str, dict[str, Any]]) -> None:  # noqa: ARG002
        for name, each in self._sources.items():
            if block_of(each, "read_only", "write") is None:
                raise IndexNotReady(
                    f"the index {name!r} can be written to, so its copy would miss what comes: adopt it "
                    f"where it is, or block it first (PUT {name}/_block/write)",
                    index=name,
                )

    def _set_up(self, dedup: Dedup) -> None:
        indices = self._client.indices
        for name, each in self._sources.items():
            own, copy = each["settings"]["index"], self._copy_of(name)
            settings = {key: value for key, value in own.items() if key in _COPIED_SETTINGS}
            with translated(f"copy the index {name!r}", index=name):
                if not indices.exists(index=copy):
                    indices.create(index=copy, mappings=each["mappings"], settings={"index": settings})
                # Readers are to see nothing before the swap, whatever aliases a template has given it.
                if given := list(indices.get_alias(index=copy)[copy]["aliases"]):
                    indices.delete_alias(index=copy, name=given)
            dedup.setup(copy)

    def _not_done(self, hits: list[Hit]) -> list[Hit]:
        """Return the articles that their copies lack."""
        places = [
            {"_index": self._copy_of(hit["_index"]), "_id": hit["_id"]} | routing_of(hit) for hit in hits
        ]
        with translated(f"read the copies of {self._index!r}", index=self._index):
            found = patient(self._client).mget(docs=places, source=False)["docs"] if hits else []
        return [hit for hit, one in zip(hits, found, strict=True) if not one.get("found")]

    def _action(self, hit: Hit) -> dict[str, Any]:
        action = super()._action(hit)
        del action["if_seq_no"], action["if_primary_term"]
        return action | {"_index": self._copy_of(hit["_index"])}

    def _written_as(self, action: dict[str, Any]) -> dict[str, Any]:
        return action | {"_op_type": "create"}

    def _copy_rejected(self) -> None:
        """Copy what could not be enriched as it is."""
        for ids in chunks(sorted(self._failed), _IDS_AT_ONCE):
            rejected = {"bool": {"filter": [self._in_sources, {"ids": {"values": ids}}]}}
            body = {"query": rejected, "size": _IDS_AT_ONCE, "sort": [{"_index": "asc"}]}
            for page in hit_pages(patient(self._client), self._index, body):
                for _ in self._bulk.write(map(self._copied, self._not_done(page))):
                    pass

    def _copied(self, hit: Hit) -> dict[str, Any]:
        place = {"_index": self._copy_of(hit["_index"]), "_id": hit["_id"]} | routing_of(hit)
        return place | {"_op_type": "create", "_source": hit["_source"]}
