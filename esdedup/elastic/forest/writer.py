"""Writes to a forest, for the owner that holds its lease."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from http import HTTPStatus
from typing import Any

from elasticsearch import Elasticsearch

from esdedup.elastic.bulk import Operation, Result, send_bulk
from esdedup.elastic.client import is_inherited, refuse_inherited
from esdedup.elastic.closing import Closing
from esdedup.elastic.errors import translated
from esdedup.elastic.forest.batch import batch_document, read_batch
from esdedup.elastic.forest.fence import Fence
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import FIELD
from esdedup.elastic.forest.lease import DEFAULT_TERMS, Lease, LeaseTerms
from esdedup.elastic.forest.log import LogDocument, LogDocuments, read_last_number
from esdedup.elastic.forest.meta import read_meta
from esdedup.elastic.forest.status import state_document
from esdedup.elastic.forest.stored import Document, JsonDocument, json_documents, unchanged
from esdedup.elastic.requests import chunks
from esdedup.errors import EsdedupError, ForestLost, ForestMismatch, IndexNotReady, ServerUnavailable
from esdedup.forest.model import State
from esdedup.serial_thread import SerialThread

# The maximum number of documents with learned boilerplate in one request; each may take a megabyte.
_LEARNED_AT_ONCE = 8
# Shorter than the client's timeout, so that a write that the client has given up on cannot take effect after
# the client's next write.
_TIMEOUT = "30s"


@contextlib.contextmanager
def nobody_feeding(client: Elasticsearch, forest: str, *, wait_s: float) -> Iterator[Lease | None]:
    """Hold the lease of a forest, if it exists, and block edits; admit edits again on errors."""
    with translated(f"look for the forest {forest!r}", index=forest):
        exists = bool(client.indices.exists(index=forest))
    if not exists:
        yield None
        return
    lease, fence = Lease(client, forest=forest, terms=LeaseTerms(wait_s=wait_s)), Fence(client, forest=forest)
    lease.acquire()
    try:
        fence.let_edit("remove")
        yield lease
    except BaseException:
        fence.let_edit("add")
        raise
    finally:
        lease.release()


class ForestWriter(Closing):
    """Owns a forest, and writes to it while holding the lease, but never after losing the lease."""

    def __init__(self, index: ForestIndex, *, terms: LeaseTerms = DEFAULT_TERMS) -> None:
        """Take the lease, and make all earlier writes visible to searches."""
        if (shards := int(index.setting("number_of_shards"))) != index.meta.shards:
            raise ForestMismatch(
                f"the number of shards of the forest {index.name!r} was {index.meta.shards:,}, and is now "
                f"{shards:,}: give the index its shards back, or delete it and rebuild it from its articles",
                forest=index.name,
            )
        self.index = index
        self.lease = Lease(index.client, forest=index.name, terms=terms)
        self._thread = SerialThread("esdedup-writer")
        # The last write that was begun; None if an exception from a signal handler has lost its future.
        self._last: Future[None] | None = None
        # How many requests have been written.
        self._requests = 0
        # The log, if the forest has one.
        self._log: LogDocuments | None = None
        # Why the last write failed. Further writes raise this error until `forget_failure`.
        self.failure: BaseException | None = None
        # Whether the next owner would write a batch again, which may be on some shards only.
        self._has_batch = False
        self.lease.acquire()
        with self.released_on_error():
            if index.run(read_meta(index.name)) != index.meta:
                raise ForestMismatch(
                    f"the forest {index.name!r} was replaced by one with other settings while this process "
                    "waited for it: start again",
                    forest=index.name,
                )
            self._finish_batch()
            index.refresh()
            if index.meta.is_log:
                self._log = LogDocuments(index.relation, last=index.run(read_last_number(index.name)))

    @contextlib.contextmanager
    def released_on_error(self) -> Iterator[None]:
        """Release the lease if the body fails; for use before the writer's own `with` block begins."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(EsdedupError):
                self.lease.release()
            raise

    def close(self) -> None:
        """Make all writes visible to searches, and release the lease. Does nothing in a forked process."""
        if is_inherited(self.index.client):
            return
        try:
            # The future of a failed write raises the error, so `close` does not.
            self.settle()
            # A lost forest has been reported already.
            if not self.lease.is_lost:
                if self.failure is None:
                    with contextlib.suppress(ForestLost):
                        self._write_batch()
                with self.noticing_deletion():
                    self.index.refresh()
        except ServerUnavailable:
            # A release would wait for the server again.
            self.lease.give_up()
            raise
        finally:
            self.lease.release()

    @contextlib.contextmanager
    def noticing_deletion(self) -> Iterator[None]:
        """Raise `ForestMissing` if the body fails because the forest has been deleted."""
        try:
            yield
        except IndexNotReady as error:
            with translated(f"find the forest {self.index.name!r}", index=self.index.name):
                missing = self.lease.missing()
            raise missing or error from error

    def write(
        self, packed: Sequence[bytes], *, state: State | None = None, learned: Sequence[Document] = ()
    ) -> None:
        """Write the state, then the nodes and content hashes in order, then learned boilerplate.

        Repeating a write changes nothing. After an error, part of the data may have been written; on several
        shards, in no order, but completed by `forget_failure` and the next owner if there is a state.
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
        """Begin to write as `write` does, in a thread; return a future that is done when the write is.

        Args:
            log: `packed` as entries of a log. With None, a log gets a full entry for each item of `packed`.

        Raises:
            EsdedupError: An earlier write has failed.
        """
        self.flush()
        added: LogDocument | None = None
        if self._log is not None and (packed or state):
            added = self._log.add(packed, log, state)

        def documents() -> Sequence[Document | JsonDocument]:
            if self._log is not None:
                return [added.json()] if added else []
            own = [state_document(state)] if state else []
            return [*own, *json_documents(packed, self.index.relation, self.index.meta.key_layout)]

        def write() -> None:
            try:
                if packed or state:
                    self._write_batch(packed, state)
                self._put([*documents(), *learned[:_LEARNED_AT_ONCE]])
                for some in chunks(learned[_LEARNED_AT_ONCE:], _LEARNED_AT_ONCE):
                    self._put(some)
            except BaseException as error:
                self.failure = error
                raise

        self._last = None
        self._last = self._thread.begin(write)
        return self._last

    def log_since(self, count: int) -> int:
        """Return the number of the first log document that may contain one of the last `count` batches."""
        # Subtract one more, since another document is begun after a failure.
        return 1 if self._log is None else self._log.number - count - 1

    def flush(self) -> None:
        """Wait for all writes; raise the error if one has failed."""
        self.settle()
        if self.failure is not None:
            raise self.failure

    def settle(self) -> None:
        """Wait until no write is in progress, without raising the error of a failed write."""
        refuse_inherited(self.index.client)
        if self._last is None or not self._last.done():
            # The future may have been lost, so wait for an empty job.
            self._thread.begin(lambda: None).result()

    def forget_failure(self) -> None:
        """Allow writes again after a failure."""
        self.settle()
        self._finish_batch()
        self.failure = None
        if self._log is not None:
            self._log.begin_another()

    def write_own(self, document: Document) -> None:
        """Write one of the forest's own documents, such as `aging_document`."""
        self.settle()
        self._put([document])

    def delete(self, hits: Iterable[dict[str, Any]]) -> int:
        """Delete the documents of `hits`, except any written since the search; return the number deleted."""
        self.settle()
        if self.failure is None:
            self._write_batch()
        operations = [({"delete": self._place(hit["_id"]) | unchanged(hit)},) for hit in hits]
        results = self._send(f"remove nodes of the forest {self.index.name!r}", operations, self._is_removed)
        return sum(result["status"] == HTTPStatus.OK for result in results)

    def _write_batch(self, packed: Sequence[bytes] = (), state: State | None = None) -> None:
        """Record a batch, so that several shards get all of it or nothing.

        Without a state, only forget the last batch, which must be complete: written again, it would undo the
        next change.
        """
        if self.index.meta.shards > 1 and (state or self._has_batch):
            self._has_batch = True
            self._put([batch_document(packed, state, self.index.relation)])
            self._has_batch = state is not None

    def _finish_batch(self) -> None:
        """Write the last batch again, since its writer may have failed."""
        index = self.index
        batch = index.run(read_batch(index.name, index.meta))
        if batch.state is not None:
            self._put(
                [
                    state_document(batch.state),
                    *json_documents(batch.packed, index.relation, index.meta.key_layout),
                ]
            )
            self._has_batch = True
            self._write_batch()

    def _put(self, documents: Sequence[Document | JsonDocument]) -> None:
        task = f"write to the forest {self.index.name!r}"
        for some in chunks(documents, self.index.limits.bulk_documents):
            self._requests += 1
            # If a response is lost, the request is sent again. The first copy may arrive after later requests
            # (for example at a server that was paused), and is then refused because of its lower version.
            version = (self.lease.epoch << 32) + self._requests
            order = {"version": version, "version_type": "external_gte"}
            operations = [({"index": self._place(each) | order}, source) for each, source in some]
            self._send(task, operations, self._is_written, require_alias=True)

    def _place(self, document_id: str) -> dict[str, str]:
        # Learned boilerplate is on one shard, which keeps its order.
        is_routed = self.index.meta.shards > 1 and document_id.lstrip("~").startswith(FIELD)
        return {"_id": document_id} | ({"routing": FIELD} if is_routed else {})

    def _send(
        self, task: str, operations: Sequence[Operation], is_settled: Callable[[Result], bool], **options: Any
    ) -> list[Result]:
        self.lease.renew()
        return send_bulk(
            self.index.client,
            operations,
            task=task,
            is_settled=is_settled,
            index=self.index.name,
            alias=self.lease.alias,
            timeout=_TIMEOUT,
            **options,
        )

    def _is_written(self, result: Result) -> bool:
        if result["status"] == HTTPStatus.NOT_FOUND:
            raise self.lease.lost()
        return bool(result["status"] < HTTPStatus.MULTIPLE_CHOICES)

    def _is_removed(self, result: Result) -> bool:
        # A missing document has status 404 without an error, unlike a missing alias.
        if result["status"] == HTTPStatus.NOT_FOUND and "error" in result:
            raise self.lease.lost()
        # A document that has changed since it was read is kept.
        return result["status"] in {HTTPStatus.OK, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
