"""Bulk requests that a busy server refuses in part, which no real server can be made to do at will."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from elasticsearch import Elasticsearch

from esdedup.elastic.forest.bulk import ForestBulk


class Busy:
    """A client whose server refuses the second node of the first request."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def bulk(self, *, operations: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        ids = [each["delete"]["_id"] for each in operations]
        self.asked.append(ids)
        refused = ids[1:2] if len(self.asked) == 1 else []
        return {
            "items": [{"delete": {"_id": each, "status": 429 if each in refused else 200}} for each in ids]
        }


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Busy:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)
    return Busy()


def test_refused_deletions_are_sent_again_and_counted_once(client: Busy) -> None:
    def hits() -> Iterator[dict[str, Any]]:
        """Can be read once only, as the hits that an expiry deletes."""
        for node_id in ("a", "b", "c"):
            yield {"_id": node_id, "_seq_no": 1, "_primary_term": 1}

    bulk = ForestBulk(cast("Elasticsearch", client), forest="forest", max_documents=10)
    assert bulk.delete(hits(), alias="forest-w-1") == 3
    assert client.asked == [["a", "b", "c"], ["b"]]
