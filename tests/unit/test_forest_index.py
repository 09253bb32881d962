"""A forest's index, with a client that returns given responses."""

from typing import Any, Self, cast

from elasticsearch import Elasticsearch

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.meta import Meta
from esdedup.fingerprint.profile import CLASSIC


class Refreshing:
    """A client whose refreshes have given numbers of successful and failed shards."""

    def __init__(self, *shards: tuple[int, int]) -> None:
        self.shards = list(shards)
        self.indices = self

    def options(self, **options: Any) -> Self:
        # A server waits a minute for a primary.
        assert options["request_timeout"] < 60
        return self

    def refresh(self, *, index: str) -> dict[str, Any]:
        successful, failed = self.shards.pop(0)
        return {"_shards": {"total": 2, "successful": successful, "failed": failed}}


def test_a_refresh_that_reached_no_primary_is_repeated() -> None:
    client = Refreshing((0, 0), (1, 1), (1, 0))
    meta = Meta.of(CLASSIC, lookup="memory")
    ForestIndex(cast(Elasticsearch, client), name="forest", meta=meta).refresh()
    assert client.shards == []
