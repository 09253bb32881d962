"""A sentence that very many articles share: not all of their nodes are indexed under it."""

from random import Random
from typing import Any

from elasticsearch import Elasticsearch

from esdedup import VERIFIED, Dedup, Maintenance
from esdedup.elastic.forest.stored import signatures_of
from esdedup.maintenance import ViolationKind
from esdedup.neighbours.relation import relation_of
from tests.support import stream
from tests.support.forests import feed, kinds, nodes
from tests.support.names import Names

# Otherwise the sentence that all articles share would be left out.
PROFILE = VERIFIED.with_changes(keep_boilerplate=True)
MAX_POSTINGS = 64
_WORDS = [
    "市场",
    "经济",
    "政府",
    "研究",
    "技术",
    "企业",
    "合作",
    "学校",
    "医院",
    "天气",
    "足球",
    "音乐",
    "河流",
]


def sentence(chance: Random, length: int) -> str:
    return "".join(chance.choice(_WORDS) + str(chance.randrange(1_000)) for _ in range(length)) + "。"


def articles() -> list[dict[str, Any]]:
    """Return more stories than postings, each beginning with the same sentence, then edited reprints."""
    common = sentence(Random(1), 30)
    stories = [
        common + "".join(sentence(Random(each), 15) for _ in range(4)) for each in range(MAX_POSTINGS + 20)
    ]
    texts = [*stories, *(story + sentence(Random(2), 3) for story in stories[10::10])]
    return [{"id": str(number), "text": text} for number, text in enumerate(texts)]


def test_nodes_with_a_saturated_key_are_verified_and_rebuilt_like_others(
    es: Elasticsearch, index_name: Names
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    given = [{"_id": each["id"], "text": each["text"]} for each in articles()]
    maintenance = Maintenance(es, forest=forest)
    for part in (given[: MAX_POSTINGS + 10], given[MAX_POSTINGS + 10 :]):
        with Dedup(es, forest=forest, profile=PROFILE, batch_size=30) as dedup:
            dedup.setup(index)
            feed(es, dedup, index, part)
        assert list(maintenance.verify([index])) == []
        before = nodes(es, forest)
        es.indices.delete(index=forest)
        maintenance.rebuild([index])
        assert nodes(es, forest) == before
    roots, by_id = stream.expected(articles(), PROFILE)
    assert (stream.indexed(es, index), stream.nodes(es, forest)) == (roots, by_id)
    assert len(set(roots.values())) < len(by_id)
    relation = relation_of(PROFILE)
    indexed = relation.indexed(signatures_of(before.values(), relation)).sum(axis=1)
    assert indexed.min() < indexed.max()
    # An article with fewer keys than others is checked too.
    last = given[-1]["_id"]
    es.update(index=index, id=last, doc={"dedup": {"bands": ["000000000"]}}, refresh=True)
    assert kinds(maintenance, index) == {ViolationKind.WRONG_BANDS}
