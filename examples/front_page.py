"""Print the largest stories, and who published each first: ``python front_page.py [WORDS…]``."""

import os
import sys

from elasticsearch import Elasticsearch

from esdedup import Reader

INDEX = "news"
STORIES = 10

with Elasticsearch(os.environ.get("ELASTICSEARCH_URL", "http://localhost:9200")) as es:
    reader = Reader(es)
    query = reader.search_query(INDEX, " ".join(sys.argv[1:]))
    page = reader.list(INDEX, query=query, sort="similar-desc", head="earliest", size=STORIES)
    print(f"{page.total_rows} stories, {page.total_articles} articles\n")
    for row in page.rows:
        print(f"{row.similar + 1:>4} articles, {row.sources} sources   {row.title}")
        print(f"{'first:':>29} {row.source}, {row.published_at}\n")
