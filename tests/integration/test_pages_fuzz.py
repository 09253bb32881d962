"""The pages and the API never fail, whatever values their parameters have."""

import base64
import itertools
import json
import random
import secrets
from collections.abc import Iterator
from urllib.parse import quote, unquote

import pytest
from elasticsearch import Elasticsearch, helpers
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from esdedup import Dedup, Reader
from esdedup.elastic.mappings import article_index
from esdedup.fields import Fields
from esdedup.web.app import api_description
from esdedup.web.formats import MAX_SHOWN_TEXT
from tests import sample
from tests.support.asgi import Request, requests
from tests.support.exploring import examples
from tests.support.from_openapi import Description

DESCRIPTION = Description(api_description())
LISTS = ("/", "/api/v1/list", "/feed.rss", "/export.csv", "/export.jsonl")
ARTICLE_PATHS = ("/article", "/api/v1/article", "/api/v1/similar", "/api/v1/sources", "/api/v1/timeline")
PARAMETERS = {
    LISTS: "q since until source where sort head min_similar min_sources dedup details arrived_since page "
    "size after",
    ARTICLE_PATHS: "id index view other_sources page size after",
    ("/article",): "id index view other_sources page listed",
    ("/compare",): "one other listed",
    ("/language",): "to back",
}
TIME_PARAMETERS = {"since", "until", "arrived_since", "after"}
# The parameters that name articles.
PLACES = {ARTICLE_PATHS: ("id",), ("/article",): ("id",), ("/compare",): ("one", "other")}
# URL-encoded values.
VALUES = (
    *("", "%00", "a" * 8_000, "9" * 30, "-1", "NaN", "1e400", "%ED%A0%80", "-", "a,b", "*", "%E2%80%AE"),
    *("9007199254740991", "-9007199254740991", "0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59"),
    *("now-1d/d", "%3Cscript%3E", "..%2f", "a%0d%0aSet-Cookie:%20x"),
)
NUMBERS = (10**4_299, 2**63, -(2**63) - 1)
BODIES = (
    *(b"", b"null", b"{}", b'{"text": null}', b'{"text": "\\ud800"}', b'{"text": "\\u0000"}', b"\xff\xfe"),
    *(b"[" * 100_000, b'{"text": 1e999}', b'{"text": NaN}', b'{"text": ""}'),
)


def forest_of(index: str) -> str:
    return index.replace("articles", "forest")


@pytest.fixture(scope="module", params=["date", "date_nanos"])
def unit(request: pytest.FixtureRequest) -> str:
    """The Elasticsearch type of the articles' times, which determines their unit."""
    return str(request.param)


@pytest.fixture(scope="module")
def index(es: Elasticsearch, unit: str) -> Iterator[str]:
    """An index of articles whose times have millisecond or nanosecond precision."""
    index = f"test-fuzz-articles-{secrets.token_hex(4)}"
    forest = forest_of(index)
    mappings = article_index(Fields())["mappings"]
    mappings["properties"]["published_at"] = {"type": unit}
    es.indices.create(index=index, mappings=mappings)
    with Dedup(es, forest=forest) as dedup:
        actions = ({"_index": index, "_id": each["id"], "_source": each} for each in sample.articles(60))
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
    yield index
    es.indices.delete(index=[index, forest])


def forged(cursor: str) -> Iterator[str]:
    """Yield copies of a cursor with other numbers, as a visitor could forge them."""
    values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    places = [
        [],
        values[3],
        *([number, 1, "x"] for number in NUMBERS),
        *([1, number, "\ud800"] for number in NUMBERS),
    ]
    for place in places:
        for page, offset in (
            (2, 1),
            *((number, 1) for number in NUMBERS),
            *((2, number) for number in NUMBERS),
        ):
            if place is values[3] or (page, offset) == (2, 1):
                text = json.dumps([values[0], page, offset, place])
                yield base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_odd_parameters_never_cause_a_server_error(
    es: Elasticsearch, elasticsearch_url: str, index: str, unit: str
) -> None:
    reader = Reader(es)
    head = reader.list(index, sort="similar-desc", size=1).rows[0].id
    # Send each odd value of each parameter to one of the pages that accept it.
    choose = random.Random(1).choice
    given = [
        Request(
            path=choose(paths),
            query="&".join(
                [*(f"{each}={head}" for each in PLACES.get(paths, ()) if each != name), f"{name}={value}"]
            ),
        )
        for paths, names in PARAMETERS.items()
        for name, value in itertools.product(names.split(), VALUES)
        # The unit of times matters only to parameters with times.
        if unit == "date" or name in TIME_PARAMETERS
    ]
    lists = {sort: reader.list(index, sort=sort, size=2).next for sort in ("newest", "similar-desc")}
    for sort, cursor in lists.items():
        given += [
            Request(path=choose(LISTS), query=f"sort={sort}&after={each}") for each in forged(cursor or "")
        ]
    after_similar = reader.similar(index, head, size=1).next or ""
    given += [
        Request(path="/api/v1/similar", query=f"id={quote(head)}&after={each}")
        for each in forged(after_similar)
    ]
    json_type = {"content-type": "application/json"}
    given += [Request(path="/api/v1/similar", method="POST", headers=json_type, body=body) for body in BODIES]
    answers = requests(elasticsearch_url, index, given, of={"forest": forest_of(index)})
    failed = {
        (each.path, each.query[:200], each.body[:40], response.status, response.body[-200:])
        for each, response in zip(given, answers, strict=True)
        if response.status >= 500 or "content-security-policy" not in response.headers
    }
    assert not failed


@examples(4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_described_operation_fails(elasticsearch_url: str, index: str, data: st.DataObject) -> None:
    """The description lists each status, and each error is a problem document (RFC 9457)."""
    (first, *_) = sample.articles(60)
    known = {
        "id": [first["id"], "none"],
        "q": ["harbour", '"a phrase" -x', "("],
        "source": [first["source"], "none"],
        "where": ["source:x", "nothing:y", "x"],
        "source_includes": ["url", "dedup,text"],
        "text": [first["text"]],
        "sort": ["newest", "similar-desc"],
    }
    sent = data.draw(st.lists(DESCRIPTION.requests(known=known), min_size=10, max_size=10))
    batch = [
        Request(
            path=unquote(each.target.partition("?")[0]),
            query=each.target.partition("?")[2],
            method=each.method,
            headers={name.lower(): value for name, value in each.headers.items()},
            body=each.body,
        )
        for each in sent
    ]
    answers = requests(elasticsearch_url, index, batch, of={"forest": forest_of(index)})
    for each, answer in zip(sent, answers, strict=True):
        assert answer.status < 500, (each, answer.body)
        assert str(answer.status) in each.answers or answer.status == 413, (each, answer.status, answer.body)
        if answer.status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json["status"] == answer.status


def test_long_values_are_shortened(es: Elasticsearch, elasticsearch_url: str) -> None:
    index, forest = (f"test-long-{what}-{secrets.token_hex(4)}" for what in ("articles", "forest"))
    about = {
        "url": f"https://a.example/{'x' * 300_000}",
        "source": ["x" * 30_000 + str(n) for n in range(10)],
    }
    articles = [
        {"text": f"The harbour council voted on Monday to buy a second ferry {number} {end}", **about}
        for number, end in enumerate(("", "", "'" * 300_000))
    ]
    try:
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index)
            actions = (
                {
                    "_index": index,
                    "_id": f"a{number}",
                    "_source": each | {"title": f"{number} " + "y" * 10**6},
                }
                for number, each in enumerate(articles)
            )
            helpers.bulk(es, dedup.enrich(actions), refresh=True)
        given = [
            *(("/", ""), ("/article", "id=a0"), ("/compare", "one=a0&other=a1")),
            *(
                ("/api/v1/list", ""),
                *((f"/api/v1/{each}", "id=a0") for each in ("article", "similar", "sources")),
            ),
            *((path, "id=a2") for path in ("/article", "/api/v1/article")),
        ]
        batch = [Request(path=path, query=query) for path, query in given]
        answers = requests(elasticsearch_url, index, batch)
        assert {each.status for each in answers} == {200}
        for page in answers[:3]:
            assert "y" * 200 in page.body
            assert len(page.body) < 20_000
            assert "characters are shown" not in page.body
        assert all(len(answer.body) < 20_000 for answer in answers[3:-2])
        # Pages escape a quote; JSON does not.
        for answer, of_character in zip(answers[-2:], (len("&#39;"), len("'")), strict=True):
            assert 0 < len(answer.body) - of_character * MAX_SHOWN_TEXT < 20_000
        assert ["Only the first 200,000 characters are shown" in each.body for each in answers[-2:]] == [
            True,
            False,
        ]
    finally:
        es.indices.delete(index=[index, forest], ignore_unavailable=True)
