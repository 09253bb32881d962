"""Changes the dedup objects of articles in bulk, except in articles that have been written meanwhile."""

from collections.abc import Sequence
from typing import Any

from elasticsearch import Elasticsearch

from esdedup.elastic.errors import is_blocked, refused, translated
from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.elastic.patience import retry_while_refused
from esdedup.errors import ServerBusy
from esdedup.fields import Fields, partition_of
from esdedup.maintenance.record import Record

# An article may have been written or deleted since it was read.
_EXPECTED_STATUS = frozenset({200, 201, 404, 409})


class RecordWriter:
    """Changes the records of the articles in some indices."""

    def __init__(self, client: Elasticsearch, *, indices: Sequence[str], fields: Fields) -> None:
        """Use some indices; nothing is sent yet.

        Args:
            client: Closed by the caller; should be `patient`.
            indices: Names, aliases or patterns; at least one.
            fields: The names of the articles' fields.
        """
        self._client = client
        self._indices = list(indices)
        self._names = ", ".join(indices)
        self._fields = fields

    @retry_while_refused
    def assign_roots(self, roots: Sequence[tuple[Record, str]]) -> int:
        """Write new roots into articles; an article that has been written since it was read stays as it is.

        Args:
            roots: Articles, and the new root of each.

        Returns:
            How many articles were written.
        """
        # An article that is routed by its root has to move to the shard of its new root.
        moving = [(record, root) for record, root in roots if record.routing == record.root]
        staying = [(record, root) for record, root in roots if record.routing != record.root]
        if not staying:
            return self._move(moving)
        changes = [(record, {"root": root, "partition": partition_of(root)}) for record, root in staying]
        return self._bulk(self._updates(changes)) + self._move(moving)

    def clear_fingerprints(self, records: Sequence[Record]) -> int:
        """Remove the fingerprints of articles, with what belongs to them; return how many were written."""
        cleared = dict.fromkeys(("fingerprint", "signature", "bands", "page"))
        return self.update([(record, cleared) for record in records])

    @retry_while_refused
    def update(self, changes: Sequence[tuple[Record, dict[str, Any]]]) -> int:
        """Change fields of dedup objects, except in articles that have been written since they were read.

        Args:
            changes: Articles, and the new values of their fields; None deletes a value.

        Returns:
            How many articles were written.
        """
        return self._bulk(self._updates(changes))

    def _updates(self, changes: Sequence[tuple[Record, dict[str, Any]]]) -> list[dict[str, Any]]:
        operations: list[dict[str, Any]] = []
        for record, values in changes:
            routing = {} if record.routing is None else {"routing": record.routing}
            operations += (
                {"update": {"_index": record.index, "_id": record.id, **routing, **record.version}},
                {"doc": {self._fields.dedup: values}},
            )
        return operations

    def _move(self, roots: Sequence[tuple[Record, str]]) -> int:
        """Move articles that are routed by their root: write each by its new root, then delete the old copy.

        After an interruption in between an article exists twice, until this runs again.
        """
        if not roots:
            return 0
        places = [_place(record, record.routing) for record, _ in roots]
        places += [_place(record, root) for record, root in roots]
        with translated(f"assign roots to articles in {self._names}"):
            found = self._client.mget(docs=places)["docs"]
        written: list[dict[str, Any]] = []
        deleted: list[dict[str, Any]] = []
        for (record, root), old, new in zip(roots, found[: len(roots)], found[len(roots) :], strict=True):
            if not old.get("found") or old["_seq_no"] != record.version["if_seq_no"]:
                continue
            delete = {"delete": _place(record, record.routing) | record.version}
            if not new.get("found"):
                condition: dict[str, Any] = {"op_type": "create"}
                deleted.append(delete)
            elif self._dedup(new).get("root") == record.root:
                # Both roots route to one shard, so this is the article itself.
                condition = record.version
            elif self._dedup(new).get("seq", 0) > record.seq:
                # The article has been indexed again with another text, which left this copy behind.
                deleted.append(delete)
                continue
            else:
                condition = {"if_seq_no": new["_seq_no"], "if_primary_term": new["_primary_term"]}
                deleted.append(delete)
            dedup = self._dedup(old) | {"root": root, "partition": partition_of(root)}
            written += (
                {"index": _place(record, root) | condition},
                old["_source"] | {self._fields.dedup: dedup},
            )
        moved = self._bulk(written) if written else 0
        removed = self._bulk(deleted) if deleted else 0
        return max(moved, removed)

    def _dedup(self, document: dict[str, Any]) -> dict[str, Any]:
        dedup: dict[str, Any] = document["_source"].get(self._fields.dedup) or {}
        return dedup

    def _bulk(self, operations: Sequence[dict[str, Any]]) -> int:
        """Send operations that may be repeated; return how many changed an article.

        Raises:
            ServerBusy: The server was too busy for some.
            IndexBlocked: The disk is full, or the index has a block.
            ServerError: It refused one.
        """
        with translated(f"assign roots to articles in {self._names}"):
            items = self._client.bulk(operations=operations)["items"]
        results = [result for item in items for result in item.values()]
        for each in results:
            is_busy = each["status"] in BUSY_STATUSES and not is_blocked(each)
            if not is_busy and each["status"] not in _EXPECTED_STATUS:
                task = f"assign a root to the article {each['_id']} in {each['_index']!r}"
                raise refused(task, each, status=each["status"], index=each["_index"])
        if any(each["status"] in BUSY_STATUSES for each in results):
            raise ServerBusy(f"cannot assign roots to articles in {self._names}: the server is too busy")
        return sum(each["status"] in {200, 201} for each in results)

    def refresh(self) -> None:
        """Make written articles visible to searches."""
        with translated(f"refresh {self._names}"):
            self._client.indices.refresh(index=self._indices)


def _place(record: Record, routing: str | None) -> dict[str, Any]:
    return {"_index": record.index, "_id": record.id, "routing": routing}
