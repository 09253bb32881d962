"""Feeds and reads with whichever client of Elasticsearch is installed; prints what it got as JSON."""

import asyncio
import json
import sys
from importlib.metadata import version
from typing import Any

from elasticsearch import AsyncElasticsearch, Elasticsearch, helpers

from esdedup import AsyncReader, Dedup, Maintenance, Reader
from tests.support.forests import ARTICLES


def main(url: str, index: str, forest: str) -> None:
    with Elasticsearch(url) as client:
        with Dedup(client, forest=forest) as dedup:
            dedup.setup(index)
            actions = [{"_index": index, **article} for article in ARTICLES]
            helpers.bulk(client, dedup.enrich(actions), refresh=True)
        violations = list(Maintenance(client, forest=forest).verify([index]))
        reader = Reader(client, forest=forest)
        page = reader.list(index, sort="similar-desc")
        waited = {
            "list": page.model_dump(mode="json"),
            "similar": reader.similar(index, page.rows[0].id).model_dump(mode="json"),
            "text": reader.similar_to_text(index, str(ARTICLES[0]["text"])).model_dump(mode="json"),
        }
    got = {
        "version": version("elasticsearch"),
        "violations": len(violations),
        "waited": waited,
        "awaited": asyncio.run(_awaited(url, index, forest, page.rows[0].id)),
    }
    sys.stdout.write(json.dumps(got))


async def _awaited(url: str, index: str, forest: str, article_id: str) -> dict[str, Any]:
    async with AsyncElasticsearch(url) as client:
        reader = AsyncReader(client, forest=forest)
        page = await reader.list(index, sort="similar-desc")
        similar = await reader.similar(index, article_id)
        text = await reader.similar_to_text(index, str(ARTICLES[0]["text"]))
    return {
        "list": page.model_dump(mode="json"),
        "similar": similar.model_dump(mode="json"),
        "text": text.model_dump(mode="json"),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
