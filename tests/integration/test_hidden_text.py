"""Readers of the pages see what the fingerprint sees."""

import html
import re
from typing import Any

from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup
from tests.support.asgi import request
from tests.support.names import Names

TEXT = "The harbour council voted on Monday to move the ferry. It goes to the northern pier from May on."


def test_the_pages_hide_what_is_not_compared(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    texts = {"1": TEXT, "2": f"<style>Buy now!</style>{TEXT}<!-- Buy now! --><i title='Buy now!'></i>"}
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        actions = [{"_index": index, "_id": each, "_source": {"text": text}} for each, text in texts.items()]
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
        similar = dedup.similar(index, "1").rows
    assert [(each.id, each.resemblance) for each in similar] == [("2", 1.0)]
    pages: list[tuple[str, dict[str, Any]]] = [
        ("/article", {"id": "2"}),
        ("/compare", {"one": "1", "other": "2"}),
        ("/compare", {"one": "2", "other": "1"}),
    ]
    for path, options in pages:
        page = request(elasticsearch_url, index, path, **options)
        assert page.status == 200
        assert TEXT in html.unescape(re.sub("<[^>]*>", "", page.body))
        assert "Buy now" not in page.body
