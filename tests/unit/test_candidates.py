"""A search for candidates whose hits fill a page is split from then on."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks.signatures import random_ones
from esdedup.elastic.forest.candidates import CandidateSearch
from esdedup.elastic.limits import DEFAULT_LIMITS, Limits
from esdedup.elastic.requests import Search, SearchPoint
from esdedup.fingerprint.bands import TRIPLES
from esdedup.fingerprint.profile import VERIFIED
from esdedup.forest import NO_TIME
from esdedup.neighbours.relation import relation_of

_BATCH = 512


def terms_in(query: Any) -> Iterator[str]:
    """Yield all terms and ids of a query."""
    if isinstance(query, list) and all(isinstance(each, str) for each in query):
        yield from query
    elif isinstance(query, dict | list):
        for each in query.values() if isinstance(query, dict) else query:
            yield from terms_in(each)


def found(search: CandidateSearch, *, hits_a_term: float) -> tuple[list[list[str]], int]:
    """Find candidates in an index in which every term finds some hits; return each query's terms.

    Also return how many pages were read after first pages.
    """
    signatures = random_ones(VERIFIED, _BATCH, np.random.default_rng(1))
    steps = search.find(signatures, live_since_ms=NO_TIME)
    answer: Any = None
    queries: list[list[str]] = []
    pages = 0
    hit = {"fields": {"packed": ["AA=="]}, "sort": [1]}
    while True:
        try:
            request = steps.send(answer)
        except StopIteration:
            return queries, pages
        if isinstance(request, Search) and "aggs" in request.bodies[0]:
            names = request.bodies[0]["aggs"]["keys"]["filters"]["filters"]
            answer = [{"aggregations": {"keys": {"buckets": {key: {"doc_count": 1} for key in names}}}}]
        elif isinstance(request, Search):
            some = [list(terms_in(body["query"])) for body in request.bodies]
            queries += some
            counts = [min(request.bodies[0]["size"], int(hits_a_term * len(terms))) for terms in some]
            answer = [{"hits": {"hits": [hit] * count}} for count in counts]
        elif isinstance(request, SearchPoint):
            pages, answer = pages + 1, {"hits": {"hits": []}, "pit_id": "point"}
        else:
            answer = "point"


@pytest.mark.parametrize("limits", [DEFAULT_LIMITS, Limits(max_hits=2_000)])
def test_queries_are_split_once_hits_fill_a_page(limits: Limits) -> None:
    search = CandidateSearch(forest="forest", relation=relation_of(VERIFIED), layout=TRIPLES, limits=limits)
    whole, no_pages = found(search, hits_a_term=0.05)
    assert not no_pages
    # The parts of a large batch are searched for at the same time.
    assert 3 < len(whole) < 8
    while found(search, hits_a_term=1.5)[1]:
        pass
    queries, _ = found(search, hits_a_term=1.5)
    assert len(whole) < len(queries) < 64
    assert max(map(len, queries)) < limits.max_hits
    assert sorted(term for query in queries for term in query) == sorted(
        term for query in whole for term in query
    )


def test_queries_keep_some_terms_however_many_nodes_they_find() -> None:
    search = CandidateSearch(
        forest="forest", relation=relation_of(VERIFIED), layout=TRIPLES, limits=DEFAULT_LIMITS
    )
    for _ in range(20):
        queries, pages = found(search, hits_a_term=1_000)
    assert pages == len(queries) < 32
