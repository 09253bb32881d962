"""The user's article indices: adds the fields of esdedup, and checks indices before they are written to."""

import logging
import operator
from collections.abc import Callable, Collection
from typing import Any

import tenacity
from elasticsearch import ApiError, Elasticsearch, NotFoundError

from esdedup.elastic.errors import FULL, reason, translated
from esdedup.elastic.limits import MAX_SHARDS
from esdedup.elastic.mappings import (
    analyzer_of,
    article_index,
    check_mappings,
    code_of,
    is_set_up,
    keyword_properties,
    missing_properties,
    refuse_unusable,
    refuse_unusable_own,
    saved_language,
    storable,
)
from esdedup.elastic.meta import (
    WritableIndex,
    fields_of,
    is_mapped,
    is_routed_by_root,
    meta_with,
    meta_with_fields,
    next_object,
    objects_of,
    require_saved,
    saved_fields,
    saved_forest,
)
from esdedup.elastic.names import check_index_name
from esdedup.elastic.patience import retrying
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import Fields, editorial, value_of
from esdedup.likely_fields import fields_not_found

log = logging.getLogger("esdedup")

_STARTUP_PATIENCE_S = 2.0


class Articles:
    """Sets up and checks article indices. Needs no forest."""

    def __init__(self, client: Elasticsearch, *, fields: Fields | None = None) -> None:
        self._client = client
        # None means the names stored in each index, or the default names.
        self._fields = fields
        # Names of indices that existed at an earlier check.
        self._found: set[str] = set()

    def setup(
        self,
        index: str,
        *,
        shards: int | None = None,
        route_by_root: bool = False,
        language: str | None = None,
        forest: str | None = None,
        is_editorial: bool = False,
    ) -> bool:
        """Add the fields that esdedup writes or reads to an index, or create it; see `Dedup.setup`."""
        check_index_name(index)
        if forest is not None:
            check_index_name(forest)
        if shards is not None and not 1 <= shards <= MAX_SHARDS:
            raise SettingError(f"{shards} shards: an index may have 1 to {MAX_SHARDS:,}")
        with translated(f"set up the index {index!r}", index=index):
            while True:
                found = self._indices(index)
                mappings = _mappings(found)
                known = mappings or self._from_templates(index)
                fields = fields_of(known, given=self._fields)
                if is_editorial:
                    fields = editorial(fields, is_editorial=True)
                    if route_by_root or any(map(is_routed_by_root, mappings.values())):
                        raise SettingError("an index routed by root cannot have stories, which span shards")
                    if any(next_object(one) and not is_mapped(one, fields.cluster) for one in known.values()):
                        raise IndexNotReady(f"{index!r} is being migrated: set it up after the migration")
                refuse_unusable(known, fields)
                if mappings:
                    break
                body = article_index(
                    fields, shards=shards, route_by_root=route_by_root, language=language, forest=forest
                )
                try:
                    self._client.indices.create(index=index, **body)
                except ApiError as error:
                    _refuse_missing_analyzer(error, language)
                    if "data stream" in reason(error):
                        why = f"{index!r} will be a data stream: set up its template (`setup --template`)"
                        raise IndexNotReady(why, index=index, status=400) from error
                    # Another process may have created the index first; if so, check that index.
                    if error.error != "resource_already_exists_exception":
                        raise
                else:
                    return True
            refuse_unusable_own(mappings, fields)
            for name, each in found.items():
                refuse_closed(name, each)
                number = int(each["settings"]["index"]["number_of_shards"])
                if shards not in (None, number):
                    raise _exists_already(name, f", and its number of shards is {number:,}")
                if language is not None and code_of(language) != (kept := saved_language(each["mappings"])):
                    which = "no language in particular" if kept is None else f"the language {kept!r}"
                    raise _exists_already(name, f", and was set up for {which}")
            if new := [name for name, each in mappings.items() if not is_set_up(each, given=self._fields)]:
                check_names(self._client, index, new, fields, are_given=self._fields is not None)
            if route_by_root and not all(map(is_routed_by_root, mappings.values())):
                raise _exists_already(index, " and is not routed by root")
            for name, mapping in mappings.items():
                self._add(name, mapping, fields, forest)
            # Fields that the index already had may still have the wrong mapping.
            check_mappings(_mappings(self._indices(index)), fields)
        return False

    def setup_template(
        self,
        name: str,
        *,
        forest: str | None = None,
        is_editorial: bool = False,
        keyword_fields: Collection[str] = (),
    ) -> None:
        """Add to an index template or component template the fields that `setup` adds to an index."""
        check_index_name(name)
        if forest is not None:
            check_index_name(forest)
        client = self._client
        asking = client.options(ignore_status=404)
        with translated(f"set up the template {name!r}"):
            if found := asking.indices.get_index_template(name=name).get("index_templates"):
                template = found[0]["index_template"]
                put: Callable[..., Any] = client.indices.put_index_template
                # This includes the mappings of its component templates.
                mapping = client.indices.simulate_template(name=name)["template"].get("mappings", {})
            elif found := asking.cluster.get_component_template(name=name).get("component_templates"):
                template, put = found[0]["component_template"], client.cluster.put_component_template
                mapping = template["template"].get("mappings", {})
            else:
                raise IndexNotReady(f"there is no index template or component template {name!r}", status=404)
            fields = fields_of({name: mapping}, given=self._fields)
            if is_editorial:
                fields = editorial(fields, is_editorial=True)
            refuse_unusable({name: mapping}, fields)
            refuse_unusable_own({name: mapping}, fields)
            kept = saved_fields(mapping)
            if kept and kept.names | {"dedup": fields.dedup} != fields.names:
                raise IndexNotReady(
                    f"the template {name!r} was set up with other field names: pass no names. Its future "
                    "indices could not be read together with its existing ones"
                )
            own = template.setdefault("template", {}).setdefault("mappings", {})
            keywords = keyword_properties(mapping, keyword_fields)
            own["properties"] = own.get("properties", {}) | missing_properties(mapping, fields) | keywords
            own["_meta"] = meta_with_fields(mapping, fields, forest=forest)
            put(name=name, body=storable(template))

    def map_keywords(self, index: str, names: Collection[str]) -> None:
        """Map further fields of articles as keywords, so that readers can filter by them."""
        with translated(f"set up the index {index!r}", index=index):
            for name, mapping in _mappings(self._indices(index)).items():
                properties = keyword_properties(mapping, names)
                self._client.indices.put_mapping(index=name, properties=properties)

    def _add(self, index: str, mapping: dict[str, Any], fields: Fields, forest: str | None) -> None:
        missing = missing_properties(mapping, fields)
        try:
            self._client.indices.put_mapping(
                index=index, properties=missing, meta=meta_with_fields(mapping, fields, forest=forest)
            )
        except ApiError as error:
            if error.meta.status != 400 or FULL in reason(error):
                raise
            raise IndexNotReady(
                f"cannot add the fields {', '.join(missing)} to the index {index!r}: {reason(error)}. "
                "If articles were indexed before the set-up, index them into a new index.",
                index=index,
                status=400,
            ) from error

    def check(self, index: str) -> WritableIndex:
        """Check that an index, or the index that templates would create, maps articles correctly."""
        check_index_name(index)
        with translated(f"read the mapping of the index {index!r}", index=index):
            found = self._indices(index)
            if not found and index in self._found:
                # A server that has just started may not know its indices yet.
                again = retrying(tenacity.retry_if_result(operator.not_), patience_s=_STARTUP_PATIENCE_S)
                found = again(self._indices, index)
            mappings = _mappings(found) or self._from_templates(index)
            if not mappings:
                raise IndexNotReady(f"there is no index {index!r}: set it up first", index=index, status=404)
            if found:
                self._found.add(index)
            return self._writable(index, found, mappings)

    def find(self, index: str) -> WritableIndex | None:
        """Check an index as `check` does, but return None if neither it nor its template has been set up."""
        with translated(f"read the mapping of the index {index!r}", index=index):
            found = self._indices(index)
            mappings = _mappings(found) or self._from_templates(index)
            if not any(is_set_up(each, given=self._fields) for each in mappings.values()):
                return None
            return self._writable(index, found, mappings)

    def _writable(
        self, index: str, found: dict[str, dict[str, Any]], mappings: dict[str, dict[str, Any]]
    ) -> WritableIndex:
        """Return the index that a write to this name goes to; see `check`."""
        names = sorted(mappings)
        written = names[0] if len(names) == 1 else self._write_index(index, found)
        if found:
            refuse_closed(written, found[written])
        fields, forest = require_saved(written, mappings[written], self._fields)
        # `has_part` is missing if the forest has an earlier format; opening the forest reports that.
        check_mappings(mappings, fields, optional=("has_part",))
        return WritableIndex(
            fields=fields,
            name=written,
            is_routed_by_root=is_routed_by_root(mappings[written]),
            forest=forest,
            other_objects=tuple(each for each in objects_of(mappings[written]) if each != fields.dedup),
        )

    def claim(self, name: str, forest: str, retention_ms: int, *, is_new: bool, is_new_forest: bool) -> bool:
        """Record a forest's name and retention in the write index of `name`; return whether the index exists.

        Records nothing in an index whose articles have roots that may come from another forest.
        """
        target = self.find(name)
        index = target.name if target and target.name else name
        mapping = _mappings(self._indices(index)).get(index)
        # During a migration, record nothing: the migration records its new forest when it ends.
        if target is None or (mapping is not None and next_object(mapping) is not None):
            return True
        if mapping is None:
            return False
        owner = saved_forest(mapping)
        if not is_new and (is_new_forest or owner is None) and self.have_roots(index, target.fields):
            if is_new_forest:
                log.warning(
                    "the forest %r is new, but articles in %r already have roots: later reprints of them get "
                    "other roots, unless the forest is rebuilt from these articles",
                    *(forest, index),
                )
        elif owner in {None, forest}:
            meta = meta_with(mapping, forest=forest, retention_ms=retention_ms)
            if meta != mapping.get("_meta"):
                with translated(f"record the name of the forest in the index {index!r}", index=index):
                    self._client.indices.put_mapping(index=index, meta=meta)
        return True

    def have_roots(self, index: str, fields: Fields) -> bool:
        """Return whether any article in an index has a root."""
        query = {"exists": {"field": fields.root}}
        with translated(f"search the index {index!r}", index=index):
            answer = self._client.search(
                index=index,
                query=query,
                size=0,
                terminate_after=1,
                ignore_unavailable=True,
                allow_partial_search_results=False,
            )
        return bool(answer["hits"]["total"]["value"])

    def _write_index(self, alias: str, found: dict[str, dict[str, Any]]) -> str:
        """Return the write index of an alias or data stream."""
        if {each.get("data_stream") for each in found.values()} == {alias}:
            (stream,) = self._client.indices.get_data_stream(name=alias)["data_streams"]
            return str(stream["indices"][-1]["index_name"])
        for name, each in self._client.indices.get_alias(name=alias).items():
            if each["aliases"].get(alias, {}).get("is_write_index"):
                return str(name)
        raise IndexNotReady(
            f"{alias!r} is an alias of {', '.join(sorted(found))}, and none of them is its write index: name "
            "one of them, or make one the write index (`is_write_index`)",
            index=alias,
        )

    def _indices(self, index: str) -> dict[str, dict[str, Any]]:
        try:
            return dict(self._client.indices.get(index=index))
        except NotFoundError:
            return {}

    def _from_templates(self, index: str) -> dict[str, dict[str, Any]]:
        """Return `index` with the mapping that templates would give it; empty if no template applies."""
        template = self._client.indices.simulate_index_template(name=index).get("template")
        return {} if template is None else {index: template.get("mappings", {})}


def check_names(
    client: Elasticsearch, name: str, indices: Collection[str], fields: Fields, *, are_given: bool
) -> dict[str, str]:
    """Sample the articles of some indices; return the fields that have no value in the sample.

    Raises `FieldsNotFound` if no article has a text, or if a missing field probably has another name;
    raises `IndexNotReady` if an article has its own data where esdedup would write.
    """
    should = [{"exists": {"field": fields.text}}] if are_given else []
    query: dict[str, Any] = {"bool": {"filter": {"terms": {"_index": sorted(indices)}}, "should": should}}
    at_random = {"query": query, "random_score": {"seed": 0, "field": "_seq_no"}, "boost_mode": "sum"}
    with translated(f"sample the articles in {name!r}", index=name):
        answer = client.search(
            index=name, query={"function_score": at_random}, size=_SAMPLE, allow_partial_search_results=False
        )
        hits = answer["hits"]["hits"]
    articles = [hit.get("_source", {}) | {"_id": hit["_id"]} for hit in hits]
    for hit, article in zip(hits, articles, strict=True):
        if (own := value_of(article, fields.dedup)) is not None:
            as_mapped = {"properties": own} if isinstance(own, dict) else {"type": type(own).__name__}
            refuse_unusable({hit["_index"]: {"properties": {fields.dedup: as_mapped}}}, fields)
    given = {"text": fields.text, "title": fields.title, "time": fields.time}
    given |= {"source": fields.source, "link": fields.link}
    missing = {
        role: each
        for role, each in given.items()
        if not any(value_of(article, each) is not None for article in articles)
    }
    likely = fields_not_found(articles, missing, fields, "_id").likely
    reported = {role: each for role, each in missing.items() if role == "text" or role in likely}
    if articles and reported:
        raise fields_not_found(articles, reported, fields, "_id")
    return missing


def _mappings(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: each["mappings"] for name, each in found.items()}


def refuse_closed(name: str, found: dict[str, Any]) -> None:
    """Raise `IndexNotReady` if an index is closed."""
    if found["settings"]["index"].get("verified_before_close") == "true":
        raise IndexNotReady(f"the index {name!r} is closed: open it first", index=name)


def _exists_already(name: str, how: str) -> IndexNotReady:
    return IndexNotReady(
        f"the index {name!r} exists already{how}, which is fixed when an index is created. "
        "Create a new index, and index the articles into it.",
        index=name,
    )


def _refuse_missing_analyzer(error: ApiError, language: str | None) -> None:
    """Raise `SettingError` if an index was not created because the server lacks the analyzer."""
    if language is not None and f"analyzer [{analyzer_of(language)}]" in str(error.body):
        raise SettingError(
            f"Elasticsearch lacks the analyzer {analyzer_of(language)!r}, which the language {language!r} "
            "needs: nothing was created; leave the language out, or use a server with this analyzer"
        ) from error


_SAMPLE = 100
