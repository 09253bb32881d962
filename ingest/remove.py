"""Removes esdedup from indices: takes its objects out of the articles, and deletes the forest."""

import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

from elasticsearch import Elasticsearch
from esdedup.ingest.actions import Addition, with_addition
from esdedup.ingest.adopt import VECTOR
from esdedup.ingest.enricher import log_rejected
from esdedup.ingest.in_place import Hit, InPlace

from esdedup.elastic.article_indices import Articles
from esdedup.elastic.bulk import NOTE
from esdedup.elastic.errors import translated
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.meta import REBUILT_SUFFIX
from esdedup.elastic.forest.writer import nobody_feeding
from esdedup.elastic.mappings import is_set_up, storable, template_of
from esdedup.elastic.meta import forest_of, meta_of, meta_with, next_object, objects_of, saved_fields
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.elastic.patience import patient
from esdedup.elastic.requests import Query, refresh
from esdedup.elastic.stories import read_edits
from esdedup.errors import ArticleRejected, IndexNotReady
from esdedup.fields import Fields

_Indices = dict[str, dict[str, Any]]
# The name of a template, the method that stores it, and its body.
_Template = tuple[str, Callable[..., Any], dict[str, Any]]
# Longer than a sidecar remembers that an index was set up.
_REMEMBERED_S = 5.0


class Removal(InPlace):
    """Takes esdedup's objects out of articles, and its settings out of their indices and templates.

    Elasticsearch cannot remove fields from a mapping: they stay, without values, with a mark in `_meta` that
    the index is no longer set up.
    """

    # The forest of the indices; None if they have recorded none, or if it was deleted.
    forest: str | None = None
    # How many edits the forest has.
    edits: int = 0
    # The other indices that use the forest. If there are any, it is kept.
    forest_users: tuple[str, ...] = ()
    # The indices that may use the default forest: they have recorded none, but their articles have roots.
    unrecorded_users: tuple[str, ...] = ()

    def __init__(
        self,
        client: Elasticsearch,
        index: str,
        *,
        on_rejected: Callable[[ArticleRejected], None] = log_rejected,
    ) -> None:
        """Inspect the indices that a name selects; nothing is written. See `Adoption` for the arguments.

        Raises:
            IndexBlocked: An index is read-only.
            IndexNotReady: No index was set up; the indices belong to several forests; or an index cannot be
                rewritten without changing other fields of its articles.
        """
        super().__init__(client, index, on_rejected=on_rejected)
        found = self._indices()
        # Without settings of esdedup, a field of this name may be the user's own.
        own = {
            name: each
            for name, each in found.items()
            if meta_of(each["mappings"]) and objects_of(each["mappings"])
        }
        if not own:
            raise IndexNotReady(f"no index {index!r} was set up: there is nothing to remove", index=index)
        # An index that is routed by root keeps its routing, so only its blocks matter.
        self._refuse_unwritable({name: {**each, "mappings": {}} for name, each in own.items()})
        for name, each in own.items():
            _refuse_losses(name, each)
        self._mappings = {name: each["mappings"] for name, each in own.items()}
        self._objects = tuple({one: None for each in self._mappings.values() for one in objects_of(each)})
        self.found = self._look(self._mappings, set_up=self._mappings)
        with translated(f"look for other indices than {index!r}"):
            found = dict(patient(client).indices.get(index="*", expand_wildcards="all"))
        set_up = {name: each for name, each in found.items() if is_set_up(each["mappings"], given=None)}
        others = {name: each for name, each in set_up.items() if name not in own}
        forest = forest_of(self._mappings, given=None, usual="")
        # An ordinary index must not be deleted, even if its name was recorded as the forest's.
        forests = {name for name, each in found.items() if "format" in meta_of(each["mappings"])}
        if forest in forests:
            self.forest, self.edits = forest, len(execute(patient(client), read_edits(forest)).edits)
            used = {name: self._forests_of(name, each["mappings"]) for name, each in others.items()}
            self.forest_users = tuple(name for name, some in used.items() if forest in some)
            self._interrupted = {f"{forest}{REBUILT_SUFFIX}"} & forests.difference(*used.values())
        self._cleared = self._cleared_templates(own, others)
        self.templates = tuple(name for name, _, _ in self._cleared)

    @property
    def _to_do(self) -> Query:
        have_objects = [{"exists": {"field": each}} for each in self._objects]
        own = {"terms": {"_index": sorted(self._mappings)}}
        return {"bool": {"filter": own, "should": have_objects, "minimum_should_match": 1}}

    def run(self, *, wait_s: float = 0.0, on_read: Callable[[int], None] = lambda _: None) -> None:
        """Take the objects out of the articles, then delete the forest unless other indices use it.

        Articles that other programs change during the run are not overwritten. If Elasticsearch refuses an
        article, the forest is kept until another run has changed this article.

        Args:
            wait_s: How long to wait while another process owns the forest that is to be deleted.
            on_read: Called after each request with its number of articles.
        """
        client, forest = patient(self._client), None if self.forest_users else self.forest
        alone = nobody_feeding(client, forest, wait_s=wait_s) if forest else contextlib.nullcontext()
        with alone as lease, translated(f"remove esdedup from {self._index!r}", index=self._index):
            # From now on, feeders do not write the objects into these indices.
            for name, each in self._mappings.items():
                client.indices.put_mapping(index=name, meta=meta_with(each, removed=True))
            for name, put, body in self._cleared:
                put(name=name, body=body)
            time.sleep(_REMEMBERED_S if self.total and not forest else 0)
            read = -1
            # Re-read articles that other programs changed.
            while read != self._counts["read"]:
                read = self._counts["read"]
                self._take_out(on_read)
            if self._failed:
                return
            if forest and lease:
                lease.renew()
                lease.abandon()
                client.indices.delete(index=[forest, *self._interrupted], ignore_unavailable=True)
            for name, each in self._mappings.items():
                meta = each.get("_meta", {}) | {"esdedup": {"removed": True}}
                client.indices.put_mapping(index=name, meta=meta)

    def _take_out(self, on_read: Callable[[int], None]) -> None:
        def without_objects(hit: Hit) -> dict[str, Any]:
            # The index's default pipeline has processed the article before.
            action = self._action(hit) | {"pipeline": "_none", NOTE: (hit, {"written": 1})}
            self._under_way.clear()
            return with_addition(action, Addition({"source": None}), self._objects)

        execute(patient(self._client), refresh(self._index))
        hits = self._hits(self._to_do, {f"{self._objects[0]}.seq": {"order": "asc", "unmapped_type": "long"}})
        for written in self._write(self._bulk, map(without_objects, hits)):
            on_read(len(written))

    def _forests_of(self, name: str, mapping: dict[str, Any]) -> set[str | None]:
        used, following = meta_of(mapping).get("forest"), next_object(mapping)
        if used is None and Articles(self._client).have_roots(name, saved_fields(mapping) or Fields()):
            used = DEFAULT_FOREST
            self.unrecorded_users += (name,)
        return {used, following.forest if following else None}

    def _cleared_templates(self, own: _Indices, others: _Indices) -> list[_Template]:
        """Return the templates of these indices, and of no others, without the fields of esdedup."""
        client = patient(self._client).options(ignore_status=403)
        with translated(f"read the templates of {self._index!r}"):
            templates = client.indices.get_index_template().get("index_templates", [])
            parts = client.cluster.get_component_template().get("component_templates", [])
        puts: tuple[Callable[..., Any], ...] = (
            client.indices.put_index_template,
            client.cluster.put_component_template,
        )
        found = [(each["name"], puts[0], each["index_template"]) for each in templates]
        found += [(each["name"], puts[1], each["component_template"]) for each in parts]

        def names(indices: _Indices) -> set[str]:
            used = [template_of(each.get("data_stream", name), templates) for name, each in indices.items()]
            parts = [[each["name"], *each["index_template"].get("composed_of", ())] for each in used if each]
            return {name for some in parts for name in some}

        names_cleared = names(own) - names(others)
        return [
            (name, put, cleared)
            for name, put, body in found
            if name in names_cleared and (cleared := _cleared(body))
        ]


def _cleared(template: dict[str, Any]) -> dict[str, Any] | None:
    """Return a template without the fields of esdedup; None if it was not set up."""
    mapping = template.get("template", {}).get("mappings", {})
    if not meta_of(mapping):
        return None
    properties = {
        name: each for name, each in mapping["properties"].items() if name not in objects_of(mapping)
    }
    meta = {name: each for name, each in mapping["_meta"].items() if name != "esdedup"}
    changed = {"mappings": mapping | {"properties": properties, "_meta": meta}}
    return storable(template) | {"template": template["template"] | changed}


def _refuse_losses(name: str, index: dict[str, Any]) -> None:
    """Raise `IndexNotReady` if other fields would change when an article is written again."""
    flaw, pipeline = None, index["settings"]["index"].get("final_pipeline", "_none")
    if vector := VECTOR.search(json.dumps(index["mappings"])):
        flaw = f"has vectors ({vector[1]}), which Elasticsearch may not return: copy it by _reindex instead"
    elif pipeline != "_none":
        flaw = f"has the final pipeline {pipeline!r}, which would process articles again: take it out first"
    if flaw is not None:
        raise IndexNotReady(f"the index {name!r} {flaw}", index=name)
