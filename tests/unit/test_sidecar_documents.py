"""The sidecar's documents say what the code says."""

import re
import runpy
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from elasticsearch import ApiError, Elasticsearch, helpers

from docs.made_from_code import DOCUMENT, made
from esdedup.sidecar.settings import Settings
from tests.support.wire import ScriptedServer, answer

ROOT = Path(__file__).parents[2]
ACTIONS = [{"_index": "news", "_source": {"text": "x"}}]


def test_the_tables_are_made_from_the_code() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert made(text) == text, "run `python -m docs.made_from_code`"
    assert "| `esdedup_articles_total` | counter |" in text
    assert "| `port` | `--port` |" in text


def _bulk_as_documented(url: str) -> None:
    """Run the example of a client that knows two sidecars."""
    text = (ROOT / "docs/guides/two-sidecars.md").read_text()
    (example,) = (
        each for each in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "retry_backoff_base" in each
    )
    names = '"http://sidecar-1:9500", "http://sidecar-2:9501"'
    assert names in example
    exec(example.replace(names, repr(url)), {})


def _bulk_as_deployed(url: str) -> None:
    """Do the same with the settings of the feeder in `docker-compose.yml`."""
    feeder = runpy.run_path(str(ROOT / "deploy/feeder.py"))
    helpers.bulk(Elasticsearch(url, **feeder["OF_CLIENT"]), ACTIONS, **feeder["OF_HELPER"])


@pytest.mark.parametrize("bulk", [_bulk_as_documented, _bulk_as_deployed])
@pytest.mark.parametrize("status", [429, 502, 503])
def test_clients_wait_longer_than_a_lease_for_a_sidecar_that_takes_articles(
    monkeypatch: pytest.MonkeyPatch, bulk: Callable[[str], None], status: int
) -> None:
    """The client of Elasticsearch pauses where nobody answers, and repeats at once what was answered."""
    pauses_s: list[float] = []
    refusal = (
        f"HTTP/1.1 {status} X\r\nx-elastic-product: Elasticsearch\r\ncontent-type: application/json\r\n"
        "content-length: 2\r\nconnection: close\r\n\r\n{}"
    )
    monkeypatch.setattr(time, "sleep", pauses_s.append)
    with ScriptedServer(answer(refusal.encode())).running() as server, pytest.raises(ApiError):
        bulk(server.url)
    assert sum(pauses_s) > 2 * Settings.model_fields["lease_ttl_s"].default
