"""Requests that the sidecar takes, refuses and passes on; and the roles in deploy/ that it needs."""

import base64
import json
import time
import urllib.request
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import urllib3
from elasticsearch import AuthorizationException, Elasticsearch, helpers

from esdedup import Dedup
from tests import sample
from tests.support.forests import nodes, roots
from tests.support.names import Names, new_names
from tests.support.secured import Secured, secured
from tests.support.sidecar_process import SidecarProcess, running, until

NDJSON, JSON = "application/x-ndjson", "application/json"
PATIENCE_S = 30
PASSING = ("--rejected", "pass", "--unknown-index", "pass")
TEXT = "The council voted on Monday to build a second ferry pier. "


class Door:
    """A sidecar, and an index that was set up."""

    def __init__(self, es: Elasticsearch, process: SidecarProcess, index: str) -> None:
        self.es = es
        self.process = process
        self.index = index
        self._pool = urllib3.PoolManager(retries=False)

    def ask(self, method: str, path: str, body: bytes = b"", type_: str = JSON, **headers: str) -> Any:
        """Return the status, and what is answered if that is JSON."""
        named = {"content-type": type_} | {name.replace("_", "-"): each for name, each in headers.items()}
        answer = self._pool.request(method, self.process.url + path, body=body, headers=named)
        try:
            return answer.status, answer.json()
        except ValueError:
            return answer.status, None

    def bulk(self, *lines: Any, **headers: str) -> Any:
        body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        return self.ask("POST", f"/{self.index}/_bulk", body, NDJSON, **headers)

    def stored(self) -> dict[str, Any]:
        """Return the articles."""
        self.es.indices.refresh(index=self.index)
        hits = self.es.search(index=self.index, size=100)["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}


@pytest.fixture(scope="module")
def process(
    es: Elasticsearch, elasticsearch_url: str, request: pytest.FixtureRequest
) -> Iterator[SidecarProcess]:
    """A sidecar with options."""
    with new_names(es) as name:
        forest = name("forest")
        with running(elasticsearch_url, *getattr(request, "param", ()), forest=forest) as process:
            yield process


@pytest.fixture
def door(es: Elasticsearch, index_name: Names, process: SidecarProcess) -> Door:
    index = index_name("articles")
    Dedup(es).setup(index)
    return Door(es, process, index)


@pytest.mark.parametrize(
    ("process", "passes"),
    [((), False), (PASSING, True)],
    indirect=["process"],
    ids=["refuse", "pass"],
)
def test_articles_without_text_are_refused_or_get_no_root(door: Door, passes: bool) -> None:
    forged = {"title": "no text", "dedup": {"root": "forged"}, "dedup.seq": 7}
    status, answer = door.bulk(
        *({"index": {"_id": "a"}}, {"text": TEXT}, {"index": {"_id": "b"}}, forged),
        *({"update": {"_id": "a"}}, {"doc": {"text": 5, "dedup": {"root": "forged"}}}),
    )
    assert status == 200
    statuses = [next(iter(item.values()))["status"] for item in answer["items"]]
    assert statuses == ([201, 201, 200] if passes else [201, 400, 400])
    assert door.ask("PUT", f"/{door.index}/_doc/c", json.dumps(forged).encode())[0] == statuses[1]
    stored = door.stored()
    if passes:
        assert stored["b"] == stored["c"] == {"title": "no text"}
        assert stored["a"]["text"] == 5
    else:
        assert set(stored) == {"a"}
    assert stored["a"]["dedup"]["root"] != "forged"
    # The server reads this, and nobody here.
    unread = b'{"title":"no text"/**/,"dedup":{"root":"forged"}}'
    assert door.ask("PUT", f"/{door.index}/_doc/d", unread)[0] == 400
    assert "d" not in door.stored()
    for name in "abcd":
        assert f"an article gets no root: {name}: " in door.process.log
    assert door.process.metric('esdedup_articles_total{outcome="rejected"}') == 4


@pytest.mark.parametrize(
    ("process", "status", "warnings"),
    [((), 201, 1), (PASSING, 201, 0), (("--unknown-index", "refuse"), 409, 0)],
    indirect=["process"],
    ids=["warn", "pass", "refuse"],
)
def test_writes_to_an_index_without_set_up_are_reported(
    door: Door, index_name: Names, status: int, warnings: int
) -> None:
    missing, lines = index_name("missing"), [{"text": TEXT}, {"index": {"_id": "b"}}, {"text": TEXT}]
    for path in (f"/{missing}/_doc/a", f"/{missing}/_doc/b"):
        assert door.ask("PUT", path, json.dumps({"text": TEXT}).encode())[0] == status
    _, answer = door.bulk({"index": {"_index": missing, "_id": "c"}}, *lines)
    assert [each["index"]["status"] for each in answer["items"]] == [status, 201]
    assert door.stored()["b"]["dedup"]["root"]
    assert door.process.log.count(f"articles in {missing!r} get no roots") == warnings
    outcome = "rejected" if status == 409 else "not_set_up"
    assert door.process.metric(f'esdedup_articles_total{{outcome="{outcome}"}}') == 3


def test_what_elasticsearch_takes_is_taken(door: Door) -> None:
    body = b"".join(
        json.dumps(line).encode() + b"\n"
        for line in ({"index": {"_id": "a"}}, {"text": [TEXT, TEXT.upper()], "title": "half a \ud83d"})
    )
    status, answer = door.ask(
        "POST", f"/{door.index}/_bulk", zlib.compress(body), NDJSON, content_encoding="deflate"
    )
    assert (status, answer["errors"]) == (200, False)
    assert door.bulk({"index": {"_id": "b"}}, {"text": f"{TEXT}\n{TEXT.upper()}"})[0] == 200
    stored = door.stored()
    assert stored["a"]["text"] == [TEXT, TEXT.upper()]
    assert stored["a"]["dedup"]["root"] == stored["b"]["dedup"]["root"]


def test_many_articles_without_a_text_keep_nobody_waiting(door: Door) -> None:
    """Logging and answering them once blocked all other requests for seconds."""
    body = b'{"index":{}}\n{}\n' * 60_000
    waits_s = []
    with ThreadPoolExecutor() as threads:
        sent = threads.submit(door.ask, "POST", f"/{door.index}/_bulk", body, NDJSON)
        while not sent.done():
            began_s = time.monotonic()
            assert door.ask("GET", "/healthz")[0] == 200
            waits_s.append(time.monotonic() - began_s)
            time.sleep(0.01)
    assert sent.result()[0] == 200
    assert "59000 more articles of this request get no root" in door.process.log
    assert max(waits_s) < sum(waits_s) / 2


def test_an_index_of_tomorrow_fails_no_others(door: Door, index_name: Names) -> None:
    tomorrow = index_name("tomorrow")
    door.es.indices.put_index_template(
        name=f"{tomorrow}-of", index_patterns=[tomorrow], template={"settings": {"number_of_replicas": 0}}
    )
    try:
        lines = [{"index": {"_id": "a"}}, {"text": TEXT}, {"index": {"_id": "b", "_index": tomorrow}}, {}]
        assert [each["index"]["status"] for each in door.bulk(*lines)[1]["items"]] == [201, 201]
        assert door.stored()["a"]["dedup"]["root"]
    finally:
        door.es.indices.delete_index_template(name=f"{tomorrow}-of")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/{index}/typed/1"),
        ("POST", "/{index}/typed"),
        ("POST", "/{index}/typed/1/_update"),
        ("PUT", "/{index}//_doc"),
        ("POST", "/{index}/_create"),
        ("PUT", "/{index}/_update/1"),
        ("POST", "/{index}/_update_by_query"),
        ("POST", "/{index}*/_update_by_query"),
        ("POST", "/missing,{index}/_update_by_query?ignore_unavailable=true"),
        ("POST", "/_reindex"),
        # Whichever index their paths name: their lines may name another.
        *(("POST", f"{path}/typed/_bulk") for path in ("/{index}", "/elsewhere", "/")),
    ],
)
def test_unread_requests_reach_no_index_with_set_up(door: Door, method: str, path: str) -> None:
    def ask(index: str) -> Any:
        body = json.dumps({"source": {"index": "none"}, "dest": {"index": index}, "text": TEXT}).encode()
        if path.endswith("_bulk"):
            body = b'{"index":{"_index":"%b"}}\n%b\n' % (index.encode(), body)
        return door.ask(method, path.format(index=index), body, NDJSON if path.endswith("_bulk") else JSON)

    status, answer = ask(door.index)
    assert (status, answer["error"]["type"]) == (400, "esdedup_not_understood")
    # Elsewhere the server answers.
    _, answer = ask("elsewhere")
    assert "esdedup" not in json.dumps(answer)
    assert door.stored() == {}


@pytest.mark.parametrize("is_closed", [False, True])
def test_it_is_ready_only_while_articles_can_be_taken(door: Door, is_closed: bool) -> None:
    status, found = door.ask("GET", "/readyz")
    assert status == 200
    forest, blocked, indices = found["forest"], {"index.blocks.write": True}, door.es.indices
    if is_closed:
        indices.close(index=forest)
    else:
        indices.put_settings(index=forest, settings=blocked)
    try:
        assert door.bulk({"index": {"_id": "a"}}, {"text": TEXT})[0] == 503
        # A conflict would say that there is such a document.
        assert door.ask("PUT", f"/{door.index}/_create/a", json.dumps({"text": TEXT}).encode())[0] == 503
        until(lambda: door.ask("GET", "/readyz")[0] == 503, PATIENCE_S, door.process)
        assert ("closed" if is_closed else "block") in door.ask("GET", "/readyz")[1]["detail"]
        assert door.ask("GET", "/healthz")[0] == 200
    finally:
        if is_closed:
            indices.open(index=forest)
        else:
            indices.put_settings(index=forest, settings=dict.fromkeys(blocked))
    until(lambda: door.ask("GET", "/readyz")[0] == 200, PATIENCE_S, door.process)
    assert door.bulk({"index": {"_id": "a"}}, {"text": TEXT})[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"dest":{"index":["INDEX"]}}',
        b'{"dest":{"index":"INDEX,x"}}',
        b'{"dest":{"index":"INDEX"}} x',
        b'{"dest":{"index":"x"},"script":{"source":"ctx._index=1"}}',
        b'\xef\xbb\xbf{"dest":{"index":"INDEX"}}',
        b"",
    ],
)
def test_reindexing_is_refused_where_its_target_is_unknown(door: Door, body: bytes) -> None:
    body = body.replace(b"INDEX", door.index.encode())
    status, answer = door.ask("POST", "/_reindex", body)
    assert (status, answer["error"]["type"]) == (400, "esdedup_not_understood")
    status, answer = door.ask("POST", "/_reindex", zlib.compress(b"{}"), content_encoding="deflate")
    assert (status, answer["error"]["type"]) == (400, "esdedup_not_understood")


DEPLOY = Path(__file__).parents[2] / "deploy"
PATIENCE_S_ROLES = 60
PASSWORD = "that-nobody-should-read"
TITLE = "An article without a text"
READER = {"Authorization": f"Basic {base64.b64encode(f'reader:{PASSWORD}'.encode()).decode()}"}
TEXTS = {article.pop("id"): article for article in sample.articles(40)}


def role(name: str, *, index: str, forest: str) -> Any:
    """Return a role, with other names of the index and the forest."""
    text = (DEPLOY / f"role-{name}.json").read_text()
    return json.loads(text.replace("esdedup-forest", forest).replace("news", index))


@pytest.fixture
def index(index_name: Names) -> str:
    return index_name("articles")


@pytest.fixture
def forest(index_name: Names) -> str:
    return index_name("forest")


@pytest.fixture
def security(es: Elasticsearch, elasticsearch_url: str, index: str, forest: str) -> Iterator[Secured]:
    """A node with security, and an index that is set up."""
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
    names = ("sidecar", "feeder", "reader")
    with secured(elasticsearch_url, {name: role(name, index=index, forest=forest) for name in names}) as node:
        yield node


def test_the_roles_are_sufficient_and_minimal(
    security: Secured, es: Elasticsearch, index: str, forest: str, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text(PASSWORD)
    own = ("--user", "sidecar", "--password-file", str(tmp_path / "password"))
    options = (*own, "--pages", "--index", index, "--log-level", "debug")
    with running(security.url, *options, forest=forest) as sidecar:
        feeder = Elasticsearch(sidecar.url, basic_auth=("feeder", PASSWORD), request_timeout=PATIENCE_S_ROLES)
        actions = [{"_index": index, "_id": id_, "_source": each} for id_, each in TEXTS.items()]
        actions.append({"_index": index, "_id": "refused", "_source": {"title": TITLE}})
        assert helpers.bulk(feeder, actions, raise_on_error=False)[0] == len(TEXTS)
        es.indices.refresh(index=index)
        assert sidecar.get("/pages/api/v1/list")["total_articles"] == len(TEXTS)
        asked = json.dumps({"text": next(iter(TEXTS.values()))["text"]}).encode()
        headers = {"Content-Type": "application/json", **READER}
        request = urllib.request.Request(f"{sidecar.url}/api/v1/similar?index={index}", asked, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S_ROLES) as answer:
            assert json.load(answer)["total"] >= 1

        # Nobody does what he may not: neither write as a reader, nor to what was not set up.
        before = nodes(es, forest)
        for user, where in (("reader", index), ("feeder", "elsewhere")):
            other = Elasticsearch(sidecar.url, basic_auth=(user, PASSWORD))
            with pytest.raises(AuthorizationException):
                other.index(index=where, document={"text": "A text that nobody else has ever written."})
        assert nodes(es, forest) == before
    assert len(roots(es, index)) == len(TEXTS)
    written = {TITLE, PASSWORD, *(text for each in TEXTS.values() for text in (each["title"], each["text"]))}
    assert not [text for text in written if text in sidecar.log]
    assert security.refused["sidecar"] == set()

    for user in security.roles:
        granting = [list(security.granting(user, *each)) for each in security.done[user]]
        # Each one has allowed something that no other allows.
        assert {alone[0] for alone in granting if len(alone) == 1} == {*security.privileges(user)}
