"""The roles in deploy/: they suffice, and have nothing that is not needed; before a stand-in for security."""

import base64
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import AuthorizationException, Elasticsearch, helpers

from esdedup import Dedup, sample
from tests.support.forests import nodes, roots
from tests.support.names import Names
from tests.support.secured import Secured, secured
from tests.support.sidecar_process import running

DEPLOY = Path(__file__).parents[2] / "deploy"
PATIENCE_S = 60
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


def test_the_roles_suffice_and_have_nothing_that_is_not_needed(
    security: Secured, es: Elasticsearch, index: str, forest: str, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text(PASSWORD)
    own = ("--user", "sidecar", "--password-file", str(tmp_path / "password"))
    options = (*own, "--pages", "--index", index, "--log-level", "debug")
    with running(security.url, *options, forest=forest) as sidecar:
        feeder = Elasticsearch(sidecar.url, basic_auth=("feeder", PASSWORD), request_timeout=PATIENCE_S)
        actions = [{"_index": index, "_id": id_, "_source": each} for id_, each in TEXTS.items()]
        actions.append({"_index": index, "_id": "refused", "_source": {"title": TITLE}})
        assert helpers.bulk(feeder, actions, raise_on_error=False)[0] == len(TEXTS)
        es.indices.refresh(index=index)
        assert sidecar.get("/pages/api/v1/list")["total_articles"] == len(TEXTS)
        asked = json.dumps({"text": next(iter(TEXTS.values()))["text"]}).encode()
        headers = {"Content-Type": "application/json", **READER}
        request = urllib.request.Request(f"{sidecar.url}/api/v1/similar?index={index}", asked, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
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
