"""Print stories that at least SOURCES sources have published: ``python newly_spread.py SOURCES FILE``.

Each story is printed once: FILE stores the roots of printed stories. A root never changes.
"""

import os
import sys
from pathlib import Path

from elasticsearch import Elasticsearch

from esdedup import Reader

INDEX = "news"

if len(sys.argv) != 3:
    sys.exit(__doc__)
enough, seen_file = int(sys.argv[1]), Path(sys.argv[2])
seen = set(seen_file.read_text().split()) if seen_file.exists() else set()

with Elasticsearch(os.environ.get("ELASTICSEARCH_URL", "http://localhost:9200")) as es:
    page = Reader(es).list(INDEX, sort="similar-desc", head="earliest", size=100)

new = [row for row in page.rows if (row.sources or 0) >= enough and row.root not in seen]
for row in new:
    print(f"{row.sources} sources: {row.title} ({row.source} was first)")
seen_file.write_text("".join(f"{root}\n" for root in sorted(seen | {row.root for row in new})))
