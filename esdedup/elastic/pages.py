"""Reading all hits of a search, however many, as the index was when it began."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from elasticsearch import Elasticsearch

from esdedup.elastic import limits
from esdedup.elastic.errors import translated

_KEEP_ALIVE = "5m"

Hits = list[dict[str, Any]]


def hit_pages(
    client: Elasticsearch, index: str | Sequence[str], search: Callable[..., Hits], *, task: str
) -> Iterator[Hits]:
    """Yield the hits of a search page by page, at one point in time.

    Args:
        client: Stays the caller's.
        index: A name, or several.
        search: Sends the search for one page, of at most `limits.MAX_HITS`, given ``pit`` and
            ``search_after``; it must sort.
        task: What is being done, to follow "cannot".
    """
    with translated(task):
        pit = client.open_point_in_time(index=index, keep_alive=_KEEP_ALIVE)["id"]
    try:
        after = None
        while True:
            hits = search(pit={"id": pit, "keep_alive": _KEEP_ALIVE}, search_after=after)
            if hits:
                yield hits
            if len(hits) < limits.MAX_HITS:
                return
            after = hits[-1]["sort"]
    finally:
        with translated(task):
            client.options(ignore_status=404).close_point_in_time(id=pit)
