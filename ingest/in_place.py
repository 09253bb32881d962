"""Changes articles in their indices, while other programs may write to the same indices."""

import fnmatch
import json
import logging
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import pydantic
from elasticsearch import Elasticsearch
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.load import Run

from esdedup.elastic.article_indices import refuse_closed
from esdedup.elastic.bulk import ArticleBulk
from esdedup.elastic.errors import translated
from esdedup.elastic.execute import execute, hit_pages
from esdedup.elastic.mappings import refuse_forests, storable, template_of
from esdedup.elastic.meta import is_routed_by_root, saved_fields
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.elastic.patience import patient
from esdedup.elastic.requests import Query, aggregate
from esdedup.errors import ArticleRejected, IndexBlocked, IndexNotReady, SettingError
from esdedup.fields import Fields

Hit = dict[str, Any]
Place = tuple[str, str, str | None]

log = logging.getLogger("esdedup")

_TOO_WIDE = (
    "the index template %s applies to other indices too, such as %s, so it is not changed. To add one "
    "for these indices: curl -X PUT $ELASTICSEARCH_URL/_index_template/%s-esdedup "
    "-H Content-Type:application/json -d '%s' && esdedup setup %s-esdedup --template%s"
)
_HITS_AT_ONCE = 500
_MOST_INDICES = 10_000
_SELECTS_PART = {"filter", "search_routing"}
_BLOCKS = ("read_only", "read_only_allow_delete", "write", "metadata")


class FoundIndex(pydantic.BaseModel, frozen=True):
    """The state of an index before its articles were enriched."""

    index: str
    # The number of all articles.
    articles: int
    # The number of articles to be enriched or, in a removal, to be changed.
    without_root: int
    # The size of its primary shards.
    size_bytes: int
    is_set_up: bool


class InPlace(Run):
    """A run that changes the articles of some indices in place.

    Progress is recorded in the articles: if a run is killed, the next run continues where it stopped.

    Raises:
        ForestError: The target forest is owned by another process, or has another profile.
        IndexNotReady: An index is missing or incompatible, or was deleted or changed during the run.
        ServerError: Elasticsearch does not respond or rejects a request.
    """

    # The names of the articles' fields, including the object that is written.
    fields: Fields
    # The state of the indices before the run.
    found: tuple[FoundIndex, ...]

    def __init__(
        self, client: Elasticsearch, index: str, *, on_rejected: Callable[[ArticleRejected], None]
    ) -> None:
        if not index:
            raise SettingError("the name of the index is empty")
        super().__init__()
        self._client = client
        self._index = index
        self._on_rejected = on_rejected
        self._bulk = ArticleBulk(client, index=index, only_existing=True)
        self._failed: set[Place] = set()

    @property
    def total(self) -> int:
        """How many articles had to be enriched before the run."""
        return sum(each.without_root for each in self.found)

    @property
    def _to_do(self) -> Query:
        return {"bool": {"must_not": {"exists": {"field": self.fields.root}}}}

    def _indices(self) -> dict[str, dict[str, Any]]:
        with translated(f"inspect {self._index!r}"):
            indices = patient(self._client).indices
            found = dict(indices.get(index=self._index, expand_wildcards=("open", "closed")))
        if not found:
            raise IndexNotReady(f"there is no index {self._index!r}", index=self._index, status=404)
        refuse_forests({name: each["mappings"] for name, each in found.items()})
        for name, each in found.items():
            refuse_closed(name, each)
            patterns, own = self._index.split(","), each["aliases"]
            seen = [it for it in (name, *own) if any(fnmatch.fnmatchcase(it, every) for every in patterns)]
            if seen and all(_SELECTS_PART & own.get(it, {}).keys() for it in seen):
                flaw = f"would be read whole, but the alias {seen[0]!r} selects a part of it: name the index"
                raise IndexNotReady(f"the index {name!r} {flaw}", index=name)
            if cut := {"includes", "excludes"} & each["mappings"].get("_source", {}).keys():
                flaw = f"stores incomplete articles (`_source` has `{min(cut)}`): updates would lose fields"
                raise IndexNotReady(f"the index {name!r} {flaw}", index=name)
        return found

    def _refuse_unwritable(self, indices: dict[str, dict[str, Any]]) -> None:
        for name, each in indices.items():
            if block := block_of(each, *_BLOCKS):
                raise IndexBlocked(
                    f"the index {name!r} is read-only (index.blocks.{block}), so its articles cannot be "
                    "changed: remove the block, or name only the other indices",
                    index=name,
                )
            if is_routed_by_root(each["mappings"]):
                raise IndexNotReady(
                    f"the index {name!r} is routed by root, so its articles cannot be enriched in place: "
                    "index them again",
                    index=name,
                )

    def _look(self, indices: Collection[str], *, set_up: Collection[str]) -> tuple[FoundIndex, ...]:
        client = patient(self._client)
        by_index = {
            "terms": {"field": "_index", "size": _MOST_INDICES},
            "aggs": {"todo": {"filter": self._to_do}},
        }
        counted = execute(client, aggregate(self._index, {"match_all": {}}, {"indices": by_index}))
        counts = {each["key"]: each for each in counted["indices"]["buckets"]}
        with translated(f"measure {self._index!r}", index=self._index):
            sizes = client.indices.stats(index=self._index, metric="store")["indices"]
        return tuple(
            FoundIndex(
                index=name,
                articles=counts[name]["doc_count"] if name in counts else 0,
                without_root=counts[name]["todo"]["doc_count"] if name in counts else 0,
                size_bytes=sizes[name]["primaries"]["store"]["size_in_bytes"] if name in sizes else 0,
                is_set_up=name in set_up,
            )
            for name in sorted(indices)
        )

    def _templates(self, indices: dict[str, dict[str, Any]]) -> tuple[str, ...]:
        """Return the index templates to set up; log those that apply to other indices too."""
        # A backing index belongs to the template of its data stream.
        names = {each.get("data_stream", name) for name, each in indices.items()}
        client, found = patient(self._client).options(ignore_status=403).indices, []
        with translated(f"read the templates of {self._index!r}"):
            templates = client.get_index_template().get("index_templates", [])
            making = {each["name"]: each for name in names if (each := template_of(name, templates))}
            for name, one in sorted(making.items()):
                body = one["index_template"]
                if body.get("_meta", {}).get("managed"):
                    continue
                there = client.get_alias(index=body["index_patterns"], ignore_unavailable=True)
                made = {it for it in (DEFAULT_FOREST, *there, *names) if template_of(it, templates) is one}
                others = made - names - indices.keys()
                if not others or saved_fields(body.get("template", {}).get("mappings", {})):
                    found.append(name)
                    continue
                # Cut names after the first digit of the date or number at their end.
                patterns = {each[: len(each.rstrip("0123456789._-")) + 2] + "*" for each in made & names}
                put = storable(body) | {
                    "index_patterns": sorted(patterns),
                    "priority": body.get("priority", 0) + 1,
                }
                quoted = json.dumps(put).replace("'", r"\u0027")
                own = "".join(f" --{k}-field {shlex.quote(v)}" for k, v in self.fields.names.items() if v)
                log.warning(_TOO_WIDE, name, min(others), name, quoted, name, own)
        return tuple(found)

    def _hits(self, query: Query, *sort: Query) -> Iterator[Hit]:
        """Yield matching articles in order, except those that have failed."""
        body: Query = {
            "query": query,
            "sort": [*sort, {"_index": "asc"}],
            "size": _HITS_AT_ONCE,
            "seq_no_primary_term": True,
            "track_total_hits": False,
        }
        for page in hit_pages(patient(self._client), self._index, body):
            yield from self._not_done([hit for hit in page if place_of(hit) not in self._failed])

    def _not_done(self, hits: list[Hit]) -> list[Hit]:
        """Return the articles that still have to be enriched, given hits that have not failed."""
        return hits

    def _enrich(
        self,
        dedup: Dedup,
        hits: Iterable[Hit],
        *,
        backfill: bool,
        most_per_s: float | None,
        on_read: Callable[[int], None],
    ) -> None:
        """Enrich articles; skip articles that have changed since they were read."""
        started, done = time.monotonic(), 0
        enriched = self._enriched(dedup, map(self._action, hits), backfill=backfill)
        actions = map(self._written_as, enriched)
        for written in self._write(self._bulk, actions, check=dedup.require_ready):
            on_read(len(written))
            done += len(written)
            if most_per_s is not None:
                time.sleep(max(0.0, started + done / most_per_s - time.monotonic()))

    def _written_as(self, action: dict[str, Any]) -> dict[str, Any]:
        name = self.fields.dedup
        return action | {"_op_type": "update", "_source": {"doc": {name: action["_source"][name]}}}

    def _action(self, hit: Hit) -> dict[str, Any]:
        self._counts["read"] += 1
        self._under_way.append((hit["_id"], hit))
        action = {"_index": hit["_index"], "_id": hit["_id"], "routing": hit.get("_routing")}
        version = {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
        return action | version | {"_source": hit["_source"]}

    def _reject(self, source: Hit, rejected: ArticleRejected) -> None:
        self._failed.add(place_of(source))
        self._on_rejected(rejected)


def block_of(index: dict[str, Any], *names: str) -> str | None:
    """Return the first of the named blocks that an index has, or None."""
    blocks = index["settings"]["index"].get("blocks", {})
    return next((name for name in names if blocks.get(name) == "true"), None)


def place_of(hit: Hit) -> Place:
    """Return the index, id and routing of a hit: ids are unique only within a shard."""
    return hit["_index"], hit["_id"], hit.get("_routing")
