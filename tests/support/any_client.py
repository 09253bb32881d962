"""Feeds, adopts, migrates and reads articles with the installed Elasticsearch client; prints the results."""

import asyncio
import json
import sys
from importlib.metadata import version
from typing import Any

from elasticsearch import AsyncElasticsearch, Elasticsearch, helpers

from esdedup import Adoption, AsyncReader, Dedup, Maintenance, Migration, Reader
from tests.support.forests import ARTICLES


def main(url: str, sidecar: str, index: str, forest: str) -> None:
    fed = f"{index}-fed"
    with Elasticsearch(url) as client:
        with Dedup(client, forest=f"{forest}-own") as dedup:
            dedup.setup(fed)
            dedup.setup(index)
            actions = [{"_index": fed, **article} for article in ARTICLES]
            helpers.bulk(client, dedup.enrich(actions), refresh=True)
        got = {
            "version": version("elasticsearch"),
            "violations": len(list(Maintenance(client, forest=f"{forest}-own").verify([fed]))),
            "sync": read(client, fed, f"{forest}-own"),
            "async": asyncio.run(_read_async(url, fed, f"{forest}-own")),
            "through": _through(client, sidecar, index, forest),
        }
    sys.stdout.write(json.dumps(got))


def read(client: Elasticsearch, index: str, forest: str) -> dict[str, Any]:
    """Return the results of reading an index."""
    reader = Reader(client, forest=forest)
    page = reader.list(index, sort="similar-desc")
    return {
        "list": page.model_dump(mode="json"),
        "similar": reader.similar(index, page.rows[0].id).model_dump(mode="json"),
        "text": reader.similar_to_text(index, str(ARTICLES[0]["text"])).model_dump(mode="json"),
    }


async def _read_async(url: str, index: str, forest: str) -> dict[str, Any]:
    async with AsyncElasticsearch(url) as client:
        reader = AsyncReader(client, forest=forest)
        page = await reader.list(index, sort="similar-desc")
        similar = await reader.similar(index, page.rows[0].id)
        text = await reader.similar_to_text(index, str(ARTICLES[0]["text"]))
    return {
        "list": page.model_dump(mode="json"),
        "similar": similar.model_dump(mode="json"),
        "text": text.model_dump(mode="json"),
    }


def _through(client: Elasticsearch, sidecar: str, index: str, forest: str) -> dict[str, Any]:
    """Feed and adopt through a sidecar, then migrate everything to another forest."""
    plain = f"{index}-plain"
    with Elasticsearch(sidecar) as live:
        half = len(ARTICLES) // 2
        helpers.bulk(live, ({"_index": index, **article} for article in ARTICLES[:half]))
    helpers.bulk(client, ({"_index": plain, **article} for article in ARTICLES[half:]), refresh=True)
    adoption = Adoption(client, plain)
    with Dedup(client, forest=forest, sidecar=sidecar) as dedup:
        adoption.run(dedup, backfill=False)
    both = f"{index},{plain}"
    migration = Migration(client, both, forest=forest, to=f"{forest}-2")
    with Dedup(client, forest=f"{forest}-2", fields=migration.fields) as dedup:
        migration.run(dedup)
    client.indices.refresh(index=both)
    fields = migration.fields
    return {
        "adopted": adoption.summary.written,
        "migrated": migration.summary.written,
        "articles": Reader(client).list(both).total_articles,
        "then": Reader(client, fields=fields).list(both).total_articles,
        "violations": len(list(Maintenance(client, forest=f"{forest}-2", fields=fields).verify([both]))),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
