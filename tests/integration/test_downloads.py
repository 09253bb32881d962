"""Downloads of a list: the feed and the files, parsed as a feed reader or script would."""

import asyncio
import csv
import io
import json
import re
import secrets
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import AsyncReader, Dedup, Reader
from esdedup.elastic.client import connect_async
from esdedup.web import downloads
from esdedup.web.app import create_app
from tests import sample
from tests.support.asgi import Request, Response, requests, send

DC = "{http://purl.org/dc/elements/1.1/}"
ATOM = "{http://www.w3.org/2005/Atom}"
ODD: list[dict[str, Any]] = [
    {"id": "formula", "title": '=HYPERLINK("http://evil.example";"x")', "text": "The tide table of Monday."},
    {
        "id": "lines",
        "title": 'He said "no",\nand left; 中文 & <b>',
        "text": "Nobody knows where he has gone to.",
    },
    {
        "id": "control",
        "title": "a\u0000b\u000bc\ufffe",
        "text": "This title contains three control characters.",
    },
    {"id": "script", "title": "A link", "text": "This link runs a script.", "url": "javascript:alert(1)"},
    {
        "id": "mail",
        "title": "-1",
        "text": "This date has the format used in email.",
        "published_at": "Sat, 21 Nov 2026 08:00:00 GMT",
    },
    {"id": "no-date", "title": "@x", "text": "Somebody forgot the date.", "published_at": "yesterday"},
    {
        "id": "several",
        "title": " ",
        "text": "Each of these fields has several values.",
        "published_at": ["2026-11-20T10:00:00Z", "some day"],
        "url": ["https://a.example/1", "https://a.example/2"],
    },
]


@pytest.fixture(scope="module")
def index(es: Elasticsearch) -> Iterator[str]:
    index, forest = (f"test-downloads-{what}-{secrets.token_hex(4)}" for what in ("articles", "forest"))
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        articles = [*sample.articles(120), *ODD]
        actions = ({"_index": index, "_id": each["id"], "_source": each} for each in articles)
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
    yield index
    es.indices.delete(index=[index, forest])


def ask(url: str, index: str, path: str, query: str = "", **headers: str) -> Response:
    (answer,) = requests(url, index, [Request(path=path, query=query, headers=headers)])
    assert answer.status == 200, answer.body
    return answer


def test_the_feed_has_an_item_for_each_row(es: Elasticsearch, elasticsearch_url: str, index: str) -> None:
    answer = ask(elasticsearch_url, index, "/feed.rss", "size=100")
    assert answer.headers["content-type"] == "application/rss+xml; charset=utf-8"
    channel = ET.fromstring(answer.content).find("channel")
    assert channel is not None
    rows = Reader(es).list(index, sort="newest", size=100).rows
    items = channel.findall("item")
    assert [item.findtext("guid") for item in items] == [f"urn:esdedup:cluster:{row.root}" for row in rows]
    for item, row in zip(items, rows, strict=True):
        found = item.findtext("pubDate")
        assert found is None or parsedate_to_datetime(found).year >= 2026
        assert (item.findtext("link") or "").startswith(("https://", "http://localhost:8000/article?id="))
        assert f"{row.similar:,} similar article" in (item.findtext("description") or "")
    by_id = dict(zip((row.id for row in rows), items, strict=True))
    assert by_id["lines"].findtext("title") == ODD[1]["title"]
    assert by_id["control"].findtext("title") == "a\ufffdb\ufffdc\ufffd"
    assert (by_id["script"].findtext("link") or "").endswith("/article?id=script")
    assert any(item.findtext(f"{DC}creator") for item in items)
    itself = channel.find(f"{ATOM}link")
    assert itself is not None
    assert itself.get("href") == "http://localhost:8000/feed.rss?size=100"
    assert channel.findtext("link") == "http://localhost:8000/"
    # The feed's entity tag changes only when there are new articles. A feed can be limited by search words.
    assert ask(elasticsearch_url, index, "/feed.rss", "size=100").headers["etag"] == answer.headers["etag"]
    narrowed = ET.fromstring(ask(elasticsearch_url, index, "/feed.rss", "q=harbour&dedup=false").content)
    guids = [each.text or "" for each in narrowed.iter("guid")]
    assert guids
    assert all(each.startswith("urn:esdedup:article:") for each in guids)
    assert len(guids) == len(set(guids))
    assert narrowed.findtext("channel/link") == "http://localhost:8000/?q=harbour&dedup=false"


def test_feeds_are_in_the_language_requested(elasticsearch_url: str, index: str) -> None:
    for query, wish in (("lang=zh", "en"), ("", "zh-CN")):
        headers = {"accept-language": wish}
        answer = ask(elasticsearch_url, index, "/feed.rss", f"q=harbour&size=100&{query}", **headers)
        assert answer.headers["content-language"] == "zh"
        channel = ET.fromstring(answer.content).find("channel")
        assert channel is not None
        found = {name: channel.findtext(name) for name in ("title", "description", "language")}
        assert found == {
            "title": f"{index}：harbour",
            "description": f"{index} 的报道，相似报道合为一条。",
            "language": "zh",
        }
        for item in channel.findall("item"):
            assert "篇相似报道" in (item.findtext("description") or "")
    untitled = ask(elasticsearch_url, index, "/feed.rss", "size=100&lang=zh").body
    assert "（无标题）" in untitled
    assert (
        "similar article" in ask(elasticsearch_url, index, "/feed.rss", "", **{"accept-language": "de"}).body
    )
    (refused,) = requests(elasticsearch_url, index, [Request(path="/feed.rss", query="lang=fr")])
    assert refused.status == 400


def test_a_feed_can_be_limited_to_large_stories(
    es: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    answer = ask(elasticsearch_url, index, "/feed.rss", "min_similar=3&size=100")
    found = [each.text for each in ET.fromstring(answer.content).iterfind("channel/item/guid")]
    rows = Reader(es).list(index, sort="newest", size=100).rows
    expected = [f"urn:esdedup:cluster:{row.root}" for row in rows if row.similar >= 3]
    assert found == expected != []


def test_the_files_have_the_rows_of_the_list(es: Elasticsearch, elasticsearch_url: str, index: str) -> None:
    rows = Reader(es).list(index, sort="similar-desc", size=1_000).rows
    answer = ask(elasticsearch_url, index, "/export.csv", "sort=similar-desc")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    name = f"{index}-{len(rows)}-of-{len(rows)}.csv"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert answer.headers["cache-control"] == "no-store"
    assert "link" not in answer.headers
    table = {each["id"]: each for each in csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig")))}
    assert [*table] == [row.id for row in rows]
    assert all(int(table[row.id]["similar"]) == row.similar for row in rows)
    # A title never becomes a formula. Times that can be parsed are in ISO 8601.
    assert table["formula"]["title"] == f"'{ODD[0]['title']}"
    assert (table["mail"]["title"], table["no-date"]["title"]) == ("'-1", "'@x")
    assert table["lines"]["title"] == ODD[1]["title"]
    assert table["mail"]["published_at"] == "2026-11-21T08:00:00+00:00"
    assert table["no-date"]["published_at"] == "yesterday"
    several = table["several"]
    assert several["published_at"] == "2026-11-20T10:00:00+00:00, some day"
    # A cell has only the first address, and a blank title becomes empty.
    assert (several["url"], several["title"]) == ("https://a.example/1", "")
    lines = ask(elasticsearch_url, index, "/export.jsonl", "sort=similar-desc").content.splitlines()
    parsed = [json.loads(line) for line in lines]
    assert [each["id"] for each in parsed] == [row.id for row in rows]
    assert {each["id"]: each["published_at"] for each in parsed}["mail"] == "2026-11-21T08:00:00+00:00"
    expected = rows[0].model_dump(mode="json")
    assert parsed[0] | {"published_at": None} == expected | {"published_at": None}


@pytest.mark.parametrize(
    ("text", "is_formula"),
    [
        *(
            (f"{before}{sign}1+1", True)
            for sign in "=+-@＝＋－＠﹢"
            for before in ("", " ", "\u200b\ufeff", "\0")
        ),
        *((f"{sign}x", True) for sign in "\t\r\n"),
        *((text, False) for text in ("", " ", "a=1", "（1）", "“-”", "\u200b", "5 - 3", "，")),
    ],
)
def test_no_cell_is_a_formula_in_any_spreadsheet(text: str, is_formula: bool) -> None:
    assert downloads._cell(text) == ("'" if is_formula else "") + text


def test_pages_contain_no_nul_characters(elasticsearch_url: str, index: str) -> None:
    for path, query in (("/", "q=%22control+characters%22"), ("/article", "id=control")):
        body = ask(elasticsearch_url, index, path, query).content
        assert "a\ufffdb".encode() in body
        assert b"\0" not in body


def test_several_dates_and_a_blank_title_are_shown(elasticsearch_url: str, index: str) -> None:
    body = ask(elasticsearch_url, index, "/", "q=%22several+values%22").body
    assert "Nov 20, 2026, 10:00, some day" in body
    assert re.search(r'<h2[^>]*><a href="[^"]*">several</a></h2>', body)


def test_requested_fields_are_columns(elasticsearch_url: str, index: str) -> None:
    answer = ask(elasticsearch_url, index, "/export.csv", "source_includes=text,nothing&size=3")
    for row in csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))):
        assert row["text"]
        assert row["nothing"] == ""


def test_a_truncated_export_links_to_the_next_part(
    es: Elasticsearch, elasticsearch_url: str, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Read the rows in small parts, as happens if there are thousands of rows.
    monkeypatch.setattr(downloads, "_READ_AT_ONCE", 7)
    rows = [row.id for row in Reader(es).list(index, sort="oldest", size=1_000).rows]
    found: list[str] = []
    query = "sort=oldest&size=20&page=3"
    while True:
        answer = ask(elasticsearch_url, index, "/export.jsonl", query)
        lines = answer.content.splitlines()
        found += [json.loads(line)["id"] for line in lines]
        assert f"-{len(lines)}-of-{len(rows)}.jsonl" in answer.headers["content-disposition"]
        if "link" not in answer.headers:
            break
        following, relation = answer.headers["link"].split("; ")
        assert relation == 'rel="next"'
        query = following.strip("<>").partition("?")[2]
    assert found == rows
    # Exports are also truncated by their size in bytes.
    monkeypatch.setattr(downloads, "_MAX_EXPORTED_BYTES", 2_000)
    short = ask(elasticsearch_url, index, "/export.jsonl", "sort=oldest")
    assert len(short.content.splitlines()) < 20
    assert "link" in short.headers
    (refused,) = requests(elasticsearch_url, index, [Request(path="/export.csv", query="size=10001")])
    assert (refused.status, refused.headers["content-type"]) == (400, "application/problem+json")


def test_too_many_concurrent_exports_are_refused(
    elasticsearch_url: str, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = 0

    async def at_once() -> list[Response]:
        may_continue = asyncio.Event()
        read = AsyncReader.list

        async def wait(*args: Any, **options: Any) -> Any:
            nonlocal started
            started += 1
            await may_continue.wait()
            return await read(*args, **options)

        monkeypatch.setattr(AsyncReader, "list", wait)
        async with connect_async(elasticsearch_url) as client:
            app = create_app(client, index)
            given = [asyncio.create_task(send(app, Request(path="/export.csv"))) for _ in range(3)]
            while not any(each.done() for each in given) or started < 2:
                await asyncio.sleep(0.01)
            may_continue.set()
            return await asyncio.gather(*given)

    answers = sorted(asyncio.run(at_once()), key=lambda each: each.status)
    assert [each.status for each in answers] == [200, 200, 503]
    assert answers[2].headers["retry-after"] == "1"
    assert answers[2].json["type"] == "urn:esdedup:problem:requests"


def test_lone_surrogates_are_replaced(es: Elasticsearch, elasticsearch_url: str, index: str) -> None:
    """Another program has indexed lone surrogates, which UTF-8 cannot encode."""
    dedup = {"root": "half", "seq": 10**6, "published": 1_790_000_000_000, "fingerprint": "f"}
    article = {"title": "a\ud800b", "text": "c\udfff", "source": "\ud83d", "author": {"\ud800": "\ud800"}}
    target = f"/{index}/_doc/half?refresh=true"
    # Send the surrogates as JSON escapes, which Elasticsearch accepts.
    body = json.dumps(article | {"dedup": dedup})
    headers = {"content-type": "application/json", "accept": "application/json"}
    es.transport.perform_request("PUT", target, headers=headers, body=body)
    try:
        paths = {"/export.jsonl": "", "/export.csv": "", "/feed.rss": "", "/": "", "/article": "id=half"}
        paths |= {f"/api/v1/{name}": "id=half" for name in ("article", "similar", "versions", "timeline")}
        paths |= {"/api/v1/articles": "root=half", "/api/v1/list": "size=1", "/api/v1/overview": ""}
        without = {"/", "/article", "/api/v1/versions", "/api/v1/timeline"}
        given = [
            Request(path=path, query=query + ("" if path in without else "&source_includes=author"))
            for path, query in paths.items()
        ]
        answers = dict(zip(paths, requests(elasticsearch_url, index, given), strict=True))
        for path, got in answers.items():
            assert (got.status, bool(got.content.decode())) == (200, True), path
        answer = answers["/api/v1/article"].json
        assert (answer["title"], answer["text"], answer["included"]["author"]) == ("a?b", "c?", {"?": "?"})
    finally:
        es.delete(index=index, id="half", refresh=True)
