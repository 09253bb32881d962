"""The feeder of docker-compose.yml: it waits for a sidecar that is not there yet, and writes what it has."""

import importlib.util
import socket
import threading
import time
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from esdedup import sample
from tests.support.forests import roots
from tests.support.names import Names
from tests.support.sidecar_process import running

FEEDER = Path(__file__).parents[2] / "deploy/feeder.py"
ARTICLES = list(sample.articles(60))
# Longer than a client takes that tries again at once, and much shorter than this one tries.
ALONE_S = 2.0


class Enough(Exception):
    """The feeder has written everything once."""


class _NoPauses:
    """Stands for `time` in the feeder."""

    @staticmethod
    def sleep(_: float) -> None:
        raise Enough


def test_the_feeder_writes_what_it_has_as_soon_as_somebody_takes_it(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = index_name("articles")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("ES_URL", elasticsearch_url)
    monkeypatch.setenv("SIDECARS", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("ELASTIC_USER", "any")
    monkeypatch.setenv("ELASTIC_PASSWORD", "any")
    monkeypatch.setattr(sample, "articles", lambda: iter(ARTICLES))
    spec = importlib.util.spec_from_file_location("deployed_feeder", FEEDER)
    assert spec is not None
    assert spec.loader is not None
    feeder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(feeder)
    monkeypatch.setattr(feeder, "INDEX", index)
    monkeypatch.setattr(feeder, "time", _NoPauses)
    ended: list[BaseException] = []

    def run() -> None:
        try:
            feeder.main()
        except BaseException as error:
            ended.append(error)

    feeding = threading.Thread(target=run, daemon=True)
    feeding.start()
    time.sleep(ALONE_S)
    assert not ended
    with running(elasticsearch_url, "--port", str(port), forest=index_name("forest")):
        feeding.join(60)
    assert [type(each) for each in ended] == [Enough]
    es.indices.refresh(index=index)
    assert roots(es, index).keys() == {each["id"] for each in ARTICLES}
