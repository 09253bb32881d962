"""Requests that the sidecar accepts, refuses or passes on, and the roles in deploy/ that it needs."""

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


class Client:
    """A sidecar, and an index that was set up."""

    def __init__(self, es: Elasticsearch, process: SidecarProcess, index: str) -> None:
        self.es = es
        self.process = process
        self.index = index
        self._pool = urllib3.PoolManager(retries=False)

    def ask(self, method: str, path: str, body: bytes = b"", type_: str = JSON, **headers: str) -> Any:
        """Return the status, and the body if it is JSON."""
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
        self.es.indices.refresh(index=self.index)
        hits = self.es.search(index=self.index, size=100)["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}


@pytest.fixture(scope="module")
def process(
    es: Elasticsearch, elasticsearch_url: str, request: pytest.FixtureRequest
) -> Iterator[SidecarProcess]:
    """A sidecar, with the options that a test gives."""
    with new_names(es) as name:
        forest = name("forest")
        with running(elasticsearch_url, *getattr(request, "param", ()), forest=forest) as process:
            yield process


@pytest.fixture
def client(es: Elasticsearch, index_name: Names, process: SidecarProcess) -> Client:
    index = index_name("articles")
    Dedup(es).setup(index)
    return Client(es, process, index)


@pytest.mark.parametrize(
    ("process", "passes"),
    [((), False), (PASSING, True)],
    indirect=["process"],
    ids=["refuse", "pass"],
)
def test_articles_without_text_are_refused_or_get_no_root(client: Client, passes: bool) -> None:
    forged = {"title": "no text", "dedup": {"root": "forged"}, "dedup.seq": 7}
    status, answer = client.bulk(
        *({"index": {"_id": "a"}}, {"text": TEXT}, {"index": {"_id": "b"}}, forged),
        *({"update": {"_id": "a"}}, {"doc": {"text": 5, "dedup": {"root": "forged"}}}),
    )
    assert status == 200
    statuses = [next(iter(item.values()))["status"] for item in answer["items"]]
    assert statuses == ([201, 201, 200] if passes else [201, 400, 400])
    assert client.ask("PUT", f"/{client.index}/_doc/c", json.dumps(forged).encode())[0] == statuses[1]
    stored = client.stored()
    if passes:
        assert stored["b"] == stored["c"] == {"title": "no text"}
        assert stored["a"]["text"] == 5
    else:
        assert set(stored) == {"a"}
    assert stored["a"]["dedup"]["root"] != "forged"
    # Elasticsearch parses this body, but the sidecar does not.
    unread = b'{"title":"no text"/**/,"dedup":{"root":"forged"}}'
    assert client.ask("PUT", f"/{client.index}/_doc/d", unread)[0] == 400
    assert "d" not in client.stored()
    lines = [f"an article gets no root: {name}: " for name in "abcd"]
    until(lambda: all(line in client.process.log for line in lines), PATIENCE_S)
    assert client.process.metric('esdedup_articles_total{outcome="rejected"}') == 4


@pytest.mark.parametrize(
    ("process", "status", "warnings"),
    [((), 201, 1), (PASSING, 201, 0), (("--unknown-index", "refuse"), 409, 0)],
    indirect=["process"],
    ids=["warn", "pass", "refuse"],
)
def test_writes_to_unknown_indices_are_handled_as_configured(
    client: Client, index_name: Names, status: int, warnings: int
) -> None:
    missing, lines = index_name("missing"), [{"text": TEXT}, {"index": {"_id": "b"}}, {"text": TEXT}]
    for path in (f"/{missing}/_doc/a", f"/{missing}/_doc/b"):
        assert client.ask("PUT", path, json.dumps({"text": TEXT}).encode())[0] == status
    _, answer = client.bulk({"index": {"_index": missing, "_id": "c"}}, *lines)
    assert [each["index"]["status"] for each in answer["items"]] == [status, 201]
    assert client.stored()["b"]["dedup"]["root"]
    # The log is read by another thread.
    until(lambda: client.process.log.count(f"articles in {missing!r} get no roots") == warnings, PATIENCE_S)
    outcome = "rejected" if status == 409 else "not_set_up"
    assert client.process.metric(f'esdedup_articles_total{{outcome="{outcome}"}}') == 3


def test_compressed_bodies_and_lists_of_texts_are_accepted(client: Client) -> None:
    body = b"".join(
        json.dumps(line).encode() + b"\n"
        for line in ({"index": {"_id": "a"}}, {"text": [TEXT, TEXT.upper()], "title": "half a \ud83d"})
    )
    status, answer = client.ask(
        "POST", f"/{client.index}/_bulk", zlib.compress(body), NDJSON, content_encoding="deflate"
    )
    assert (status, answer["errors"]) == (200, False)
    assert client.bulk({"index": {"_id": "b"}}, {"text": f"{TEXT}\n{TEXT.upper()}"})[0] == 200
    stored = client.stored()
    assert stored["a"]["text"] == [TEXT, TEXT.upper()]
    assert stored["a"]["dedup"]["root"] == stored["b"]["dedup"]["root"]


def test_many_textless_articles_do_not_delay_other_requests(client: Client) -> None:
    """Other requests must not wait until the sidecar has logged and answered all these articles."""
    body = b'{"index":{}}\n{}\n' * 60_000
    waits_s = []
    with ThreadPoolExecutor() as threads:
        sent = threads.submit(client.ask, "POST", f"/{client.index}/_bulk", body, NDJSON)
        while not sent.done():
            began_s = time.monotonic()
            assert client.ask("GET", "/healthz")[0] == 200
            waits_s.append(time.monotonic() - began_s)
            time.sleep(0.01)
    assert sent.result()[0] == 200
    until(lambda: "59000 more articles of this request get no root" in client.process.log, PATIENCE_S)
    assert max(waits_s) < sum(waits_s) / 2


def test_an_index_created_on_write_fails_no_other_articles(client: Client, index_name: Names) -> None:
    tomorrow = index_name("tomorrow")
    client.es.indices.put_index_template(
        name=f"{tomorrow}-of", index_patterns=[tomorrow], template={"settings": {"number_of_replicas": 0}}
    )
    try:
        lines = [{"index": {"_id": "a"}}, {"text": TEXT}, {"index": {"_id": "b", "_index": tomorrow}}, {}]
        assert [each["index"]["status"] for each in client.bulk(*lines)[1]["items"]] == [201, 201]
        assert client.stored()["a"]["dedup"]["root"]
    finally:
        client.es.indices.delete_index_template(name=f"{tomorrow}-of")


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
        # Whatever index these paths name, the lines of the body may name another index.
        *(("POST", f"{path}/typed/_bulk") for path in ("/{index}", "/elsewhere", "/")),
    ],
)
def test_unparsed_requests_reach_no_index_of_articles(client: Client, method: str, path: str) -> None:
    def ask(index: str) -> Any:
        body = json.dumps({"source": {"index": "none"}, "dest": {"index": index}, "text": TEXT}).encode()
        if path.endswith("_bulk"):
            body = b'{"index":{"_index":"%b"}}\n%b\n' % (index.encode(), body)
        return client.ask(method, path.format(index=index), body, NDJSON if path.endswith("_bulk") else JSON)

    status, answer = ask(client.index)
    assert (status, answer["error"]["type"]) == (400, "esdedup_not_understood")
    # Requests to other indices are passed on to Elasticsearch.
    _, answer = ask("elsewhere")
    assert "esdedup" not in json.dumps(answer)
    assert client.stored() == {}


@pytest.mark.parametrize("is_closed", [False, True])
def test_the_sidecar_is_ready_only_while_it_accepts_articles(client: Client, is_closed: bool) -> None:
    status, found = client.ask("GET", "/readyz")
    assert status == 200
    forest, blocked, indices = found["forest"], {"index.blocks.write": True}, client.es.indices
    if is_closed:
        indices.close(index=forest)
    else:
        indices.put_settings(index=forest, settings=blocked)
    try:
        assert client.bulk({"index": {"_id": "a"}}, {"text": TEXT})[0] == 503
        # A conflict (409) would tell the client that the document exists.
        assert client.ask("PUT", f"/{client.index}/_create/a", json.dumps({"text": TEXT}).encode())[0] == 503
        until(lambda: client.ask("GET", "/readyz")[0] == 503, PATIENCE_S, client.process)
        assert ("closed" if is_closed else "block") in client.ask("GET", "/readyz")[1]["detail"]
        assert client.ask("GET", "/healthz")[0] == 200
    finally:
        if is_closed:
            indices.open(index=forest)
        else:
            indices.put_settings(index=forest, settings=dict.fromkeys(blocked))
    until(lambda: client.ask("GET", "/readyz")[0] == 200, PATIENCE_S, client.process)
    assert client.bulk({"index": {"_id": "a"}}, {"text": TEXT})[0] == 200


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
def test_reindexing_into_an_unknown_target_is_refused(client: Client, body: bytes) -> None:
    body = body.replace(b"INDEX", client.index.encode())
    status, answer = client.ask("POST", "/_reindex", body)
    assert (status, answer["error"]["type"]) == (400, "esdedup_not_understood")
    status, answer = client.ask("POST", "/_reindex", zlib.compress(b"{}"), content_encoding="deflate")
    assert (status, answer["error"]["type"]) == (400, "esdedup_not_understood")


DEPLOY = Path(__file__).parents[2] / "deploy"
PATIENCE_S_ROLES = 60
PASSWORD = "that-nobody-should-read"
TITLE = "An article without a text"
READER = {"Authorization": f"Basic {base64.b64encode(f'reader:{PASSWORD}'.encode()).decode()}"}
TEXTS = {article.pop("id"): article for article in sample.articles(40)}


def role(name: str, *, index: str, forest: str) -> Any:
    """Return a role from deploy/, with the given names of the index and the forest."""
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
    """A node with security enabled, and an index that is set up."""
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
        body = json.dumps({"text": next(iter(TEXTS.values()))["text"]}).encode()
        headers = {"Content-Type": "application/json", **READER}
        request = urllib.request.Request(f"{sidecar.url}/api/v1/similar?index={index}", body, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S_ROLES) as answer:
            assert json.load(answer)["total"] >= 1

        # Users cannot exceed their rights: readers cannot write, and feeders cannot write to other indices.
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
        # For each privilege, there was a request that only this privilege allowed.
        assert {alone[0] for alone in granting if len(alone) == 1} == {*security.privileges(user)}
