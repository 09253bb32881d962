"""Programs that write to Elasticsearch by themselves, with roots from a sidecar."""

import asyncio
import gzip
import json
import urllib.request
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch, helpers

from esdedup import VERIFIED, AsyncDedup, Dedup, Fields, Maintenance, SidecarError
from tests.support.forests import feed, roots
from tests.support.names import Names, new_names
from tests.support.pages import pages
from tests.support.sidecar_process import SidecarProcess, running

PAGES = [
    {"_id": page["id"], "text": page["text"], "source": f"paper {at % 3}"}
    for at, page in enumerate(pages(300))
]
THREADS = 4
ROOT = Path(__file__).parents[2]
LOGSTASH_FILTER = "filter_path=errors,items.*.error,items.*.status"


@pytest.fixture(scope="module")
def forest(es: Elasticsearch) -> Iterator[str]:
    with new_names(es) as name:
        yield name("forest")


@pytest.fixture(scope="module")
def sidecar(elasticsearch_url: str, forest: str) -> Iterator[SidecarProcess]:
    with running(elasticsearch_url, forest=forest) as process:
        yield process


def test_articles_get_the_roots_that_they_get_without_a_sidecar(
    es: Elasticsearch, sidecar: SidecarProcess, forest: str, index_name: Names
) -> None:
    """The first ones that this forest gets."""
    alone, index = index_name("alone"), index_name("articles")
    with Dedup(es, forest=index_name("other"), batch_size=70) as dedup:
        dedup.setup(alone)
        feed(es, dedup, alone, PAGES)
    with Dedup(es, forest=forest, sidecar=sidecar.url, batch_size=70) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, PAGES)
    expected, found = ({**_dedups(es, name)} for name in (alone, index))
    # What is learned counts: otherwise pages of one site would be alike.
    assert len({each["root"] for each in found.values()}) > len(PAGES) / 3
    assert found == expected
    # Those who send texts are told the same.
    answer = sidecar.enrich(*PAGES[::7])
    assert [each["dedup"]["root"] for each in answer] == [found[each["_id"]]["root"] for each in PAGES[::7]]
    assert list(Maintenance(es, forest=forest).verify([index])) == []
    new_roots = sidecar.metric('esdedup_articles_total{outcome="new_root"}')
    assert new_roots == len({each["root"] for each in found.values()})
    # Another profile would give other fingerprints.
    other = Dedup(es, forest=forest, sidecar=sidecar.url, profile=VERIFIED.with_changes(max_text_length=999))
    with other, pytest.raises(SidecarError, match="409 the profile of this sidecar is"):
        list(other.enrich(PAGES[:1]))


def test_threads_learn_together_while_others_send_texts(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with (
        running(elasticsearch_url, forest=forest) as sidecar,
        Dedup(es, forest=forest, sidecar=sidecar.url, batch_size=25) as dedup,
    ):
        dedup.setup(index)

        def work(number: int) -> None:
            mine = [{"_index": index, **page} for page in PAGES[number::THREADS]]
            if number:
                helpers.bulk(es, dedup.enrich(mine))
            else:
                with Elasticsearch(sidecar.url) as client:
                    helpers.bulk(client, mine, chunk_size=25)

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(work, range(THREADS)))
    found = _dedups(es, index)
    assert list(Maintenance(es, forest=forest).verify([index])) == []
    # All were decided once, and learned from in the order of their numbers.
    assert sorted(each["seq"] for each in found.values()) == list(range(1, len(PAGES) + 1))
    order = sorted(PAGES, key=lambda page: found[page["_id"]]["seq"])
    replayed = index_name("replayed")
    with Dedup(es, forest=index_name("other")) as dedup:
        dedup.setup(replayed)
        feed(es, dedup, replayed, order)
    assert roots(es, replayed) == {id_: each["root"] for id_, each in found.items()}


def test_an_event_loop_feeds_what_comes_slowly(
    es: Elasticsearch, elasticsearch_url: str, sidecar: SidecarProcess, forest: str, index_name: Names
) -> None:
    """Each article is answered before the next one comes."""
    index, few = index_name("articles"), PAGES[:5]
    answered: asyncio.Queue[str] = asyncio.Queue()

    async def trickle() -> AsyncIterator[dict[str, Any]]:
        for page in few:
            yield {"_index": index, **page}
            assert await asyncio.wait_for(answered.get(), 20) == page["_id"]

    async def fed() -> None:
        async with (
            AsyncElasticsearch(elasticsearch_url) as client,
            AsyncDedup(client, forest=forest, sidecar=sidecar.url) as dedup,
        ):
            await dedup.setup(index)
            async for action in dedup.enrich(trickle(), flush_interval_s=0.05):
                await client.index(index=index, id=action["_id"], document=action["_source"])
                answered.put_nowait(action["_id"])

    asyncio.run(fed())
    assert _dedups(es, index).keys() == {page["_id"] for page in few}


def _dedups(es: Elasticsearch, index: str) -> dict[str, dict[str, Any]]:
    es.indices.refresh(index=index)
    when = {"seen", "published"}
    return {
        hit["_id"]: {name: value for name, value in hit["_source"]["dedup"].items() if name not in when}
        for hit in helpers.scan(es, index=index)
    }


def test_what_the_output_of_logstash_sends(
    es: Elasticsearch, sidecar: SidecarProcess, forest: str, index_name: Names
) -> None:
    index = index_name("articles")
    with Dedup(es, forest=forest, fields=Fields(text="message", time="@timestamp")) as dedup:
        dedup.setup(index)
    event = {"@timestamp": "2026-11-22T08:00:00.000Z", "@version": "1", "tags": ["feed"]}
    lines: list[Any] = []
    for text in (PAGES[0]["text"], f"{PAGES[0]['text']}!", None):
        # What an event does not have is null.
        lines += [{"index": {"_id": None, "_index": index, "routing": None}}, {**event, "message": text}]

    def send(lines: list[Any], content_type: str) -> Any:
        body = gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode())
        headers = {"Content-Type": content_type, "Content-Encoding": "gzip"}
        request = urllib.request.Request(f"{sidecar.url}/_bulk?{LOGSTASH_FILTER}", body, headers)
        with urllib.request.urlopen(request) as answered:
            return json.load(answered)

    # Elasticsearch takes the last one, of older versions, no more.
    for content_type in ("application/json", "application/x-ndjson", "text/plain"):
        answer = send(lines, content_type)
        assert answer["errors"] is True
        assert [each["index"]["status"] for each in answer["items"]] == [201, 201, 400]
        assert answer["items"][2]["index"]["error"]["type"] == "esdedup_article_rejected"
    # What was wanted is left out where nothing is refused.
    assert send(lines[:2], "application/json") == {"errors": False, "items": [{"index": {"status": 201}}]}
    es.indices.refresh(index=index)
    found = roots(es, index)
    assert (len(found), len({*found.values()})) == (7, 1)
