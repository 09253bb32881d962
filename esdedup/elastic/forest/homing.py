"""Refuses to give an index to a forest that does not know the articles in it."""

from elasticsearch import Elasticsearch

from esdedup.elastic.execute import execute
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.requests import Query, refresh, search
from esdedup.errors import ForestMissing, IndexNotReady
from esdedup.fields import Fields
from esdedup.forest.model import NO_TIME

_SAMPLE = 100


def refuse_strangers(client: Elasticsearch, index: str, *, fields: Fields, forest: str) -> None:
    """Make sure that most of the latest articles of an index are in a forest, unless they have expired there.

    Args:
        client: Owned by the caller.
        index: Its name.
        fields: The names of its articles' fields.
        forest: The forest that it is to belong to.

    Raises:
        IndexNotReady: They are not.
        ForestError: That index is no forest, or cannot be read.
    """
    execute(client, refresh(index))
    if not (roots := _latest_roots(client, index, fields, since_ms=NO_TIME)):
        return
    known = 0
    try:
        home = ForestIndex.find(client, forest)
    except ForestMissing:
        pass
    else:
        home.refresh_if_allowed()
        status = home.status()
        roots = _latest_roots(client, index, fields, since_ms=status.live_since_ms(status.aging))
        known = len({node.id for node in home.run(home.nodes.by_id(set(roots)))}.intersection(roots))
    if known * 2 < len(set(roots)):
        raise IndexNotReady(
            f"the index {index!r} has articles that the forest {forest!r} does not know, so it would not "
            "find their reprints: name the forest that they were fed to or rebuilt into, or another index",
            index=index,
        )


def _latest_roots(client: Elasticsearch, index: str, fields: Fields, *, since_ms: int) -> list[str]:
    filters: list[Query] = [
        {"exists": {"field": f"{fields.dedup}.fingerprint"}},
        {"exists": {"field": fields.root}},
    ]
    if since_ms != NO_TIME:
        filters.append({"range": {f"{fields.dedup}.seen": {"gte": since_ms, "format": "epoch_millis"}}})
    body: Query = {
        "query": {"bool": {"filter": filters}},
        "sort": [{fields.seq: {"order": "desc", "unmapped_type": "long"}}],
        "size": _SAMPLE,
        "_source": False,
        "docvalue_fields": [fields.root],
    }
    (answer,) = execute(client, search(index, body))
    return [hit["fields"][fields.root][0] for hit in answer["hits"]["hits"]]
