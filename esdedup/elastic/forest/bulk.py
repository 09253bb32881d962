"""Bulk writes into a forest's index, through the alias of its owner."""

from collections.abc import Iterable, Sequence
from typing import Any

from elasticsearch import Elasticsearch

from esdedup.elastic.errors import is_blocked, refused, translated
from esdedup.elastic.forest.documents import Document, JsonDocument, chunks
from esdedup.elastic.limits import BUSY_STATUSES
from esdedup.elastic.patience import retry_while_refused
from esdedup.errors import ForestLost, ServerBusy, ServerError

# Shorter than the client's patience, so that a write on which the client has given up cannot take effect
# after the client's next write.
_TIMEOUT = "30s"
_FIELDS_READ = [
    *("errors", "items.index.status", "items.index.error.type", "items.index.error.reason"),
    # When the whole request is refused.
    *("error", "status"),
]
# A node that has changed since it was found, or that is gone, stays.
_DELETION_STATUSES = frozenset({200, 404, 409})


class ForestBulk:
    """Writes and deletes documents. Methods return when the server has acknowledged everything."""

    def __init__(self, client: Elasticsearch, *, forest: str, max_documents: int) -> None:
        """Write into an index that exists.

        Args:
            client: Owned by the caller; should be `patient`.
            forest: Name of the index.
            max_documents: In one request.
        """
        self._client = client
        self._forest = forest
        self._max_documents = max_documents

    def write(self, documents: Sequence[Document | JsonDocument], *, alias: str) -> None:
        """Write documents in their order; those that a busy server refused are sent again.

        Raises:
            ForestLost: The alias has been moved to another owner.
            IndexBlocked: The disk is full, or the index has a block.
            ServerError: The server refuses a document, or does not answer.
        """
        for chunk in chunks(documents, self._max_documents):
            self._write_chunk(dict(chunk), alias)

    def delete(self, hits: Iterable[dict[str, Any]], *, alias: str) -> int:
        """Delete the nodes that have not changed since they were found; return how many.

        Deletions that a busy server refused are sent again.

        Args:
            hits: Hits of a search, with their versions.
            alias: The alias of the owner.

        Raises:
            ForestLost: The alias has been moved to another owner.
            IndexBlocked: The disk is full, or the index has a block.
            ServerError: The server does not answer, or refuses.
        """
        pending = {hit["_id"]: hit for hit in hits}
        deleted: list[str] = []
        if pending:
            self._delete_chunk(pending, deleted, alias)
        return len(deleted)

    @retry_while_refused
    def _delete_chunk(self, pending: dict[str, dict[str, Any]], deleted: list[str], alias: str) -> None:
        """Delete nodes; remove from `pending` those that are settled, and note those that were deleted."""
        operations = [
            {"delete": {"_id": node_id, "if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}}
            for node_id, hit in pending.items()
        ]
        with translated(f"remove nodes of the forest {self._forest!r}", index=self._forest):
            answer = self._client.bulk(index=alias, operations=operations, timeout=_TIMEOUT)
        for item in answer["items"]:
            result = item["delete"]
            # A node that is gone has status 404 without an error, unlike a missing alias.
            if result["status"] == 404 and "error" in result:
                raise self._lost()
            if _is_busy(result):
                continue
            if result["status"] not in _DELETION_STATUSES:
                raise self._refused(f"remove node {result['_id']} from", result)
            del pending[result["_id"]]
            if result["status"] == 200:
                deleted.append(result["_id"])
        if pending:
            raise self._busy()

    @retry_while_refused
    def _write_chunk(self, documents: dict[str, dict[str, Any] | str], alias: str) -> None:
        """Write documents, and remove those that are written from `documents`."""
        operations: list[Any] = []
        for document_id, document in documents.items():
            operations += ({"index": {"_id": document_id}}, document)
        with translated(f"write to the forest {self._forest!r}", index=self._forest):
            answer = self._client.bulk(
                index=alias,
                operations=operations,
                require_alias=True,
                timeout=_TIMEOUT,
                filter_path=_FIELDS_READ,
            )
        if not answer["errors"]:
            return
        for item, document_id in zip(answer["items"], list(documents), strict=True):
            result = item["index"]
            if result["status"] == 404:
                raise self._lost()
            if result["status"] < 300:
                del documents[document_id]
            elif not _is_busy(result):
                raise self._refused(f"write node {document_id} to", result)
        raise self._busy()

    def _lost(self) -> ForestLost:
        return ForestLost(f"the forest {self._forest!r} has another owner", forest=self._forest)

    def _refused(self, task: str, result: dict[str, Any]) -> ServerError:
        return refused(
            f"{task} the forest {self._forest!r}", result, status=result["status"], index=self._forest
        )

    def _busy(self) -> ServerBusy:
        return ServerBusy(
            f"cannot write to the forest {self._forest!r}: the server is too busy", index=self._forest
        )


def _is_busy(result: dict[str, Any]) -> bool:
    return result["status"] in BUSY_STATUSES and not is_blocked(result)
