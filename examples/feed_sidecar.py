"""Index JSON Lines through a sidecar: ``python feed_sidecar.py < articles.jsonl``."""

import json
import os
import sys

from elasticsearch import Elasticsearch, helpers

INDEX = "news"


def actions():
    """Yield an action for each line."""
    for line in sys.stdin:
        article = json.loads(line)
        yield {"_index": INDEX, "_id": article.pop("id"), "_source": article}


with Elasticsearch(os.environ.get("ESDEDUP_SIDECAR_URL", "http://localhost:9500")) as sidecar:
    indexed, failed = helpers.bulk(sidecar, actions(), raise_on_error=False, refresh=True)

print(f"{indexed} indexed, {len(failed)} failed")
