"""Two sidecars that share two forests: each owns one, and takes the other one over."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, sample
from esdedup.fingerprint.profile import DEFAULT
from tests.support.forests import feed, roots
from tests.support.names import Names
from tests.support.sidecar_process import START_S, SidecarProcess, until

TTL_S = 2
PATIENCE_S = 60
# What is learned would make two forests differ from each other; that is tested elsewhere.
PROFILE = DEFAULT.with_changes(keep_boilerplate=True)
OPTIONS = ("--forest-by", "lang", "--forest-value", "zh", "--lease-ttl-s", str(TTL_S), "--keep-boilerplate")


def articles() -> Iterator[dict[str, Any]]:
    """Yield articles that belong to the two forests in turn, whatever story they tell."""
    values: list[dict[str, Any]] = [{"lang": "zh"}, {"lang": "fr"}, {"lang": "zh"}, {}]
    for at, article in enumerate(sample.articles(100)):
        yield {"_id": article.pop("id"), **article, **values[at % len(values)]}


ARTICLES = list(articles())
PIER = (
    "The old pier of Saltmere lost forty planks in Saturday's storm, and will stay closed until spring. "
    "Fishermen carried the lamps ashore before midnight; nobody was hurt, though two boats sank."
)
MILL = (
    "A grain mill above Fennick is now a school for violin makers, run by three sisters from the valley. "
    "Twelve pupils begin in autumn, and each is to leave with an instrument of his own after four years."
)


@pytest.fixture
def index(es: Elasticsearch, index_name: Names) -> str:
    name = index_name("articles")
    with Dedup(es, forest=index_name("unused")) as dedup:
        dedup.setup(name)
    return name


@pytest.fixture
def forest(es: Elasticsearch, index_name: Names) -> Iterator[str]:
    name = index_name("forest")
    yield name
    es.options(ignore_status=404).indices.delete(index=f"{name}-zh")


@pytest.fixture
def start(elasticsearch_url: str, index: str, forest: str) -> Iterator[Callable[[], SidecarProcess]]:
    with ExitStack() as started:

        def start() -> SidecarProcess:
            sidecar = SidecarProcess(elasticsearch_url, "--forest", forest, "--index", index, *OPTIONS)
            started.callback(sidecar.end)
            return sidecar

        yield start


def test_forests_are_shared_and_taken_over_and_articles_get_the_roots_of_theirs(
    es: Elasticsearch, start: Callable[[], SidecarProcess], index: str, forest: str, index_name: Names
) -> None:
    # One that is alone owns both forests, and hands one over while articles come.
    one = start()
    until(lambda: len(one.owns()) == 2, START_S, one)
    fed = _Feeder([one.url], index, ARTICLES[:50])
    fed.start()
    other = start()
    sidecars = [one, other]
    until(lambda: all(len(each.owns()) == 1 for each in sidecars), START_S, *sidecars)
    fed.may_end.set()
    fed.join(PATIENCE_S)
    assert fed.outcome == 50
    assert one.metric('esdedup_requests_refused_total{reason="not_owner"}') == 0

    # A request that both decide comes back in its order, from either.
    actions = [{"_id": "zh"}, {"lang": "zh", "text": PIER}, {}, {"lang": "zh"}, {"_id": "fr"}, {"text": PIER}]
    actions += [{"_id": "mill"}, {"lang": "zh", "text": MILL}]
    lines = [{"index": each} if at % 2 == 0 else each for at, each in enumerate(actions)]
    body = "".join(f"{json.dumps(each)}\n" for each in lines).encode()
    for each in sidecars:
        items = [item["index"] for item in each.post(f"/{index}/_bulk?refresh=true", body)["items"]]
        assert [item.get("_id") for item in items] == ["zh", None, "fr", "mill"]
        assert [item["status"] < 300 for item in items] == [True, False, True, True]
        assert each.metric('esdedup_forwarded_requests_total{status="2xx"}') > 0
    # A root is named by its text: in a list, both are one cluster.
    found = roots(es, index)
    assert found["zh"] == found["fr"]
    assert one.get(f"/v1/clusters/{found['zh']}")["total"] == 2

    # A text is looked up in the forest of its value.
    asked = {"text": MILL, "index": index}
    for each in sidecars:
        similar = each.post("/v1/similar", asked | {"forest_value": "zh"})
        assert similar["root"] == found["mill"]
        assert each.post("/v1/similar", asked)["root"] is None

    # One is killed while articles come: the other takes its forest.
    fed = _Feeder([each.url for each in sidecars], index, ARTICLES[50:])
    fed.start()
    until(lambda: len(roots(es, index)) > 55, PATIENCE_S, *sidecars)
    one.process.kill()
    until(lambda: set(other.owns()) == {forest, f"{forest}-zh"}, PATIENCE_S, other)
    fed.may_end.set()
    fed.join(PATIENCE_S)
    assert fed.outcome == 50
    found = roots(es, index)
    assert {each["_id"] for each in ARTICLES} <= found.keys()
    for of_zh in (True, False):
        own = [each for each in ARTICLES if (each.get("lang") == "zh") is of_zh]
        assert {each["_id"]: found[each["_id"]] for each in own} == _embedded(es, own, index_name)


class _Feeder(threading.Thread):
    """Feeds articles in their order, in turn through each sidecar, and again until it may end."""

    def __init__(self, urls: list[str], index: str, articles: list[dict[str, Any]]) -> None:
        super().__init__(daemon=True)
        self._urls, self._index, self._articles = urls, index, articles
        self.may_end = threading.Event()
        # How many were written the last time; or why not.
        self.outcome: object = None

    def run(self) -> None:
        try:
            with Elasticsearch(
                self._urls,
                request_timeout=PATIENCE_S,
                retry_on_timeout=True,
                retry_on_status=[429, 502, 503],
                max_retries=60,
                retry_backoff_base=0.1,
                retry_backoff_cap=1.0,
            ) as client:
                is_last = False
                while not is_last:
                    is_last = self.may_end.is_set()
                    actions = [{"_index": self._index, **each} for each in self._articles]
                    self.outcome, _ = helpers.bulk(client, actions, chunk_size=10, refresh=True)
                    # Others need the machine too.
                    time.sleep(0.2)
        except Exception as error:
            self.outcome = error


def _embedded(es: Elasticsearch, own: list[dict[str, Any]], index_name: Names) -> dict[str, str]:
    """Return the roots that articles get in a forest of their own."""
    index = index_name("embedded")
    with Dedup(es, forest=index_name("alone"), profile=PROFILE) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, own)
    return roots(es, index)
