"""`AsyncDedup`: `Dedup` for programs with an event loop."""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from elasticsearch import AsyncElasticsearch, Elasticsearch
from esdedup.ingest.actions import BulkAction
from esdedup.ingest.batches import async_batches, check_flush_interval
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.enricher import OnAssigned, OnRejected
from esdedup.ingest.json_values import size_of

from esdedup.arguments import check_type
from esdedup.elastic.client import blocking_twin
from esdedup.errors import EsdedupError
from esdedup.reading.reader import AsyncReader

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")

# How many batches may wait for a sidecar concurrently. Without a sidecar, one batch is assigned at a time.
_THREADS = 8


def _in_thread(
    method: Callable[Concatenate[Dedup, _Params], _Result],
) -> Callable[Concatenate["AsyncDedup", _Params], Coroutine[Any, Any, _Result]]:
    """Turn a method of `Dedup` into a coroutine that runs it in a thread."""

    @functools.wraps(method)
    async def awaited(self: "AsyncDedup", /, *args: _Params.args, **options: _Params.kwargs) -> _Result:
        # Not `method` itself, which a subclass of `Dedup` may override.
        return await self._run(getattr(self._dedup, method.__name__), *args, **options)

    return awaited


def _as_dedup(
    init: Callable[Concatenate[Dedup, Elasticsearch, _Params], None],
) -> Callable[Concatenate["AsyncDedup", AsyncElasticsearch, _Params], None]:
    """Turn the constructor of `Dedup` into a constructor of `AsyncDedup` with an asynchronous client."""

    def as_dedup(
        self: "AsyncDedup", client: AsyncElasticsearch, *args: _Params.args, **settings: _Params.kwargs
    ) -> None:
        """Create a feeder with an asynchronous client, which the caller must close; see `Dedup`."""
        check_type("client", client, AsyncElasticsearch, taker="AsyncDedup")
        self._blocking = blocking_twin(client)
        self._dedup = Dedup.__new__(Dedup)
        init(self._dedup, self._blocking, *args, **settings)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="esdedup-dedup")
        self.reader = AsyncReader.like(self._dedup.reader, client)

    signature = inspect.signature(init)
    client = signature.parameters["client"].replace(annotation=AsyncElasticsearch)
    as_dedup.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[client if each.name == "client" else each for each in signature.parameters.values()]
    )
    return as_dedup  # type: ignore[return-value] # `client` may also be passed by keyword


class AsyncDedup(contextlib.AbstractAsyncContextManager["AsyncDedup"]):
    """Does what `Dedup` does, without blocking the event loop.

    Threads read and write the forest with a separate, blocking client, which uses the servers and
    credentials of the given client. The caller must close this object, or use it in ``async with``.

    Attributes:
        reader: An `AsyncReader` for the same Elasticsearch, which never takes the lease.
    """

    reader: AsyncReader
    _blocking: Elasticsearch | Dedup
    _dedup: Dedup
    _threads: ThreadPoolExecutor

    __init__ = _as_dedup(Dedup.__init__)

    setup = _in_thread(Dedup.setup)
    setup_template = _in_thread(Dedup.setup_template)
    require_ready = _in_thread(Dedup.require_ready)
    learn = _in_thread(Dedup.learn)
    expire = _in_thread(Dedup.expire)

    async def enrich(
        self,
        actions: Iterable[BulkAction] | AsyncIterable[BulkAction],
        *,
        backfill: bool = False,
        on_rejected: OnRejected | None = None,
        on_assigned: OnAssigned | None = None,
        flush_interval_s: float | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield bulk actions with the dedup object added to their articles, as `Dedup.enrich` does.

        Errors are raised when the first action is awaited. The event loop iterates over `actions` (in a
        separate task with `flush_interval_s`) and calls the callbacks. The result can be passed to
        ``elasticsearch.helpers.async_bulk``.
        """
        check_flush_interval(flush_interval_s)
        enricher = self._dedup._enricher(backfill=backfill, on_rejected=on_rejected, on_assigned=on_assigned)
        await self._run(enricher.check_process)
        batches = async_batches(
            actions, most=enricher.batch_size, size_of=size_of, flush_interval_s=flush_interval_s
        )

        async def enriched() -> Iterator[dict[str, Any]] | None:
            """Enrich the next batch; return its actions, or None at the end."""
            batch = await anext(batches, None)
            if batch is None:
                return None
            return enricher.results(await self._run(enricher.enrich_batch, batch))

        async with contextlib.aclosing(batches):
            following = asyncio.create_task(enriched(), name="esdedup-ahead")
            try:
                while (ready := await following) is not None:
                    # The next batch is enriched while the caller uses the actions of this batch.
                    following = asyncio.create_task(enriched(), name="esdedup-ahead")
                    for action in ready:
                        yield action
            finally:
                following.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await following
        await self._run(enricher.end)

    async def close(self) -> None:
        """Release the forest, or close the connections to a sidecar; this object cannot be used again."""
        try:
            await self._run(self._dedup.close)
        finally:
            self._threads.shutdown(wait=False)
            self._blocking.close()

    async def _run(
        self, job: Callable[_Params, _Result], *args: _Params.args, **options: _Params.kwargs
    ) -> _Result:
        return await asyncio.wrap_future(self._threads.submit(job, *args, **options))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except EsdedupError:
            # Do not hide an error from the body of the `async with` statement.
            if error is None:
                raise
