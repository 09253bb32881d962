"""All writes to a forest, by its one owner, while that holds the lease."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from http import HTTPStatus
from typing import Any

from esdedup.elastic.bulk import Operation, Result, send_bulk
from esdedup.elastic.client import is_inherited, refuse_inherited
from esdedup.elastic.errors import Closing, translated
from esdedup.elastic.forest.documents import Document, JsonDocument, chunks, json_documents
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.lease import Lease
from esdedup.elastic.forest.log import LogDocument, LogDocuments, read_last_number
from esdedup.elastic.forest.status import aging_document, ordered_since_document, state_document
from esdedup.elastic.forest.stored import Packing
from esdedup.errors import EsdedupError, IndexNotReady
from esdedup.forest.model import Aging, State
from esdedup.serial_thread import SerialThread

# The grace period for the previous owner's writes when the task API is unavailable.
_GRACE_S = 2.0
# Documents of up to a megabyte in one request.
_LEARNED_AT_ONCE = 8
# Shorter than the client's patience, so that a write on which the client has given up cannot take effect
# after the client's next write.
_TIMEOUT = "30s"


class ForestWriter(Closing):
    """Owns a forest: writes to it while it holds the lease, and never after losing it."""

    def __init__(
        self,
        index: ForestIndex,
        *,
        wait_s: float = 0.0,
        lease_ttl_s: float = 30.0,
        address: str | None = None,
    ) -> None:
        """Take the lease, and make all earlier writes visible to searches.

        Args:
            index: The forest's.
            wait_s: How long to wait for another owner to end.
            lease_ttl_s: How long the lease holds without a renewal.
            address: Where this process takes articles for others; None if it takes none.

        Raises:
            ForestBusy: Another process owns the forest.
            ServerError: Elasticsearch does not answer, or refuses.
        """
        self.index = index
        self._lease = Lease(index.client, forest=index.name, ttl_s=lease_ttl_s, address=address)
        self._thread = SerialThread("esdedup-writer")
        self._packing = Packing(index.relation)
        # The log, if the forest has one.
        self._log: LogDocuments | None = None
        # Why the last write failed.
        self._failure: BaseException | None = None
        is_drained = self._lease.acquire(wait_s=wait_s)
        with self.released_on_error():
            if not is_drained:
                time.sleep(_GRACE_S)
            index.refresh()
            if index.meta.is_log:
                self._log = LogDocuments(self._packing, last=index.run(read_last_number(index.name)))

    @contextlib.contextmanager
    def released_on_error(self) -> Iterator[None]:
        """Release the lease if the body fails, for callers that have not entered the writer yet."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(EsdedupError):
                self._lease.release()
            raise

    def close(self) -> None:
        """Make all writes visible to searches, and release the lease; in a forked process do nothing."""
        if is_inherited(self.index.client):
            return
        try:
            # Whoever waits for what was begun is told if it fails.
            self.settle()
            # A forest that has gone was reported already.
            if not self.is_lost:
                with self.noticing_deletion():
                    self.index.refresh()
        finally:
            self._lease.release()

    def drop(self) -> None:
        """Delete the forest, and its lease with it."""
        self.settle()
        self._lease.renew()
        self._lease.abandon()
        self.index.drop()

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken the forest, or deleted it. This object is of no use then."""
        return self._lease.is_lost

    @contextlib.contextmanager
    def noticing_deletion(self) -> Iterator[None]:
        """Let the body, which reads the forest, say so if the forest has been deleted.

        Raises:
            ForestMissing: It has.
        """
        try:
            yield
        except IndexNotReady as error:
            with translated(f"find the forest {self.index.name!r}", index=self.index.name):
                missing = self._lease.missing()
            raise missing or error from error

    def renew(self, *, at_once: bool = False) -> None:
        """Make sure that the lease is held.

        Args:
            at_once: Write it anew in any case, which shows whether the forest can be written.

        Raises:
            ForestLost: Another process has taken it.
            ServerError: Elasticsearch does not answer, or refuses.
        """
        self._lease.renew(at_once=at_once)

    def write(
        self, packed: Sequence[bytes], *, state: State | None = None, learned: Sequence[Document] = ()
    ) -> None:
        """Write the state, then the nodes and pages in their order, then what was learned.

        Writing the same again changes nothing.

        Raises:
            ForestLost: Another process has taken the forest.
            ServerError: Elasticsearch does not answer, or refuses. Part of it may have been written, in
                that order.
        """
        self.begin(packed, state=state, learned=learned).result()

    def begin(
        self,
        packed: Sequence[bytes],
        *,
        log: bytes | None = None,
        state: State | None = None,
        learned: Sequence[Document] = (),
    ) -> Future[None]:
        """Begin to write as `write` does, in a thread.

        Args:
            packed: Nodes and pages.
            log: The same, as a log has it. None: if the forest has one, it gets all of them whole.
            state: The forest's.
            learned: Documents.

        Returns:
            What waits for it, and raises as `write` does.

        Raises:
            EsdedupError: What was begun before has failed.
        """
        self.flush()
        added: list[LogDocument] | None = None
        if self._log is not None:
            added = [self._log.add(packed, log, state)] if packed or state else []

        def documents() -> Sequence[Document | JsonDocument]:
            return self._nodes(packed, state) if added is None else [each.json() for each in added]

        return self._thread.begin(lambda: self._write_noting_failure(documents, learned))

    def begin_log(self) -> int:
        """Let what is written from now on be in documents of its own; return the number of the first."""
        self.settle()
        assert self._log is not None
        self._log.begin_another()
        return self._log.number

    def log_since(self, count: int) -> int:
        """Return the number from which on documents of a log may have what the last `count` batches wrote."""
        # After a failure another was begun.
        return 1 if self._log is None else self._log.number - count - 1

    def flush(self) -> None:
        """Wait until what was begun has been written.

        Raises:
            EsdedupError: It has failed.
        """
        self.settle()
        if self._failure is not None:
            raise self._failure

    def settle(self) -> None:
        """Wait until nothing is being written, whether that fails or not."""
        refuse_inherited(self.index.client)
        # After an exception from a signal handler, this process may not know what was begun.
        self._thread.begin(lambda: None).result()

    @property
    def has_failed(self) -> bool:
        """Whether the last write has failed, so that nothing more is written before `forget_failure`."""
        return self._failure is not None

    def forget_failure(self) -> None:
        """Let writing begin anew, after a failure."""
        self.settle()
        self._failure = None
        if self._log is not None:
            self._log.begin_another()

    def _write_noting_failure(
        self, documents: Callable[[], Sequence[Document | JsonDocument]], learned: Sequence[Document]
    ) -> None:
        try:
            self._put([*documents(), *learned[:_LEARNED_AT_ONCE]])
            for some in chunks(learned[_LEARNED_AT_ONCE:], _LEARNED_AT_ONCE):
                self._put(some)
        except BaseException as error:
            self._failure = error
            raise

    def _nodes(self, packed: Sequence[bytes], state: State | None) -> list[Document | JsonDocument]:
        written = json_documents(packed, self.index.relation)
        return [*([state_document(state)] if state else []), *written]

    def write_ordered_since(self, seq: int) -> None:
        """Record that the order of nodes up to `seq` is unreliable from now on.

        Raises:
            ForestLost: Another process has taken the forest.
        """
        self._write_own(ordered_since_document(seq))

    def write_aging(self, aging: Aging, *, dead_before_ms: int) -> None:
        """Set how long nodes live.

        Args:
            aging: From now on.
            dead_before_ms: Nodes whose `seen` is before this have expired, however long nodes live now.

        Raises:
            ForestLost: Another process has taken the forest.
        """
        self._write_own(aging_document(aging, dead_before_ms=dead_before_ms))

    def delete(self, hits: Iterable[dict[str, Any]]) -> int:
        """Delete nodes or pages, except those that have been written since they were found.

        Args:
            hits: Hits of a search for them, with their versions.

        Returns:
            How many were deleted.

        Raises:
            ForestLost: Another process has taken the forest.
        """
        self.settle()
        operations = [
            (
                {
                    "delete": {
                        "_id": hit["_id"],
                        "if_seq_no": hit["_seq_no"],
                        "if_primary_term": hit["_primary_term"],
                    }
                },
            )
            for hit in hits
        ]
        results = self._send(f"remove nodes of the forest {self.index.name!r}", operations, self._is_removed)
        return sum(result["status"] == HTTPStatus.OK for result in results)

    def _write_own(self, document: Document) -> None:
        self.settle()
        self._put([document])

    def _put(self, documents: Sequence[Document | JsonDocument]) -> None:
        """Write documents in their order."""
        task = f"write to the forest {self.index.name!r}"
        for some in chunks(documents, self.index.limits.bulk_documents):
            operations = [({"index": {"_id": document_id}}, source) for document_id, source in some]
            self._send(task, operations, self._is_written, require_alias=True)

    def _send(
        self,
        task: str,
        operations: Sequence[Operation],
        is_settled: Callable[[Result], bool],
        **options: Any,
    ) -> list[Result]:
        self._lease.renew()
        return send_bulk(
            self.index.client,
            operations,
            task=task,
            is_settled=is_settled,
            index=self.index.name,
            alias=self._lease.alias,
            timeout=_TIMEOUT,
            **options,
        )

    def _is_written(self, result: Result) -> bool:
        if result["status"] == HTTPStatus.NOT_FOUND:
            raise self._lease.lost()
        return bool(result["status"] < HTTPStatus.MULTIPLE_CHOICES)

    def _is_removed(self, result: Result) -> bool:
        # A node that is gone has status 404 without an error, unlike a missing alias.
        if result["status"] == HTTPStatus.NOT_FOUND and "error" in result:
            raise self._lease.lost()
        # A node that has changed since it was found, or that is gone, stays.
        return result["status"] in {HTTPStatus.OK, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
