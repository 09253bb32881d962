"""Index JSON Lines, and count the outcomes: ``python feed.py < articles.jsonl``."""

import json
import os
import sys

from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup

INDEX = "news"


def actions():
    """Yield an action for each line."""
    for line in sys.stdin:
        article = json.loads(line)
        yield {"_index": INDEX, "_id": article.pop("id"), "_source": article}


with Elasticsearch(os.environ.get("ELASTICSEARCH_URL", "http://localhost:9200")) as es, Dedup(es) as dedup:
    dedup.setup(INDEX)
    counts = {}

    def note(_action, assignment):
        """Count the outcome of an article."""
        counts[assignment.kind.value] = counts.get(assignment.kind.value, 0) + 1

    helpers.bulk(es, dedup.enrich(actions(), on_assigned=note), refresh=True)
    print(counts)
