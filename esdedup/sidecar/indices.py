"""`Indices`: which indices were set up, so that what is written to them is enriched."""

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from esdedup.elastic.article_indices import WritableIndex
from esdedup.errors import IndexNotReady

# How long an answer counts: so long after `setup`, the articles of an index are enriched.
_FRESH_S = 2.0
# Requests to Elasticsearch at once, and names that are remembered: clients choose them.
_AT_ONCE = 4
_MOST_NAMES = 10_000

Found = WritableIndex | IndexNotReady | None
"""An index that was set up; why articles cannot be written to one; None for one that was not set up."""


@dataclasses.dataclass(frozen=True)
class _Known:
    found: Found
    since_s: float


class Indices:
    """Knows what is written to which index for a short time, so that not every request asks."""

    def __init__(self, find: Callable[[str], WritableIndex | None]) -> None:
        """Know nothing yet.

        Args:
            find: As `Articles.find`. Called in threads.
        """
        self._find = find
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="esdedup-indices")
        self._known: dict[str, _Known] = {}
        self._asked: dict[str, asyncio.Future[Found]] = {}

    async def __aenter__(self) -> Self:
        """Begin."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the threads, without waiting for an Elasticsearch that does not answer."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def find(self, names: Iterable[str]) -> dict[str, Found]:
        """Return what is known of each index.

        Raises:
            ServerError: Elasticsearch does not answer, or refuses.
        """
        wanted = list(dict.fromkeys(names))
        return dict(zip(wanted, await asyncio.gather(*map(self._find_one, wanted)), strict=True))

    async def _find_one(self, name: str) -> Found:
        known = self._known.get(name)
        if known is not None and time.monotonic() < known.since_s + _FRESH_S:
            return known.found
        if name not in self._asked:
            # Requests that come meanwhile wait for the same answer.
            loop = asyncio.get_running_loop()
            asked = self._asked[name] = asyncio.ensure_future(
                loop.run_in_executor(self._threads, self._ask, name)
            )
            asked.add_done_callback(lambda _: self._asked.pop(name, None))
        found = await asyncio.shield(self._asked[name])
        if len(self._known) >= _MOST_NAMES:
            self._known.clear()
        self._known[name] = _Known(found, time.monotonic())
        return found

    def _ask(self, name: str) -> Found:
        try:
            return self._find(name)
        except IndexNotReady as error:
            return error
