"""A stream of articles with new clusters, joins, conflicts and repetitions."""

import contextlib
import functools
import random
import re
import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.assigner import arrive
from esdedup.ingest.learn import learn

from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import CLASSIC, Profile
from esdedup.forest import Aging
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.sites import RawPage
from tests import sample
from tests.support import forests

_LIGHT = ("also", "then", "there", "very", "just", "now")
_STORIES = 3


def articles(count: int, profile: Profile = CLASSIC, *, seed: int = 10) -> Iterator[dict[str, Any]]:
    """Yield versions of a few stories at a time; most versions of a story are near each other in the profile.

    A version contains some of six common words, so most `classic` versions are only a few bits apart. In
    other profiles, stories have three sentences, of which a version may omit some.
    """
    sentences, words_each = (1, 30) if profile == CLASSIC else (3, 30)
    chance = random.Random(seed)
    stories: list[list[str]] = []
    for number in range(count):
        if not stories or chance.random() < 1 / 100:
            stories = [
                [" ".join(chance.sample(words(), words_each)) for _ in range(sentences)]
                for _ in range(_STORIES)
            ]
        story = chance.choice(stories)
        version = [sentence for sentence in story if chance.random() < 0.8] or story
        light = [word for word in _LIGHT if chance.random() < 0.4]
        text = "!!!" if chance.random() < 0.02 else f"{' '.join(['. '.join(version), *light])}."
        yield {"id": f"article-{number:06d}", "text": text}


@functools.cache
def words() -> tuple[str, ...]:
    """Return the long words of the sample corpus."""
    text = " ".join(each["text"] for each in sample.articles(300))
    return tuple(sorted(set(re.findall(r"\b[a-z]{7,}\b", text))))


def expected(
    stream: Iterable[dict[str, Any]], profile: Profile = CLASSIC
) -> tuple[dict[str, str | None], dict[str, str]]:
    """Return the root of each article and of each node in a forest in memory."""
    _, roots, nodes = fed(stream, profile)
    return roots, nodes


def fed(
    stream: Iterable[dict[str, Any]], profile: Profile = CLASSIC, *, learns_first: bool = False
) -> tuple[MemoryStore, dict[str, str | None], dict[str, str]]:
    """Feed articles to a store in memory; return the store, and the roots of articles and nodes."""
    found = list(stream)
    store = MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation_of(profile))
    if learns_first:
        texts = [RawPage(article["text"], None, article["id"]) for article in found]
        learn(texts, fingerprinter=Fingerprinter(profile), open_store=lambda: contextlib.nullcontext(store))
    # The id of a root depends on the retention period in which the root is made.
    now_ms = int(time.time() * 1000)
    _, decided = arrive(
        [article["text"] for article in found],
        times_ms=[now_ms] * len(found),
        fingerprinter=Fingerprinter(profile),
        store=store,
        now_ms=now_ms,
        articles=[article["id"] for article in found],
    )
    answers = decided.assignments
    roots = {article["id"]: answer.root for article, answer in zip(found, answers, strict=True)}
    nodes = {answer.node: str(answer.root) for answer in answers if answer.node}
    return store, roots, nodes


def indexed(es: Elasticsearch, index: str) -> dict[str, str | None]:
    """Return the root of each article in the index; None if the article has no fingerprint."""
    es.indices.refresh(index=index)
    hits = helpers.scan(es, index=index, query={"_source": ["dedup.root"]})
    roots = {hit["_id"]: hit["_source"]["dedup"]["root"] for hit in hits}
    return {article_id: None if root.startswith("~") else root for article_id, root in roots.items()}


def nodes(es: Elasticsearch, forest: str) -> dict[str, str]:
    """Return the root of each node in the forest."""
    return {node.id: node.root for node in forests.nodes(es, forest).values()}


def versions(es: Elasticsearch, index: str) -> dict[str, tuple[int, int]]:
    """Return the version of each document of an index; a version changes with every write."""
    es.indices.refresh(index=index)
    hits = helpers.scan(es, index=index, query={"seq_no_primary_term": True})
    return {hit["_id"]: (hit["_primary_term"], hit["_seq_no"]) for hit in hits}
