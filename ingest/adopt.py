"""Adopts existing articles: gives each a fingerprint and a root, in its index or in a copy of the index."""

import itertools
import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from elasticsearch import Elasticsearch
from esdedup.ingest.actions import KNOWN_MS
from esdedup.ingest.cluster import Clustering
from esdedup.ingest.dates import UNSET_MS
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.enricher import log_rejected
from esdedup.ingest.files import FileArticle
from esdedup.ingest.in_place import Hit, InPlace, block_of
from esdedup.ingest.learn import first_pass, two_passes

from esdedup.elastic.article_indices import check_names
from esdedup.elastic.errors import translated
from esdedup.elastic.execute import execute
from esdedup.elastic.mappings import is_set_up, refuse_unusable
from esdedup.elastic.meta import copied_from, fields_of, mapping_of, saved_fields
from esdedup.elastic.names import check_index_name
from esdedup.elastic.patience import patient
from esdedup.elastic.requests import Query, chunks, count, refresh
from esdedup.errors import ArticleRejected, IndexNotReady, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import Profile
from esdedup.forest.model import NO_TIME

_LATEST = 1_000
# The sort value of articles without a time.
_LAST = 2**63 - 1
# Field types whose values Elasticsearch can sort together.
_SORTED = frozenset({"date", "date_nanos", "long", "integer", "unsigned_long", "double"})


class Adoption(InPlace):
    """Enriches articles without a root, across all indices, in chronological order."""

    def __init__(
        self,
        client: Elasticsearch,
        index: str,
        *,
        fields: Fields | None = None,
        on_rejected: Callable[[ArticleRejected], None] = log_rejected,
    ) -> None:
        """Inspect the indices that a name selects; nothing is written.

        Args:
            client: An Elasticsearch client, which the caller must close.
            index: An index, alias or pattern, or several of these, separated by commas.
            fields: The names of the articles' fields. None uses the names that an index has recorded, or the
                default names.
            on_rejected: Called for each article that cannot be enriched and therefore stays unchanged.

        Raises:
            FieldsNotFound: The inspected articles lack the text field, or seem to use other field names than
                the default ones.
            IndexBlocked: An index is read-only, and contains articles without a root.
            IndexNotReady: There is no such index; an index is a forest or is routed by root; its articles
                cannot be sorted by time; or the indices have recorded different field names.
        """
        super().__init__(client, index, on_rejected=on_rejected)
        indices = self._indices()
        mappings = {name: each["mappings"] for name, each in indices.items()}
        ready = {name: each for name, each in mappings.items() if is_set_up(each, given=fields)}
        self.fields = fields_of(ready or mappings, given=fields)
        refuse_unusable(mappings, self.fields)
        self.found = self._look(mappings, set_up=ready)
        self.templates = self._templates(indices)
        to_do = {each.index for each in self.found if each.without_root}
        self._refuse_unwritable({name: each for name, each in indices.items() if name in to_do})
        new = mappings.keys() - ready.keys()
        missing = check_names(patient(client), index, new, self.fields, are_given=fields is not None)
        self._refuse_unsorted({name: mappings[name] for name in to_do}, has_times="time" not in missing)

    def repeated_of_latest(self, profile: Profile) -> tuple[int, int]:
        """Cluster the latest 1,000 articles in memory; return their number, and the number of repeats."""
        latest = {"order": "desc", "unmapped_type": "date", "numeric_type": "date"}
        hits = itertools.islice(self._hits(self._to_do, {self.fields.time: latest}), _LATEST)
        articles = [*map(_article, hits)][::-1]
        clustering = Clustering(
            profile=profile,
            fields=self.fields,
            use_time=False,
            retention=timedelta(days=1),
            on_rejected=lambda _: None,
        )
        roots = [each.root for each in clustering.cluster(articles) if each.root is not None]
        return len(articles), len(roots) - len(set(roots))

    def run(
        self,
        dedup: Dedup,
        *,
        backfill: bool = True,
        learn_first: bool = False,
        most_per_s: float | None = None,
        on_read: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Set up the indices and their templates, and enrich articles without a root.

        Articles that other programs change during the run are not overwritten.

        Args:
            dedup: A `Dedup` with these `fields`. Other programs may use its sidecar, if any, during the run.
            backfill: Take the forest's time from the articles. False takes it from the clock, as sidecars do:
                adopted articles then count as seen today, and a cluster may span any length of time.
            learn_first: Learn boilerplate from each part of 40,000 articles before enriching that part.
            most_per_s: The maximum number of articles per second, greater than 0. None sets no limit.
            on_read: Called after each request with its number of articles.
        """
        self._set_up(dedup)
        for template in self.templates:
            dedup.setup_template(template)
        read = -1
        # Re-read articles that other programs changed and that still have no root.
        while read != self._counts["read"]:
            read = self._counts["read"]
            execute(patient(self._client), refresh(self._index))
            for first, hits in two_passes(self._by_time, learn_first=learn_first):
                if learn_first:
                    first_pass(dedup.learn, map(_article, first), self.fields)
                self._enrich(dedup, hits, backfill=backfill, most_per_s=most_per_s, on_read=on_read)

    def _set_up(self, dedup: Dedup) -> None:
        for each in self.found:
            if not each.is_set_up:
                dedup.setup(each.index)

    def _refuse_unsorted(self, mappings: dict[str, dict[str, Any]], *, has_times: bool) -> None:
        """Raise `IndexNotReady` unless articles can be read in chronological order."""
        field = self.fields.time
        for name, mapping in mappings.items():
            found = mapping.get("runtime", {}).get(field) or mapping_of(mapping, field)
            if found.get("type") not in _SORTED and (found or has_times):
                raise IndexNotReady(
                    f"the index {name!r} does not map the field {field!r} as a date or a number, so its "
                    "articles cannot be read in chronological order: add a runtime field of that name "
                    f'(PUT {name}/_mapping with {{"runtime": {{"{field}": {{"type": "date"}}}}}})',
                    index=name,
                )

    def _by_time(self) -> Iterator[Hit]:
        """Yield articles without a root in chronological order; missing and default times come last."""
        by_time = {"order": "asc", "missing": "_last", "unmapped_type": "date", "numeric_type": "date"}
        old = {"range": {self.fields.time: {"lt": UNSET_MS[-1].stop, "format": "epoch_millis"}}}
        for query, is_unset in (self._to_do, False), ({"bool": {"filter": [self._to_do, old]}}, True):
            for hit in self._hits(query, {self.fields.time: by_time}):
                if is_unset == any(hit["sort"][0] in each for each in UNSET_MS):
                    own = hit["_source"].get(self.fields.dedup)
                    if own is None or (isinstance(own, dict) and {"root", "seq", "profile"} <= own.keys()):
                        yield hit
                        continue
                    self._counts["read"] += 1
                    why = f"has a field {self.fields.dedup!r} that esdedup did not write"
                    self._reject(hit, ArticleRejected(hit["_id"], why))

    def _action(self, hit: Hit) -> dict[str, Any]:
        """Return an article's action, with the time by which Elasticsearch sorted the article."""
        return super()._action(hit) | {KNOWN_MS: NO_TIME if hit["sort"][0] == _LAST else hit["sort"][0]}


def _article(hit: Hit) -> FileArticle:
    return FileArticle(place=hit["_index"], id=hit["_id"], article=hit["_source"], size_bytes=0)


# Settings that a copy inherits; the other settings are private to an index or describe its history.
_COPIED = (
    *("number_of_shards", "number_of_replicas", "routing", "analysis", "similarity", "mapping", "sort"),
    *("codec", "refresh_interval", "hidden", "query", "routing_partition_size", "gc_deletes", "highlight"),
)
_COPIED_AT_ONCE = 500
VECTOR = re.compile(r'"([^"]+)": {"type": "(dense_vector|rank_vectors|sparse_vector|semantic_text)"')


class AdoptionIntoCopies(Adoption):
    """Writes each article with its root into a copy of its index; the copy then takes over the aliases.

    The indices themselves are not changed. They must be read-only, so that copies stay complete.
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
        """Inspect the indices that a name selects; nothing is written. See `Adoption` for the arguments.

        A copy is named after its index, with `suffix` appended. Rejected articles are copied unchanged.

        Raises:
            IndexNotReady: For the reasons given in `Adoption`; or because an index is not read-only or was
                set up already, its aliases cannot be moved, or the name of its copy is taken.
        """
        if not suffix:
            raise SettingError("the suffix is empty: copies need other names than their indices")
        self._suffix = suffix
        super().__init__(client, index, fields=fields, on_rejected=on_rejected)

    def swap(self) -> int:
        """Move the indices' aliases to the copies, in a single request; return the number of aliases.

        Raises:
            IndexNotReady: A copy lacks articles of its index, so `run` must be repeated first; or an index no
                longer meets the requirements of the constructor.
        """
        client = patient(self._client)
        self._copy_rejected()
        actions: list[dict[str, Any]] = []
        with translated(f"swap the aliases of {self._index!r}", index=self._index):
            for name in self._sources:
                copy, each = name + self._suffix, client.indices.get(index=name)[name]
                self._refuse_unfit(name, each)
                client.indices.refresh(index=copy)
                here, there = (execute(client, count(one, {"match_all": {}})) for one in (name, copy))
                if here != there:
                    counts = f"the index {name!r} has {here:,} articles and its copy {there:,}"
                    raise IndexNotReady(f"{counts}: adopt it again", index=name)
                put = {it: each["settings"]["index"].get(it) for it in ("default_pipeline", "final_pipeline")}
                client.indices.put_settings(index=copy, settings=put)
                for alias, options in each["aliases"].items():
                    actions.append({"add": {"index": copy, "alias": alias, **options}})
                    actions.append({"remove": {"index": name, "alias": alias, "must_exist": True}})
            if actions:
                client.indices.update_aliases(actions=actions)
        return len(actions) // 2

    @property
    def _to_do(self) -> Query:
        # If the name is a pattern, it may match the copies too.
        return {"bool": {"must": super()._to_do, "filter": {"terms": {"_index": sorted(self._sources)}}}}

    def _indices(self) -> dict[str, dict[str, Any]]:
        # Leave out copies: after the swap, an alias selects only copies.
        self._sources = {
            name: each
            for name, each in super()._indices().items()
            if name != f"{copied_from(each['mappings']).get('index')}{self._suffix}"
        }
        return self._sources

    def _refuse_unwritable(self, indices: dict[str, dict[str, Any]]) -> None:  # noqa: ARG002
        for name, each in self._sources.items():
            self._refuse_unfit(name, each)

    def _refuse_unfit(self, name: str, index: dict[str, Any]) -> None:
        """Raise `IndexNotReady` unless an index can be copied completely and its aliases can be moved."""
        flaw, aliases = None, index["aliases"]
        if block_of(index, "read_only", "write") is None:
            flaw = f"is not read-only: adopt it in place, or block writes first (PUT {name}/_block/write)"
        elif aliases and block_of(index, "read_only"):
            only = '{"index.blocks": {"write": true, "read_only": false}}'
            flaw = f"blocks changes to its aliases (index.blocks.read_only): PUT {name}/_settings {only}"
        elif is_set_up(index["mappings"], given=None):
            flaw = "was set up already: leave it out"
        elif vector := VECTOR.search(json.dumps(index["mappings"])):
            flaw = f"has vectors ({vector[1]}), which Elasticsearch may not return: adopt it in place"
        if flaw is not None:
            raise IndexNotReady(f"the index {name!r} {flaw}", index=name)
        self._mapping_of_copy(name, index)

    def _mapping_of_copy(self, name: str, index: dict[str, Any]) -> dict[str, Any]:
        """Return the mapping of a copy, which records the index it was made from; empty if it is missing."""
        check_index_name(copy := name + self._suffix)
        with translated(f"look for the index {copy!r}", index=copy):
            found = dict(patient(self._client).options(ignore_status=404).indices.get(index=copy))
        mapping = found[copy]["mappings"] if copy in found else {}
        if "error" not in found and copied_from(mapping) != _kept_by_copy(name, index):
            taken = f"another index or alias has the name {copy!r}, which the copy of {name!r} needs"
            raise IndexNotReady(f"{taken}: choose another suffix", index=copy)
        return mapping

    def _set_up(self, dedup: Dedup) -> None:
        indices = self._client.indices
        for name, each in self._sources.items():
            own, copy = each["settings"]["index"], name + self._suffix
            settings = {key: value for key, value in own.items() if key in _COPIED or key[:4] == "max_"}
            with translated(f"copy the index {name!r}", index=name):
                if not (mapping := self._mapping_of_copy(name, each)):
                    # "fields" is False until `setup` has prepared the copy, even if a template names fields.
                    kept = {"copy_of": _kept_by_copy(name, each), "fields": False}
                    meta = {**each["mappings"].get("_meta", {}), "esdedup": kept}
                    mappings = {"dynamic": True, **each["mappings"], "_meta": meta}
                    indices.create(index=copy, mappings=mappings, settings={"index": settings})
                # Readers must not see the copy before the swap: remove aliases that a template has added.
                if not saved_fields(mapping) and (given := indices.get_alias(index=copy)[copy]["aliases"]):
                    indices.delete_alias(index=copy, name=list(given))
            dedup.setup(copy)

    def _not_done(self, hits: list[Hit]) -> list[Hit]:
        """Return the articles that the copies lack."""
        with translated(f"read the copies of {self._index!r}", index=self._index):
            places = list(map(self._in_copy, hits))
            found = patient(self._client).mget(docs=places, source=False)["docs"] if hits else []
        return [hit for hit, one in zip(hits, found, strict=True) if not one.get("found")]

    def _in_copy(self, hit: Hit) -> dict[str, Any]:
        return {"_index": hit["_index"] + self._suffix, "_id": hit["_id"], "routing": hit.get("_routing")}

    def _action(self, hit: Hit) -> dict[str, Any]:
        action = super()._action(hit)
        del action["if_seq_no"], action["if_primary_term"]
        return action | self._in_copy(hit)

    def _written_as(self, action: dict[str, Any]) -> dict[str, Any]:
        return action | {"_op_type": "create"}

    def _copy_rejected(self) -> None:
        """Copy the articles that could not be enriched, without changing them."""
        for places in chunks(list(self._failed), _COPIED_AT_ONCE):
            docs = [dict(zip(("_index", "_id", "routing"), each, strict=True)) for each in places]
            with translated(f"read {self._index!r}", index=self._index):
                found = patient(self._client).mget(docs=docs)["docs"]
            copied = (
                {"_op_type": "create", **self._in_copy(hit), "_source": hit["_source"]}
                for hit in self._not_done(found)
            )
            list(self._bulk.write(copied))


def _kept_by_copy(name: str, index: dict[str, Any]) -> dict[str, str]:
    return {"index": name, "uuid": index["settings"]["index"]["uuid"]}
