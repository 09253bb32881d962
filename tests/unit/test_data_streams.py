"""Data streams; the embedded server lacks them, so the responses are from Elasticsearch's manual."""

from typing import Any, cast

from elasticsearch import Elasticsearch

from esdedup.elastic.article_indices import Articles
from esdedup.elastic.mappings import article_index
from esdedup.fields import Fields

FIELDS = Fields(time="@timestamp")
BACKING = [f".ds-news-2026.11.2{day}-00000{day}" for day in (5, 6)]


class Server:
    """A fake client of a server with the data stream `news`, which has rolled over once."""

    def __init__(self) -> None:
        self.indices = self

    def get(self, *, index: str) -> dict[str, Any]:
        assert index == "news"
        settings = {"index": {"number_of_shards": "1", "hidden": "true"}}
        backing = {"aliases": {}, "settings": settings, "data_stream": "news", **article_index(FIELDS)}
        return {name: backing | {"settings": settings} for name in BACKING}

    def get_data_stream(self, *, name: str) -> dict[str, Any]:
        indices = [{"index_name": each, "index_uuid": each[-6:]} for each in BACKING]
        stream = {"name": name, "timestamp_field": {"name": "@timestamp"}, "indices": indices}
        return {"data_streams": [stream | {"generation": 2, "status": "GREEN", "template": "news"}]}


def test_a_data_stream_is_written_through_its_latest_index() -> None:
    index = Articles(cast(Elasticsearch, Server())).check("news")
    assert (index.name, index.fields) == (BACKING[-1], FIELDS)
