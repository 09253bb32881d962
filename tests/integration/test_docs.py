"""The bare requests in the documentation are those that are sent, and the server takes them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from tests.support.requests_shown import IN_DOCS, IN_MAPPINGS

ROOT = Path(__file__).parents[2]
SHOWN = dict(
    re.findall(r"<!-- (\S+) -->\n```json\n(.*?)```", (ROOT / "docs/queries.md").read_text(), re.DOTALL)
)


def test_everything_is_shown() -> None:
    assert SHOWN.keys() == IN_DOCS.keys()


@pytest.mark.parametrize("name", IN_DOCS)
def test_a_request_of_the_documentation(es: Elasticsearch, unchanged: tuple[str, str], name: str) -> None:
    body = json.loads(SHOWN[name])
    assert body == IN_DOCS[name]
    assert_answers(es, unchanged[0], body)


@pytest.mark.parametrize("name", IN_MAPPINGS)
def test_a_request_of_the_mappings(es: Elasticsearch, unchanged: tuple[str, str], name: str) -> None:
    body = json.loads((ROOT / "mappings" / f"{name}.json").read_text())
    assert body == IN_MAPPINGS[name]
    assert_answers(es, unchanged[0], body)


def assert_answers(es: Elasticsearch, index: str, body: dict[str, Any]) -> None:
    answer = es.search(index=index, body=body, allow_partial_search_results=False)
    assert not answer["timed_out"]
    assert answer["_shards"]["failed"] == 0
