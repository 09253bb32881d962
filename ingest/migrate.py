"""Migrates articles to another forest: writes a second `dedup` object, then switches the index to it."""

import collections
import contextlib
import dataclasses
import itertools
import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from elasticsearch import Elasticsearch
from esdedup.ingest.actions import KNOWN_MS, OPTIONAL, Addition, with_addition
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.enricher import log_rejected
from esdedup.ingest.in_place import Hit, InPlace, Place, place_of

from esdedup.elastic.article_indices import Articles
from esdedup.elastic.bulk import NOTE
from esdedup.elastic.errors import translated
from esdedup.elastic.execute import execute, hit_pages
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.writer import nobody_feeding
from esdedup.elastic.mappings import dedup_properties, is_set_up, refuse_unusable
from esdedup.elastic.meta import (
    NextObject,
    fields_of,
    forest_of,
    mapping_of,
    meta_with,
    meta_with_fields,
    next_object,
    saved_fields,
    saved_forest,
)
from esdedup.elastic.names import check_index_name
from esdedup.elastic.patience import patient
from esdedup.elastic.requests import Query, aggregate, chunks, refresh
from esdedup.elastic.stories import read_edits
from esdedup.errors import ArticleRejected, ForestMismatch, ForestMissing, IndexNotReady, SettingError
from esdedup.fields import Fields, value_of

# After a pass over at most this many articles, which takes a second or two, a run has caught up.
_FEW = 5_000
_COMPARED_AT_ONCE = 5_000
_NAMES_AT_ONCE = 50


class Migration(InPlace):
    """Gives articles the roots of another forest, and switches their indices to it.

    Articles fed during the migration still go to the current forest; a later pass finds them by their `seq`.
    """

    def __init__(
        self,
        client: Elasticsearch,
        index: str,
        *,
        to: str,
        forest: str | None = None,
        on_rejected: Callable[[ArticleRejected], None] = log_rejected,
    ) -> None:
        """Inspect the indices that a name selects; nothing is written.

        Args:
            client: An Elasticsearch client, which the caller must close.
            index: An index, alias, pattern, data stream or list of these that covers the forest's indices.
            to: The new forest; `run` creates it if it does not exist.
            forest: The current forest, which may have any profile or format, or may have been deleted. None
                means the forest recorded in the indices, or ``esdedup-forest``.
            on_rejected: Called for each article that cannot be enriched and therefore stays unchanged.

        Raises:
            IndexBlocked: An index is read-only.
            IndexNotReady: No index was set up; or an index is routed by root, belongs to a third forest,
                or is being migrated to one.
            SettingError: The forests have the same name, or all the indices already belong to the new forest.
        """
        super().__init__(client, index, on_rejected=on_rejected)
        check_index_name(to)
        self._to = to
        indices = self._set_up(self._indices())
        self._refuse_unwritable(indices)
        # `current` leaves out indices that an earlier run has switched.
        mappings = {name: each["mappings"] for name, each in indices.items()}
        current = {name: each for name, each in mappings.items() if saved_forest(each) != to}
        self.forest = forest_of(current, given=forest)
        if to == self.forest:
            raise SettingError(f"the current forest is named {to!r} too: name a different new forest")
        if not current:
            raise SettingError(f"the indices of {index!r} belong to the forest {to!r} already")
        begun = {name: following for name, each in current.items() if (following := next_object(each))}
        for name, following in begun.items():
            if following.forest != to:
                reason = f"the index {name!r} is being migrated to the forest {following.forest!r}"
                raise IndexNotReady(f"{reason}: finish that migration first", index=name)
        self._current = fields_of(current, given=None)
        latest = {"latest": {"max": {"field": self._current.seq}}}
        found = execute(patient(client), aggregate(index, {"match_all": {}}, latest))["latest"]["value"]
        stem = re.sub(r"_\d+$", "", self._current.dedup)
        names = (f"{stem}_{number}" for number in itertools.count(2))
        free = next(name for name in names if not any(mapping_of(each, name) for each in mappings.values()))
        new = NextObject(dedup=free, forest=to, since_seq=int(found or 0))
        self._next = next(iter(begun.values()), new)
        self.fields = dataclasses.replace(self._current, dedup=self._next.dedup)
        self._prepared = set(mappings)
        self.found = self._look(mappings, set_up=mappings)
        self.templates = self._templates(indices)
        # By place: each article's last content hash and time that differed from the values in its new object.
        self._differing: dict[Place, list[Any]] = {}

    @property
    def retention(self) -> timedelta | None:
        """The retention of the current forest; None if it is missing or this version cannot read it."""
        with contextlib.suppress(ForestMismatch, ForestMissing):
            status = ForestIndex.find(self._client, self.forest).status()
            return timedelta(milliseconds=status.aging.retention_ms)
        return None

    def run(
        self,
        dedup: Dedup,
        *,
        most_per_s: float | None = None,
        on_read: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Give the articles the new forest's roots, including most articles that are fed during the run.

        Args:
            dedup: A `Dedup` with these `fields` and the new forest.
            most_per_s: The maximum number of articles per second, greater than 0. None sets no limit.
            on_read: Called after each request with its number of articles.
        """
        dedup.open()  # creates the new forest before an index names it
        while self._pass(dedup, since_seq=None, most_per_s=most_per_s, on_read=on_read) > _FEW:
            pass

    def swap(
        self,
        dedup: Dedup,
        *,
        wait_s: float = 0.0,
        drop_edits: bool = False,
        on_read: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Enrich articles fed since `run`, and switch the indices and their templates to the new forest.

        During the call, nobody can feed or edit the current forest, which takes no articles of these indices
        afterwards. Readers see the old roots until the switch, and the new roots within ten seconds of it.

        Args:
            dedup: As for `run`.
            wait_s: How long to wait while another process owns the current forest.
            drop_edits: Switch even if this discards edits in the current forest.
            on_read: As for `run`.

        Raises:
            ForestBusy: Another process owns the current forest, even after the wait.
            SettingError: The current forest has edits.
        """
        client = patient(self._client)
        with nobody_feeding(client, self.forest, wait_s=wait_s):
            if not drop_edits and (edits := execute(client, read_edits(self.forest)).edits):
                raise SettingError(
                    f"{len(edits):,} edits in the forest {self.forest!r} refer to fingerprints, which differ "
                    f"in {self._to!r}: swap with --drop-edits (`drop_edits`), then repeat the edits"
                )
            while self._pass(dedup, since_seq=self._next.since_seq, most_per_s=None, on_read=on_read):
                pass
            for template in self.templates:
                Articles(client, fields=self.fields).setup_template(template, forest=self._to)
            by_meta: dict[str, list[str]] = collections.defaultdict(list)
            indices = self._indices()
            ready = self._set_up(indices)
            for name, each in ready.items():
                meta = meta_with_fields(each["mappings"], self.fields, forest=self._to)
                by_meta[json.dumps(meta, sort_keys=True)].append(name)
            are_alike = len(by_meta) == 1 and len(indices) == len(ready)
            with translated(f"switch {self._index!r} to the forest {self._to!r}", index=self._index):
                # The server switches all indices of a request atomically, but their metadata must be equal.
                for kept, names in sorted(by_meta.items(), key=lambda item: -len(item[1])):
                    for some in [[self._index]] if are_alike else chunks(names, _NAMES_AT_ONCE):
                        client.indices.put_mapping(index=some, meta=json.loads(kept))

    def _pass(
        self, dedup: Dedup, *, since_seq: int | None, most_per_s: float | None, on_read: Callable[[int], None]
    ) -> int:
        """Enrich articles that lack a new root, or changed after `since_seq`, if given; return the number."""
        read = self._counts["read"]
        self._prepare()
        execute(patient(self._client), refresh(self._index))
        in_order = self._hits(self._to_do, {self._current.seq: {"order": "asc", "unmapped_type": "long"}})
        for hits in (in_order, self._changed(since_seq)):
            self._enrich(dedup, hits, backfill=True, most_per_s=most_per_s, on_read=on_read)
        return self._counts["read"] - read

    def _prepare(self) -> None:
        """Add the new object to indices that lack it, such as recently created ones."""
        for name, each in self._set_up(self._indices()).items():
            mapping = each["mappings"]
            if not next_object(mapping) and (saved_fields(mapping) or Fields()).dedup != self.fields.dedup:
                refuse_unusable({name: mapping}, self.fields)
                with translated(f"add the object {self.fields.dedup!r} to {name!r}", index=name):
                    patient(self._client).indices.put_mapping(
                        index=name,
                        properties=dedup_properties(self.fields),
                        meta=meta_with(mapping, next=dataclasses.asdict(self._next)),
                    )
            self._prepared.add(name)

    def _set_up(self, indices: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        found = {name: each for name, each in indices.items() if is_set_up(each["mappings"], given=None)}
        if not found:
            raise IndexNotReady(f"no index {self._index!r} was set up: there is nothing to migrate")
        return found

    @property
    def _to_do(self) -> Query:
        enriched = [{"exists": {"field": self._current.root}}, {"terms": {"_index": sorted(self._prepared)}}]
        return {"bool": {"filter": enriched, "must_not": {"exists": {"field": self.fields.root}}}}

    def _changed(self, since_seq: int | None) -> Iterator[Hit]:
        """Yield articles whose text or time has changed since their new object was written."""
        current, new = self._current, self.fields
        pairs = [(f"{current.dedup}.{each}", f"{new.dedup}.{each}") for each in ("page", "published")]
        filters: list[Query] = [{"exists": {"field": new.root}}, {"exists": {"field": current.root}}]
        if since_seq is not None:
            filters.append({"range": {current.seq: {"gt": since_seq}}})
        body: Query = {
            "query": {"bool": {"filter": filters}},
            "sort": [{current.seq: {"order": "asc", "unmapped_type": "long"}}],
            "size": _COMPARED_AT_ONCE,
            "_source": False,
            "docvalue_fields": [*itertools.chain.from_iterable(pairs)],
            "track_total_hits": False,
        }
        for page in hit_pages(patient(self._client), self._index, body):
            differing: dict[str, list[str]] = collections.defaultdict(list)
            for hit in page:
                values, key = hit.get("fields", {}), place_of(hit)
                now = [values.get(name) for name, _ in pairs]
                if now != [values.get(name) for _, name in pairs] and self._differing.get(key) != now:
                    self._differing[key] = now
                    differing[hit["_index"]].append(hit["_id"])
            for name, ids in differing.items():
                these = [{"term": {"_index": name}}, {"ids": {"values": ids}}]
                yield from self._hits({"bool": {"filter": these}}, {current.seq: {"order": "asc"}})

    def _action(self, hit: Hit) -> dict[str, Any]:
        """Return an article's action, dated with the forest's time when the article arrived."""
        seen = value_of(hit["_source"], f"{self._current.dedup}.seen")
        return super()._action(hit) | ({} if seen is None else {KNOWN_MS: seen})

    def _written_as(self, action: dict[str, Any]) -> dict[str, Any]:
        """Return an update; or the whole article, if it contains the object's fields under dotted names.

        The new object replaces an earlier one and keeps the article's time of publication.
        """
        (hit, _), name = action[NOTE], self.fields.dedup
        article = hit["_source"]
        published = value_of(article, self._current.published)
        added = dict.fromkeys(OPTIONAL) | action["_source"][name] | {"published": published}
        if not any(key.startswith(f"{name}.") for key in article):
            return super()._written_as(action | {"_source": {name: added}})
        whole = action | {"_op_type": "index", "_source": article}
        return with_addition(whole, Addition({"source": added}), (name,))
