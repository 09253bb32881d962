"""Indices that refuse writes until somebody acts: reported at once, with the server's reason."""

from collections.abc import Callable, Iterator

import pytest
from elasticsearch import Elasticsearch

from esdedup import Dedup, IndexBlocked, Maintenance
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.writer import ForestWriter
from tests.support.forests import ARTICLES, a_leaf, feed, nodes, write
from tests.support.names import Names

FULL_DISK, READ_ONLY = "read_only_allow_delete", "write"


@pytest.fixture
def block(es: Elasticsearch) -> Iterator[Callable[[str, str], None]]:
    """Blocks an index as a full disk or its administrator would; the blocks go at the end."""
    blocked: list[tuple[str, str]] = []

    def block(index: str, kind: str) -> None:
        blocked.append((index, kind))
        es.indices.put_settings(index=index, settings={f"index.blocks.{kind}": True})

    yield block
    for index, kind in blocked:
        es.indices.put_settings(index=index, settings={f"index.blocks.{kind}": None})


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before a request was sent again."""
    pauses: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", pauses.append)
    return pauses


@pytest.mark.parametrize(
    ("kind", "advice"), [(FULL_DISK, "free space on the disk"), (READ_ONLY, "remove the block")]
)
def test_a_blocked_forest_ends_a_run_at_once(
    es: Elasticsearch,
    index_name: Names,
    block: Callable[[str, str], None],
    pauses: list[float],
    kind: str,
    advice: str,
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, batch_size=10) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES[:10])
        block(forest, kind)
        with pytest.raises(IndexBlocked, match=f"{forest}.* blocked by: .*{advice}") as refused:
            feed(es, dedup, index, ARTICLES[10:])
        assert refused.value.index == forest
        with pytest.raises(IndexBlocked):
            dedup.close()
        # The server did not take the release, but this process knows that its claim is over.
        with pytest.raises(IndexBlocked, match="take the lease"):
            feed(es, dedup, index, ARTICLES[10:])
        assert pauses == []
        es.indices.put_settings(index=forest, settings={f"index.blocks.{kind}": None})
        feed(es, dedup, index, ARTICLES[10:20])
    assert list(Maintenance(es, forest=forest).verify([index])) == []


def test_a_blocked_forest_does_not_count_nodes_that_it_could_not_delete_as_kept(
    es: Elasticsearch, fed: tuple[str, str], block: Callable[[str, str], None], pauses: list[float]
) -> None:
    _, forest = fed
    hits = [{"_id": each, "_seq_no": 0, "_primary_term": 1} for each in nodes(es, forest)]
    writer = ForestWriter(ForestIndex.find(es, forest))
    block(forest, READ_ONLY)
    with pytest.raises(IndexBlocked, match="cannot remove nodes"):
        writer.delete(hits)
    assert pauses == []


def test_blocked_articles_end_a_repair_at_once(
    es: Elasticsearch, fed: tuple[str, str], block: Callable[[str, str], None], pauses: list[float]
) -> None:
    index, forest = fed
    leaf = a_leaf(nodes(es, forest))
    root = next(node for node in nodes(es, forest).values() if node.is_root and node.id != leaf.root)
    block(index, FULL_DISK)
    write(es, forest, leaf._replace(root=root.id))
    with pytest.raises(IndexBlocked, match="cannot assign roots to articles") as refused:
        Maintenance(es, forest=forest).repair([index])
    assert refused.value.index == index
    assert pauses == []
