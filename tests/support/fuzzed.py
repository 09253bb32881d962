"""A sidecar for requests that no client library would send, with checks of its state."""

import contextlib
import dataclasses
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup
from esdedup.sidecar.bulk_request import read_bulk
from tests.support.forests import ARTICLES
from tests.support.names import Names
from tests.support.sidecar_process import START_S, SidecarProcess, running, until

# Responses normally take a few milliseconds.
HANG_S = 20.0
# The maximum size of a request's body, before and after decompression.
MOST_BYTES = 300_000
JSON_TYPE = {"Content-Type": "application/json"}
ONE = ARTICLES[0]


@dataclasses.dataclass(frozen=True)
class Answer:
    """The response of a server."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def type(self) -> str:
        """The type of the error; empty if there is no error."""
        with contextlib.suppress(ValueError, AttributeError):
            error = json.loads(self.body).get("error", "")
            return str(error.get("type", "")) if isinstance(error, dict) else ""
        return ""

    @property
    def items(self) -> list[tuple[str, dict[str, Any]]]:
        """The operations and values in the response to a bulk request."""
        return [next(iter(each.items())) for each in json.loads(self.body)["items"]]


class Server:
    """A server to which any bytes can be sent."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._host, self._port = address.hostname or "", address.port or 0

    def send(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=HANG_S)
        with contextlib.closing(connection):
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pair:
    """Two indices that get the same requests: `ours` through the sidecar, `theirs` directly."""

    ours: str
    theirs: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fuzzed:
    """A sidecar in front of a node."""

    process: SidecarProcess
    sidecar: Server
    elasticsearch: Server
    forest: str
    set_up: Pair
    plain: Pair
    # The root of `ONE`.
    root: str

    def both(self, pair: Pair, path: str, body: bytes, headers: dict[str, str]) -> tuple[Answer, Answer]:
        """Return the sidecar's response and Elasticsearch's."""
        ours = self.sidecar.send("POST", path.format(index=pair.ours), body, headers)
        assert ours.status < 500, ours.body
        return ours, self.elasticsearch.send("POST", path.format(index=pair.theirs), body, headers)

    def articles(self, es: Elasticsearch) -> dict[str, dict[str, Any]]:
        """Return the articles written through the sidecar, by id; check that each with a text has a root."""
        es.indices.refresh(index=self.set_up.ours)
        found = {hit["_id"]: hit["_source"] for hit in helpers.scan(es, index=self.set_up.ours)}
        roots = {id_: each.get("dedup", {}).get("root") for id_, each in found.items()}
        assert [id_ for id_, each in found.items() if each.get("text") and not roots[id_]] == []
        # Only forged roots have this value.
        assert "x" not in roots.values()
        return found

    def check_lives(self) -> None:
        """Check that an ordinary request still gets the usual response."""
        answer = self.sidecar.send("POST", "/v1/enrich/one", json.dumps(ONE).encode(), JSON_TYPE)
        assert answer.status == 200, answer.body
        assert json.loads(answer.body)["dedup"]["root"] == self.root
        assert self.process.process.poll() is None

    def check_is_idle(self) -> None:
        """Check that no request is in progress, and that none raised an unexpected error."""
        for name in ("requests_in_progress", "request_bodies_bytes", "queue_articles"):
            until(lambda name=name: self.process.metric(f"esdedup_{name}") == 0, START_S)  # type: ignore[misc]
        assert "Traceback" not in self.process.log, self.process.log


def check_bulk(body: bytes, ours: Answer, theirs: Answer) -> None:
    """Compare the sidecar's response to a bulk request with Elasticsearch's own.

    The sidecar may be stricter: it may reject the whole request because of an action line, or an item
    with status 400.
    """
    if ours.status != 200:
        assert ours.status == theirs.status or b"Malformed action/metadata line" in ours.body, ours.body
        return
    items = ours.items
    assert all(values["status"] < 500 for _, values in items), items
    if theirs.status != 200:
        # Elasticsearch has rejected the request because of an item that the sidecar drops or rewrites.
        assert [name for name, _ in items] == [each.operation for each in read_bulk(body, index="a")]
        return
    assert [name for name, _ in items] == [name for name, _ in theirs.items]
    for (_, our), (_, their) in zip(items, theirs.items, strict=True):
        # Later items may refer to an article that the sidecar has rejected.
        is_same = our["status"] < 300 or our["status"] in {404, 409} or our["status"] == their["status"]
        assert is_same or _is_refused(our), (our, their)


def _is_refused(values: dict[str, Any]) -> bool:
    return bool(values["status"] == 400 and values["error"]["type"] == "esdedup_article_rejected")


@contextlib.contextmanager
def fuzzed(es: Elasticsearch, url: str, name: Names) -> Iterator[Fuzzed]:
    """Yield a sidecar, with indices to write to."""
    forest = name("forest")
    set_up = Pair(ours=name("ours"), theirs=name("theirs"))
    plain = Pair(ours=name("ours-plain"), theirs=name("theirs-plain"))
    with Dedup(es, forest=forest) as dedup:
        for each in (set_up.ours, set_up.theirs):
            dedup.setup(each)
    for each in (plain.ours, plain.theirs):
        es.indices.create(index=each, mappings={"dynamic": False})
    options = ("--index", set_up.ours, "--max-body-bytes", str(MOST_BYTES))
    with running(url, *options, forest=forest) as process:
        root = process.post("/v1/enrich/one", ONE)["dedup"]["root"]
        yield Fuzzed(
            process=process,
            sidecar=Server(process.url),
            elasticsearch=Server(url),
            forest=forest,
            set_up=set_up,
            plain=plain,
            root=root,
        )
