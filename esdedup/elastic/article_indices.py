"""The user's article indices: adds the fields of esdedup, and checks them before articles are written."""

from typing import Any

from elasticsearch import ApiError, Elasticsearch, NotFoundError

from esdedup.elastic.errors import reason, translated
from esdedup.elastic.limits import MAX_SHARDS
from esdedup.elastic.mappings import (
    article_index,
    check_mappings,
    dedup_properties,
    is_routed_by_root,
    refuse_forests,
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
            IndexNotReady: It has a field of that name with another mapping; it is a forest; or it exists,
                and its number of shards is not `shards`, or `route_by_root` is set and it is not routed so.
            SettingError: No index can have that name, or that many shards.
        """
        check_index_name(index)
        if shards is not None and not 1 <= shards <= MAX_SHARDS:
            raise SettingError(f"{shards} shards: an index may have 1 to {MAX_SHARDS:,}")
        with translated(f"set up the index {index!r}", index=index):
            if not self._client.indices.exists(index=index):
                self._client.indices.create(
                    index=index, **article_index(self._fields, shards=shards, route_by_root=route_by_root)
                )
                return True
            mappings = self._mappings(index)
            refuse_forests(mappings)
            if shards is not None:
                self._check_shards(index, shards)
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
        return False

    def check(self, index: str) -> bool:
        """Make sure that articles written to `index` get the right mapping.

        If the index does not exist yet, the templates that will apply to it are checked.

        Returns:
            Whether articles are routed by their roots there.

        Raises:
            IndexNotReady: There is neither an index nor a template; the fields are missing or have another
                mapping; it is a forest; or it is an alias of several indices without a write index.
            SettingError: No index can have that name.
        """
        check_index_name(index)
        with translated(f"read the mapping of the index {index!r}", index=index):
            mappings = self._mappings(index)
            if not mappings:
                template = self._client.indices.simulate_index_template(name=index).get("template")
                if template is None:
                    raise IndexNotReady(
                        f"there is no index {index!r}: set it up first", index=index, status=404
                    )
                mappings = {index: template["mappings"]}
            if len(mappings) > 1:
                aliases = self._client.indices.get_alias(name=index)
                if not any(each["aliases"][index].get("is_write_index") for each in aliases.values()):
                    raise IndexNotReady(
                        f"{index!r} is an alias of {', '.join(sorted(mappings))}, "
                        "and none of them is its write index",
                        index=index,
                    )
        check_mappings(mappings, self._fields)
        return any(map(is_routed_by_root, mappings.values()))

    def _check_shards(self, index: str, shards: int) -> None:
        settings = self._client.indices.get_settings(index=index, name="index.number_of_shards")
        for name, each in settings.items():
            found = int(each["settings"]["index"]["number_of_shards"])
            if found != shards:
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
