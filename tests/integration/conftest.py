import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup import AsyncReader, Dedup, Profile, Reader
from esdedup.elastic.forest.meta import Lookup
from esdedup.fingerprint.profile import DEFAULT
from tests.support import sidecar as sidecars
from tests.support.forests import ARTICLES, Read, feed_sample, roots
from tests.support.names import Names, new_names

Sampled = Callable[[Profile, Lookup], tuple[str, str]]


@pytest.fixture
def profile() -> Profile:
    """The profile of `fed`; tests may override it."""
    return DEFAULT


@pytest.fixture
def lookup() -> Lookup:
    """The look-up of the forest of `fed`; tests may override it."""
    return "memory"


@pytest.fixture(scope="session")
def sampled(es: Elasticsearch, unchanged: tuple[str, str]) -> Iterator[Sampled]:
    """Creates the read-only originals that `fed` clones, once for each profile and look-up."""
    with new_names(es) as name:

        @functools.cache
        def made(profile: Profile, lookup: Lookup) -> tuple[str, str]:
            if (profile, lookup) == (DEFAULT, "memory"):
                return unchanged
            index, forest = feed_sample(es, name, profile, lookup=lookup)
            es.indices.add_block(index=f"{index},{forest}", block="write")
            return index, forest

        yield made


@pytest.fixture
def fed(
    es: Elasticsearch, index_name: Names, sampled: Sampled, profile: Profile, lookup: Lookup
) -> tuple[str, str]:
    """Clones of the sample's index and forest. Cloning is ten times as fast as feeding."""
    copies = index, forest = index_name("articles"), index_name("forest")
    for original, copy in zip(sampled(profile, lookup), copies, strict=True):
        es.indices.clone(index=original, target=copy, settings={"index.blocks.write": None})
    meta = es.indices.get_mapping(index=index)[index]["mappings"]["_meta"]["esdedup"]
    es.indices.put_mapping(index=index, meta={"esdedup": meta | {"forest": forest}})
    return index, forest


@pytest.fixture
def read(es: Elasticsearch) -> Read:
    """Calls a method of a `Reader` that is created with the options `of`."""
    return lambda name, *args, of=None, **options: getattr(Reader(es, **of or {}), name)(*args, **options)


@pytest.fixture
def read_async(elasticsearch_url: str) -> Iterator[Read]:
    """Calls a method of an `AsyncReader` that is created with the options `of`, and returns its result."""
    # All calls share one event loop, because the client's connections belong to it.
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


@pytest.fixture(scope="session")
def sidecar(es: Elasticsearch, elasticsearch_url: str) -> Iterator[str]:
    """The address of a sidecar with its own forest."""
    with new_names(es) as name, sidecars.running(elasticsearch_url, name("forest")) as url:
        yield url


@pytest.fixture
def feeding(
    es: Elasticsearch, index_name: Names, sidecar: str, unchanged: tuple[str, str]
) -> sidecars.Feeding:
    """An empty index that is set up, and the articles to feed into it."""
    index = index_name("feeding")
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index)
    return sidecars.Feeding(sidecar=sidecar, index=index, articles=ARTICLES, roots=roots(es, unchanged[0]))
