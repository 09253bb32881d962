"""Print who has already published a text, without indexing it: ``python before_publishing.py < text``."""

import os
import sys

from elasticsearch import Elasticsearch

from esdedup import Reader

INDEX = "news"

with Elasticsearch(os.environ.get("ELASTICSEARCH_URL", "http://localhost:9200")) as es:
    found = Reader(es).similar_to_text(INDEX, sys.stdin.read())

print(f"{found.total} articles tell this story")
for article in found.rows:
    likeness = "" if article.resemblance is None else f"{article.resemblance:.0%} alike"
    print(f"  {likeness:>10}  {article.source}, {article.published_at}: {article.title}")
