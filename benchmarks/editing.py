"""Measures the cost of edits: `python -m benchmarks.editing [--articles N]`.

Prints how long it takes to merge stories and to undo each merge, and how many articles change; the latency of
lists by story and by root; and the rate of feeding with and without stories.
"""

import argparse
import statistics
import time

from elasticsearch import Elasticsearch, helpers

from benchmarks.rows import duration_s
from benchmarks.server import client
from esdedup import Dedup, Editor, EditRequest, Reader
from esdedup.reading.list_request import Sort
from tests.sample import articles

FOREST, LISTS = "edited-forest", 30
SORTS: tuple[Sort, ...] = ("newest", "similar-desc")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=int, default=100_000)
    count = parser.parse_args().articles
    with client(lifetime_s=3_000) as es:
        for index, editorial in (("plain", False), ("edited", True)):
            print(f"{index}: {fed(es, index, count, editorial=editorial):,.0f} articles per second")
        for sort in SORTS:
            taken = {index: median_ms(es, index, sort) for index in ("plain", "edited")}
            print(f"{sort}: {taken['plain']:.1f} ms by root, {taken['edited']:.1f} ms by story")
        edit_all(es, count)


def fed(es: Elasticsearch, index: str, count: int, *, editorial: bool) -> float:
    """Feed articles to a new index and forest; return the articles per second."""
    with Dedup(es, forest=f"{index}-forest") as dedup:
        dedup.setup(index, editorial=editorial)
        found = [{"_index": index, "_id": each["id"], "_source": each} for each in articles(count)]
        taken_s = duration_s(lambda: helpers.bulk(es, dedup.enrich(found, backfill=True), chunk_size=2_000))
    es.indices.refresh(index=index)
    return count / taken_s


def median_ms(es: Elasticsearch, index: str, sort: Sort) -> float:
    """Return the median latency of the first page of the list."""
    reader = Reader(es)
    return 1_000 * statistics.median(duration_s(lambda: reader.list(index, sort=sort)) for _ in range(LISTS))


def edit_all(es: Elasticsearch, count: int) -> None:
    """Merge stories of several sizes into the smallest story, and undo each merge."""
    editor, reader = Editor(es, forest=FOREST), Reader(es)
    rows = reader.list("edited", sort="similar-desc", size=200).rows
    least = reader.list("edited", sort="similar-asc", size=1).rows[0]
    for row in (rows[0], rows[10], rows[-1]):
        for request in (
            EditRequest(kind="merge", ids=(row.id,), to=least.id),
            EditRequest(kind="undo", undoes=len(editor.history("edited").edits) + 1),
        ):
            began_s = time.perf_counter()
            made = editor.edit("edited", request, by="a benchmark")
            taken_ms = (time.perf_counter() - began_s) * 1_000
            print(f"{request.kind} of {made.articles:,} of {count:,} articles: {taken_ms:,.0f} ms")


if __name__ == "__main__":
    main()
