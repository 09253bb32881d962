"""The end of a sidecar, whatever its thread is waiting for."""

import asyncio
import threading
from typing import Any

import pytest
from esdedup.ingest.actions import ArticleAction

from esdedup.elastic.forest.store import Contents
from esdedup.errors import EsdedupError
from esdedup.sidecar import feeding
from esdedup.sidecar.feeding import Feeding
from esdedup.sidecar.intake import BatchBounds
from esdedup.sidecar.metrics import Metrics

ARTICLE = ArticleAction(action={}, name="a", text="A text.", dated_ms=None, site=None)
# Far more than the end may take here.
HANG_S = 20.0


class Held:
    """A forest that is owned."""

    is_open = True

    def open(self) -> tuple[None, int]:
        return None, 0

    def contents(self) -> Any:
        return Contents(nodes=0, pages=0, memory_bytes=0, learned_bytes=0, passages=0)

    def expiring(self) -> Any:
        return iter(())

    def close(self) -> None:
        """It is released."""


class WaitingAssigner:
    """Waits for Elasticsearch, which is away."""

    def __init__(self) -> None:
        self.has_begun, self.is_back = threading.Event(), threading.Event()

    def assign(self, *_: object, **__: object) -> Any:
        self.has_begun.set()
        self.is_back.wait()
        raise EsdedupError("no answer")


def test_it_ends_although_elasticsearch_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_DECIDE_S", "_RELEASE_S"):
        monkeypatch.setattr(feeding, name, 0.1)
    assigner = WaitingAssigner()

    async def end() -> None:
        bounds = BatchBounds(batch_articles=1, batch_wait_s=0.0, waiting_articles=10)
        held: Any = Held()
        given: Any = assigner
        async with Feeding(
            held, given, name="forest", bounds=bounds, expire_every_s=1e6, metrics=Metrics()
        ) as feeds:
            while not feeds.ownership.is_owner:
                await asyncio.sleep(0.01)
            waiting = asyncio.create_task(feeds.assign([ARTICLE]))
            await asyncio.to_thread(assigner.has_begun.wait)
        waiting.cancel()

    try:
        asyncio.run(asyncio.wait_for(end(), HANG_S))
    finally:
        assigner.is_back.set()
