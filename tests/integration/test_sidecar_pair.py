"""Two sidecars before one node: one owns the forest, the other stands by and takes over."""

import json
import os
import signal
import threading
import urllib.error
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, sample
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import DEFAULT
from esdedup.neighbours.relation import relation_of
from tests.support.forests import feed, nodes, roots
from tests.support.names import Names
from tests.support.sidecar_process import START_S, SidecarProcess, until

TTL_S = 3
# What is learned depends on the order of pages as well, which nothing tells afterwards.
PROFILE = DEFAULT.with_changes(keep_boilerplate=True)
# For what takes a second, or the time of the lease, on a machine that has other things to do.
PATIENCE_S = 10 * TTL_S
TEXTS = {article.pop("id"): article for article in sample.articles(600)}
FEEDERS = 3
# Pauses grow from the first to the second: together longer than it takes the standby to take over.
MOST_RETRIES, FIRST_PAUSE_S, LONGEST_PAUSE_S = 40, 0.1, 1.0


class Pair:
    """Two sidecars of one forest, and an empty index of articles."""

    def __init__(self, url: str, *, index: str, forest: str) -> None:
        self.index, self.forest = index, forest
        self.all = [
            SidecarProcess(
                url, "--forest", forest, "--index", index, "--lease-ttl-s", str(TTL_S), "--keep-boilerplate"
            )
            for _ in range(2)
        ]
        until(lambda: any(each.is_ready() for each in self.all), START_S, *self.all)
        self.owner, self.standby = sorted(self.all, key=SidecarProcess.is_ready, reverse=True)
        until(lambda: "does not own the forest" in self.standby.log, START_S, self.standby)

    def take_over(self) -> None:
        """Wait until the standby owns the forest."""
        until(self.standby.is_ready, PATIENCE_S, self.standby)
        self.owner, self.standby = self.standby, self.owner

    def end(self) -> None:
        for each in self.all:
            each.process.send_signal(signal.SIGCONT)
            each.end()


@pytest.fixture
def pair(es: Elasticsearch, elasticsearch_url: str, index_name: Names) -> Iterator[Pair]:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
    sidecars = Pair(elasticsearch_url, index=index, forest=forest)
    try:
        yield sidecars
    finally:
        sidecars.end()


def test_a_standby_refuses_articles_and_answers_all_else(pair: Pair, es: Elasticsearch) -> None:
    one, two, *_ = TEXTS.values()
    pair.owner.post(f"/{pair.index}/_doc/a?refresh=true", one)
    root = es.get(index=pair.index, id="a")["_source"]["dedup"]["root"]
    for path, body in (
        (f"/{pair.index}/_doc/b", two),
        (f"/{pair.index}/_bulk", b'{"index":{}}\n%b\n' % json.dumps(two).encode()),
        ("/v1/enrich", {"articles": [two]}),
        ("/v1/enrich/one", two),
    ):
        with pytest.raises(urllib.error.HTTPError) as raised:
            pair.standby.post(path, body)
        refused = raised.value
        assert (refused.code, refused.headers["Retry-After"]) == (503, "1")
        said = json.load(refused)
        detail = said["detail"] if path.startswith("/v1/") else said["error"]["reason"]
        assert f"process {pair.owner.process.pid} on {os.uname().nodename} has owned it since" in detail
    assert not pair.standby.is_ready()
    assert pair.standby.get("/healthz") == {"status": "alive"}
    assert [each["id"] for each in pair.standby.get(f"/v1/clusters/{root}")["articles"]] == ["a"]
    similar = pair.standby.post("/v1/similar", {"text": one["text"]})
    assert (similar["root"], similar["total"]) == (root, 1)
    with Elasticsearch(pair.standby.url) as client:
        assert client.get(index=pair.index, id="a")["_source"]["dedup"]["root"] == root
        # What brings no text is for Elasticsearch alone.
        client.update(index=pair.index, id="a", doc={"title": "another"})
        client.delete(index=pair.index, id="a")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_a_standby_takes_over_and_no_article_is_lost_or_doubled(
    pair: Pair, es: Elasticsearch, how: signal.Signals, index_name: Names
) -> None:
    """An owner hangs and comes back as the standby; then the other ends or is killed. Clients know both."""
    feeders = [_Feeder(pair, list(TEXTS.items())[start::FEEDERS]) for start in range(FEEDERS)]
    for feeder in feeders:
        feeder.start()
    _await_fed(es, pair, len(TEXTS) // 6)
    pair.owner.process.send_signal(signal.SIGSTOP)
    pair.take_over()
    pair.standby.process.send_signal(signal.SIGCONT)
    _await_fed(es, pair, len(TEXTS) // 2)
    pair.owner.process.send_signal(how)
    pair.take_over()
    assert len(roots(es, pair.index)) < len(TEXTS)
    for feeder in feeders:
        feeder.join(PATIENCE_S)
        assert feeder.outcome == len(feeder.articles)
    found = roots(es, pair.index)
    assert found.keys() == TEXTS.keys()
    assert es.count(index=pair.index)["count"] == len(TEXTS)
    assert found == _replayed(es, pair, index_name)


def _await_fed(es: Elasticsearch, pair: Pair, articles: int) -> None:
    until(lambda: len(roots(es, pair.index)) >= articles, PATIENCE_S, *pair.all)


class _Feeder(threading.Thread):
    """Feeds articles with the official client, which repeats what was refused, and what was not answered."""

    def __init__(self, pair: Pair, articles: list[tuple[str, dict[str, Any]]]) -> None:
        super().__init__(daemon=True)
        self.articles = articles
        # How many were written; or why not.
        self.outcome: object = None
        self._urls, self._index = [each.url for each in pair.all], pair.index

    def run(self) -> None:
        actions = [{"_index": self._index, "_id": id_, **article} for id_, article in self.articles]
        # A process that hangs is given up after the timeout.
        with Elasticsearch(
            self._urls,
            request_timeout=TTL_S,
            retry_on_timeout=True,
            retry_on_status=[429, 502, 503],
            max_retries=MOST_RETRIES,
            retry_backoff_base=FIRST_PAUSE_S,
            retry_backoff_cap=LONGEST_PAUSE_S,
        ) as client:
            try:
                self.outcome, _ = helpers.bulk(client, actions, chunk_size=10)
            except Exception as error:
                self.outcome = error


def _replayed(es: Elasticsearch, pair: Pair, index_name: Names) -> dict[str, str]:
    """Return the roots that the articles get if they come one after the other, as they came here.

    What came twice has a new number in its article; its node keeps that of the first time. Of several
    articles with one node, one that has its id by itself made it: the others came later, with the same page.
    """
    first = {id_: node.seq for id_, node in nodes(es, pair.forest).items()}
    hits = helpers.scan(es, index=pair.index, _source=["dedup.fingerprint", "dedup.seq"])
    dedups = {hit["_id"]: hit["_source"]["dedup"] for hit in hits}
    own = dict(zip(TEXTS, _own_nodes([article["text"] for article in TEXTS.values()]), strict=True))

    def place(id_: str) -> tuple[int, bool]:
        node = dedups[id_].get("fingerprint")
        return first.get(node, dedups[id_]["seq"]), own[id_] != node

    order = sorted(dedups, key=place)
    index = index_name("replayed")
    with Dedup(es, forest=index_name("other"), profile=PROFILE) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [{"_id": id_, **TEXTS[id_]} for id_ in order])
    return roots(es, index)


def _own_nodes(texts: list[str]) -> Sequence[str]:
    """Return the ids of the nodes that texts make if their pages are new."""
    return relation_of(PROFILE).ids(Fingerprinter(PROFILE).fingerprint(texts).signatures)
