"""Every option of the pages and of the JSON API has the same effect as in the library."""

import html
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from elasticsearch import Elasticsearch
from elasticsearch._async.client.indices import IndicesClient

from esdedup import Dedup, Page, Reader
from esdedup.fingerprint.profile import CLASSIC
from esdedup.reading.verdict import RULES, Outcome
from esdedup.reading.versions import TimeOrder
from tests import sample
from tests.support.asgi import Request, Response, request, requests
from tests.support.forests import feed
from tests.support.names import Names, new_names
from tests.support.pages import article

Fed = tuple[str, str]
# There are enough articles for a cluster with several pages of results.
ARTICLES = list(sample.articles(800))
(SOURCE, _), (OTHER_SOURCE, _) = Counter(each["source"] for each in ARTICLES).most_common(2)


@pytest.fixture(scope="module")
def fed(es: Elasticsearch) -> Iterator[Fed]:
    """An index of the sample's articles, and its forest."""
    with new_names(es) as name:
        index, forest = name("options"), name("forest")
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index)
            feed(es, dedup, index, [{"_id": each["id"], **each} for each in ARTICLES])
        yield index, forest


def all_of(url: str, index: str, path: str, given: list[dict[str, Any]]) -> list[Response]:
    """Get a path with each set of parameters from one application, since creating an application is slow."""
    return requests(url, index, [Request(path=path, query=urlencode(each, doseq=True)) for each in given])


def shown(page: str, heading: str) -> list[str]:
    """Return the ids of the articles that a page lists."""
    links = re.findall(rf'<{heading} [^>]*><a href="([^"]*)"', page)
    return [parse_qs(urlsplit(html.unescape(link)).query)["id"][0] for link in links]


LISTS: list[dict[str, Any]] = [
    {},
    {"q": "ferry"},
    {"q": "ferry", "min_similar": 1},
    {"q": "ferry", "sort": "oldest", "head": "best"},
    {"since": "2026-09-10", "until": "2026-09-20"},
    {"source": SOURCE, "sort": "similar-desc"},
    {"source": [SOURCE, OTHER_SOURCE], "sort": "oldest"},
    {"q": "ferry", "sort": "similar-asc", "head": "longest"},
    {"min_sources": 2, "sort": "oldest"},
    {"sort": "newest", "head": "earliest", "size": 7},
    {"dedup": False, "size": 50},
    {"q": "ferry", "dedup": False},
    {"page": 2, "size": 5},
]


def test_list_options_give_the_librarys_rows(es: Elasticsearch, elasticsearch_url: str, fed: Fed) -> None:
    index, _ = fed
    reader = Reader(es)
    pages: list[tuple[dict[str, Any], Page]] = []
    following: list[tuple[dict[str, Any], Page]] = []
    for options in LISTS:
        left = dict(options)
        filters = {name: left.pop(name) for name in ("since", "until", "source", "where") if name in left}
        query = reader.search_query(index, left.pop("q", None), **filters)
        expected = reader.list(index, query=query, **left)
        assert expected.rows, options
        pages.append((options, expected))
        if expected.next is not None:
            after = {"page": 1, "after": expected.next}
            following.append((options | after, reader.list(index, query=query, **left | after)))
    assert following
    answers = all_of(elasticsearch_url, index, "/api/v1/list", [options for options, _ in pages])
    assert [answer.json for answer in answers] == [expected.model_dump(mode="json") for _, expected in pages]
    both = pages + following
    answers = all_of(elasticsearch_url, index, "/", [options for options, _ in both])
    for (options, expected), page in zip(both, answers, strict=True):
        assert (page.status, shown(page.body, "h2")) == (200, [row.id for row in expected.rows]), options
        # Rows are not numbered, because an earlier page that was cut short has fewer rows.
        assert ('<ol class="rows">' in page.body) is bool(expected.rows)


def test_article_options_give_the_librarys_results(
    es: Elasticsearch, elasticsearch_url: str, fed: Fed
) -> None:
    index, _ = fed
    reader = Reader(es)
    head = reader.list(index, sort="similar-desc", size=1).rows[0].id

    def responses(path: str, given: list[dict[str, Any]]) -> list[Response]:
        answers = all_of(elasticsearch_url, index, path, [{"id": head, **each} for each in given])
        assert {each.status for each in answers} == {200}
        return answers

    views: list[TimeOrder] = ["oldest", "newest"]
    given: list[dict[str, Any]] = [
        {"other_sources": other_sources, "view": view, "page": number}
        for other_sources, view, number in itertools.product((False, True), views, (1, 2))
    ]
    for options, got in zip(given, responses("/article", given), strict=True):
        sort = options["view"]
        expected = reader.versions(
            index, head, other_sources=options["other_sources"], sort=sort, page=options["page"]
        )
        # Leave out the excerpts.
        listed = got.body.split('id="excerpts"')[0]
        assert shown(listed, "h3") == [each.article.id for each in expected.versions]
        assert expected.versions or options["page"] == 2
    by_itself, oldest = responses("/article", [{"index": index}, {"view": "oldest", "page": 1}])
    assert shown(by_itself.body, "h3") == shown(oldest.body, "h3")
    both: list[dict[str, Any]] = [{"other_sources": False}, {"other_sources": True}]
    for name in ("similar", "sources"):
        second: list[dict[str, Any]] = [{**each, "page": 2, "size": 3} for each in both]
        assert [got.json for got in responses(f"/api/v1/{name}", second)] == [
            getattr(reader, name)(index, head, **each).model_dump(mode="json") for each in second
        ]
    for each, by_source in zip(
        both, responses("/article", [{"view": "source", **each} for each in both]), strict=True
    ):
        sources = reader.sources(index, head, size=24, **each).sources
        listed = by_source.body.split('<ul class="sources">')[1].split("</ul>")[0]
        assert [html.unescape(name) for name in re.findall(r'<span class="source">([^<]*)<', listed)] == [
            each.source for each in sources
        ]


def test_an_articles_page_declares_its_language(es: Elasticsearch, elasticsearch_url: str, fed: Fed) -> None:
    index, _ = fed
    article_id = "in-german"
    source = es.get(index=index, id=Reader(es).list(index, size=1).rows[0].id)["_source"]
    german = source | {"title": "Im Hafen", "text": "Die Fähre fährt wieder.", "language": "de"}
    es.index(index=index, id=article_id, document=german, refresh=True)
    page = request(elasticsearch_url, index, "/article", id=article_id).body
    es.delete(index=index, id=article_id, refresh=True)
    assert '<h1 lang="de">' in page
    assert '<div class="text" lang="de">' in page


def test_two_articles_are_compared_and_explained(es: Elasticsearch, elasticsearch_url: str, fed: Fed) -> None:
    index, forest = fed
    reader = Reader(es, forest=forest)
    rows = reader.list(index, sort="similar-desc", size=2).rows
    one = rows[0]
    other = reader.similar(index, one.id).rows[0]

    def compared(one: str, other: str) -> Response:
        return request(elasticsearch_url, index, "/compare", one=one, other=other, of={"forest": forest})

    got = compared(f"{index}/{one.id}", other.id)
    assert got.status == 200
    found = reader.explain(index, one.id, other.id)
    assert found.outcome is Outcome.TOGETHER
    assert "<strong>One story.</strong>" in got.body
    assert RULES[found.comparison.rule] in got.body
    assert "<del>only in A</del>" in got.body
    # Compare two stories, and an article with itself.
    assert "<strong>Two stories.</strong>" in compared(one.id, rows[1].id).body
    itself = compared(one.id, one.id).body
    assert "A and B are the same article." in itself
    assert "What differs" not in itself
    assert compared("none", one.id).status == compared(one.id, f"none/{one.id}").status == 404
    assert compared(one.id, f"https://desk.example/article?id={other.id}").status == 200
    # An article's id may look like an address.
    address = "https://a.example/article?id=7"
    es.index(index=index, id=address, document=es.get(index=index, id=one.id)["_source"], refresh=True)
    assert compared(one.id, address).status == compared(address, f"{index}/{address}").status == 200
    es.delete(index=index, id=address, refresh=True)
    # The earlier of the two articles is A.
    page = request(elasticsearch_url, index, "/article", id=one.id).body
    links = [
        parse_qs(urlsplit(html.unescape(each)).query) for each in re.findall('href="(/compare[^"]*)"', page)
    ]
    published = {str(each["id"]): str(each["published_at"]) for each in ARTICLES}
    for link in links:
        earlier, later = (link[name][0].removeprefix(f"{index}/") for name in ("one", "other"))
        assert one.id in {earlier, later}
        assert published[earlier] <= published[later]
    assert links


def test_the_same_wording_is_not_the_same_text(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    index, forest = index_name("wording"), index_name("forest")
    text = " ".join(map(article, range(20)))
    texts = {"one": text, "copy": text, "same": text.replace(".", "!"), "longer": f"{text} More."}
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [{"_id": name, "title": name, "text": each} for name, each in texts.items()])
    page = request(elasticsearch_url, index, "/article", id="one").body
    assert "and 2 more with the same wording" in page
    # Collapsed copies can be compared, too.
    for name in ("same", "longer"):
        assert re.search(rf'href="/compare\?[^"]*%2F{name}\b', page)
    is_same = "The texts are the same, word for word."
    for name, expected in (("copy", True), ("same", False)):
        compared = request(elasticsearch_url, index, "/compare", one="one", other=name)
        assert (is_same in compared.body) is expected
    # A text with another wording is never 100% similar.
    assert re.findall(r"(\d+)% similar", page) == ["99"]


def test_a_text_is_looked_up_page_by_page(es: Elasticsearch, elasticsearch_url: str, fed: Fed) -> None:
    index, forest = fed
    text = str(ARTICLES[0]["text"])
    reader = Reader(es, forest=forest)
    pages: list[dict[str, Any]] = [{}, {"size": 1}, {"page": 2, "size": 1}]
    for options in pages:
        got = request(
            elasticsearch_url, index, "/api/v1/similar", post={"text": text}, of={"forest": forest}, **options
        )
        assert got.json == reader.similar_to_text(index, text, **options).model_dump(mode="json")


def test_simultaneous_lookups_refresh_the_forest_once(
    elasticsearch_url: str, fed: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, forest = fed
    refreshed: list[str] = []

    async def refresh(_: IndicesClient, *, index: str) -> None:
        refreshed.append(index)

    monkeypatch.setattr(IndicesClient, "refresh", refresh)
    monkeypatch.setattr("esdedup.web.app.REFRESH_INTERVAL_S", 600.0)
    body = json.dumps({"text": ARTICLES[0]["text"]}).encode()
    json_type = {"content-type": "application/json"}
    given = [Request(path="/api/v1/similar", method="POST", headers=json_type, body=body)] * 5
    answers = requests(elasticsearch_url, index, given, of={"forest": forest})
    assert {(answer.status, answer.body) for answer in answers} == {(200, answers[0].body)}
    assert refreshed == [forest]


def test_a_search_from_an_article_keeps_the_filters(elasticsearch_url: str, fed: Fed) -> None:
    id_, listed = (
        ARTICLES[0]["id"],
        urlencode({"source": [SOURCE, "A & B"], "q": "ferry", "page": 2}, doseq=True),
    )
    for path, given in ("/article", {"id": id_}), ("/compare", {"one": id_, "other": id_}):
        page = request(elasticsearch_url, fed[0], path, listed=listed, **given).body
        (search,) = re.findall(r'<form class="search".*?</form>', page, re.DOTALL)
        assert 'name="q" value="ferry"' in search
        kept = re.findall(r'type="hidden" name="(.*?)" value="(.*?)"', search)
        assert kept == [("source", SOURCE), ("source", "A &amp; B")]


def test_links_keep_the_filter_of_other_sources(es: Elasticsearch, elasticsearch_url: str, fed: Fed) -> None:
    index, forest = fed
    reader = Reader(es, forest=forest)
    root = reader.list(index, sort="similar-desc", size=1).rows[0].root
    of_cluster = reader.list(index, query={"term": {"dedup.root": root}}, dedup=False, size=100).rows
    source, count = Counter(each.source for each in of_cluster).most_common(1)[0]
    assert count > 1
    own = next(each for each in of_cluster if each.source == source)
    for other_sources in (False, True):
        options: dict[str, Any] = {"other_sources": "true"} if other_sources else {}
        page = request(elasticsearch_url, index, "/article", id=own.id, view="source", **options).body
        listed = reader.sources(index, own.id, other_sources=other_sources)
        assert f"<span>{listed.total_sources} sources</span>" in page
        assert listed.total_sources == reader.sources(index, own.id).total_sources - other_sources
        # Links to other orders and pages keep the filter.
        views = re.findall(r'href="(/article[^"]*)#similar"', page)
        assert sum("other_sources=true" in each for each in views) >= (3 if other_sources else 1)


@pytest.mark.parametrize(
    ("of", "status"), [({"forest": "test-no-such-forest"}, 409), ({"profile": CLASSIC}, 503)]
)
def test_an_unsuitable_forest_is_refused(
    elasticsearch_url: str, fed: Fed, of: dict[str, Any], status: int
) -> None:
    index, forest = fed
    got = request(
        elasticsearch_url,
        index,
        "/api/v1/similar",
        post={"text": ARTICLES[0]["text"]},
        of={"forest": forest} | of,
    )
    assert got.status == status
    assert "forest" in got.json["detail"]


def test_an_index_that_is_not_ready_is_a_conflict(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    missing, foreign = index_name("missing"), index_name("foreign")
    es.indices.create(index=foreign)
    for index, message in ((missing, "there is no index"), (foreign, "lacks fields of esdedup")):
        for path in ("/api/v1/list", "/"):
            got = request(elasticsearch_url, index, path)
            assert got.status == 409
            assert message in got.body


def test_an_unreachable_server_gives_502() -> None:
    paths: dict[str, dict[str, Any]] = {"/api/v1/list": {}, "/": {}, "/article": {"id": "1"}}
    for path, query in paths.items():
        got = request("http://127.0.0.1:9", "news", path, **query)
        assert got.status == 502
        assert "Elasticsearch does not answer" in got.body


def test_the_list_shows_pictures_from_a_field(es: Elasticsearch, elasticsearch_url: str) -> None:
    """Only pictures that pages are allowed to load are shown."""
    pictures: list[Any] = [
        "https://pictures.example/1.jpg",
        ["https://pictures.example/2.jpg", "https://pictures.example/3.jpg"],
        "http://pictures.example/4.jpg",
        'https://pictures.example/5.jpg" onerror="alert(1)',
        "javascript:alert(1)",
        7,
        [],
        None,
    ]
    with new_names(es) as name:
        index, forest = name("pictures"), name("forest")
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index)
            articles = (
                {"_id": str(at), "text": article(at), "media": {"picture": each}}
                for at, each in enumerate(pictures)
            )
            feed(es, dedup, index, list(articles))
        plain = request(elasticsearch_url, index, "/")
        page = request(elasticsearch_url, index, "/", of={"thumbnail_field": "media.picture"})
    loaded = [html.unescape(each) for each in re.findall(r'<img class="thumbnail" src="([^"]*)"', page.body)]
    assert sorted(loaded) == [
        "https://pictures.example/1.jpg",
        "https://pictures.example/2.jpg",
        'https://pictures.example/5.jpg" onerror="alert(1)',
    ]
    policy = "content-security-policy"
    assert "<img" not in plain.body
    assert "img-src 'self';" in plain.headers[policy]
    assert page.headers[policy] == plain.headers[policy].replace("img-src 'self'", "img-src 'self' https:")
