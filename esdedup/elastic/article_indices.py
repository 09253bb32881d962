"""The user's article indices: adds the fields of esdedup, and checks them before articles are written."""

from collections.abc import Sequence
from typing import Any

from elasticsearch import ApiError, Elasticsearch, NotFoundError

from esdedup.elastic.errors import reason, translated
from esdedup.elastic.limits import MAX_SHARDS
from esdedup.elastic.mappings import (
    article_index,
    check_mappings,
    dedup_properties,
    is_routed_by_root,
    refuse_unusable,
)
from esdedup.elastic.names import check_index_name
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import Fields


class Articles:
    """Sets up and checks article indices. Needs no forest."""

    def __init__(self, client: Elasticsearch, *, fields: Fields) -> None:
        self._client = client
        self._fields = fields

    def setup(self, index: str, *, shards: int | None = None, route_by_root: bool = False) -> bool:
        """Add the fields that esdedup writes to `index`; create the index if there is none.

        Args:
            index: Its name.
            shards: Of a new index; None: the server's default.
            route_by_root: Route each article by its root; only a new index can.

        Returns:
            Whether the index was created.

        Raises:
            IndexNotReady: Its mapping, or that of the templates for it, does not suit; it is a forest, or
                closed; or it exists, and its number of shards is not `shards`, or `route_by_root` is set and
                it is not routed so.
            SettingError: No index can have that name, or that many shards.
        """
        check_index_name(index)
        if shards is not None and not 1 <= shards <= MAX_SHARDS:
            raise SettingError(f"{shards} shards: an index may have 1 to {MAX_SHARDS:,}")
        with translated(f"set up the index {index!r}", index=index):
            mappings = self._mappings(index)
            refuse_unusable(mappings or self._from_templates(index), self._fields)
            if not mappings:
                self._client.indices.create(
                    index=index, **article_index(self._fields, shards=shards, route_by_root=route_by_root)
                )
                return True
            self._check_settings(index, shards)
            if route_by_root and not all(map(is_routed_by_root, mappings.values())):
                raise IndexNotReady(
                    f"the index {index!r} exists already and is not routed by root, which is decided when "
                    "an index is made. Make a new index, and index the articles into it.",
                    index=index,
                )
            try:
                self._client.indices.put_mapping(index=index, properties=dedup_properties(self._fields.dedup))
            except ApiError as error:
                if error.meta.status != 400:
                    raise
                raise IndexNotReady(
                    f"cannot add the field {self._fields.dedup!r} to the index {index!r}: {reason(error)}. "
                    "If articles were indexed before the set-up, index them into a new index.",
                    index=index,
                    status=400,
                ) from error
            # What the index had before may still differ from what is needed.
            check_mappings(self._mappings(index), self._fields)
        return False

    def check(self, index: str) -> bool:
        """Make sure that articles written to `index` get the right mapping.

        If the index does not exist yet, the templates that will apply to it are checked.

        Returns:
            Whether articles are routed by their roots where they are written.

        Raises:
            IndexNotReady: There is neither an index nor a template; the fields are missing or have another
                mapping; it is a forest; or it is an alias of several indices without a write index.
            SettingError: No index can have that name.
        """
        check_index_name(index)
        with translated(f"read the mapping of the index {index!r}", index=index):
            mappings = self._mappings(index) or self._from_templates(index)
            if not mappings:
                raise IndexNotReady(f"there is no index {index!r}: set it up first", index=index, status=404)
            names = sorted(mappings)
            written = names[0] if len(names) == 1 else self._write_index(index, names)
        check_mappings(mappings, self._fields)
        return is_routed_by_root(mappings[written])

    def _write_index(self, alias: str, indices: Sequence[str]) -> str:
        """Return the one of several indices that is written to by their alias."""
        aliases = self._client.indices.get_alias(name=alias)
        for name, each in aliases.items():
            if each["aliases"][alias].get("is_write_index"):
                return str(name)
        raise IndexNotReady(
            f"{alias!r} is an alias of {', '.join(indices)}, and none of them is its write index", index=alias
        )

    def _check_settings(self, index: str, shards: int | None) -> None:
        """Refuse an index that is closed, or has another number of shards."""
        names = ["index.number_of_shards", "index.verified_before_close"]
        for name, each in self._client.indices.get_settings(index=index, name=names).items():
            settings = each["settings"]["index"]
            if settings.get("verified_before_close") == "true":
                raise IndexNotReady(f"the index {name!r} is closed: open it first", index=index)
            found = int(settings["number_of_shards"])
            if shards not in (None, found):
                raise IndexNotReady(
                    f"the index {name!r} exists already, and its number of shards is {found:,}, which is "
                    "decided when an index is made. Make a new index, and index the articles into it.",
                    index=index,
                )

    def _mappings(self, index: str) -> dict[str, dict[str, Any]]:
        """Return the mapping of each index behind a name; none if there is no such index."""
        try:
            answer = self._client.indices.get_mapping(index=index)
        except NotFoundError:
            return {}
        return {name: each["mappings"] for name, each in answer.items()}

    def _from_templates(self, index: str) -> dict[str, dict[str, Any]]:
        """Return the mapping that templates would give a new index; none if no template applies to it."""
        template = self._client.indices.simulate_index_template(name=index).get("template")
        return {} if template is None else {index: template["mappings"]}
