import asyncio
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup import AsyncReader, Dedup, Profile, Reader
from esdedup.fingerprint.profile import DEFAULT
from tests.support.forests import ARTICLES, Names, Read, feed


@pytest.fixture
def profile() -> Profile:
    """What `fed` is made with; a test may name others."""
    return DEFAULT


@pytest.fixture
def fed(es: Elasticsearch, index_name: Names, profile: Profile) -> tuple[str, str]:
    """An index of the sample's articles, and its forest."""
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, profile=profile) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES)
    return index, forest


@pytest.fixture
def read(es: Elasticsearch) -> Read:
    """Calls a method of a `Reader`, made with `of`."""
    return lambda name, *args, of=None, **options: getattr(Reader(es, **of or {}), name)(*args, **options)


@pytest.fixture
def read_async(elasticsearch_url: str) -> Iterator[Read]:
    """Calls a method of an `AsyncReader`, made with `of`, and returns what it comes to."""
    # One event loop for all calls: a client keeps its connections.
    with asyncio.Runner() as runner:

        async def start() -> AsyncElasticsearch:
            return AsyncElasticsearch(elasticsearch_url)

        client = runner.run(start())

        async def call(answer: Awaitable[Any]) -> Any:
            return await answer

        yield lambda name, *args, of=None, **options: runner.run(
            call(getattr(AsyncReader(client, **of or {}), name)(*args, **options))
        )
        runner.run(client.close())
