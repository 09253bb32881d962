"""The pages in a real browser, the JSON API, and the visible text of random markup."""

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers
from playwright.sync_api import Browser, Page

import esdedup
from esdedup import Dedup, Reader
from esdedup.text.parsed import visible_text
from tests.support.browsing import SampleSite, served, watched
from tests.support.forests import ARTICLES

SCRIPT = "<script>document.title='caught'</script>"
ODD: list[dict[str, Any]] = [
    {
        "_id": "odd/1?&#",
        "title": f"Ferry {SCRIPT} & \"quotes\" 'here'",
        "text": f"{SCRIPT}<b>bold</b> The ferry to the outer islands runs again from Monday, they say. &amp;",
        "source": "A & <B>",
        "published_at": "2026-11-02T03:04:05Z",
        "url": "javascript:alert(1)",
    },
    {
        "_id": "never",
        "text": "A reprint whose time stands in microseconds, of a note about tides and the moon above.",
        "published_at": 1790000000000000,
    },
    {
        "_id": "once",
        "text": "A reprint whose time stands in microseconds, of a note about tides and the moon above!",
        "published_at": "2026-09-20T08:00:00Z",
    },
    {
        "_id": "bare",
        "text": "This one has nothing but a text about lighthouses and their keepers, and no title.",
    },
]


@pytest.fixture(scope="module")
def site(es: Elasticsearch, elasticsearch_url: str) -> Iterator[str]:
    """The address of pages that show the sample and four odd articles."""
    index, forest = "test-pages", "test-pages-forest"
    es.options(ignore_status=404).indices.delete(index=[index])
    es.options(ignore_status=404).indices.delete(index=[forest])
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        actions = ({"_index": index, **article} for article in [*ARTICLES, *ODD])
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
    with served("--index", index, "--forest", forest, "--url", elasticsearch_url) as address:
        yield address
    es.indices.delete(index=[index, forest])


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    with watched(browser, getattr(request, "param", "wide")) as page:
        yield page


narrow = pytest.mark.parametrize("page", ["narrow"], indirect=True)


def unfold(page: Page) -> None:
    """Open the filters, which are collapsed in narrow windows."""
    summary = page.get_by_text("Filters and sorting")
    if summary.is_visible() and not page.get_by_label("Sort by").is_visible():
        summary.click()


def get(address: str, **parameters: Any) -> Any:
    with urllib.request.urlopen(f"{address}?{urllib.parse.urlencode(parameters)}") as answer:
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        return json.load(answer)


def test_a_visitor_sorts_paginates_and_opens_a_similar_article(site: str, page: Page) -> None:
    page.goto(site)
    total = page.locator(".totals strong").nth(1).inner_text()
    assert int(total.replace(",", "")) == len(ARTICLES) + len(ODD)
    # Sort by the number of similar articles.
    unfold(page)
    page.get_by_label("Sort by").select_option("Most similar")
    with page.expect_navigation():
        page.get_by_role("button", name="Search").click()
    badges = [int(re.sub(r"\D", "", each)) for each in page.locator(".badge").all_inner_texts()]
    assert len(badges) > 5
    assert badges == sorted(badges, reverse=True)
    # The next page repeats no row.
    first = page.locator(".row h2 a").evaluate_all("links => links.map(link => link.href)")
    with page.expect_navigation():
        page.get_by_role("link", name="Next page").click()
    second = page.locator(".row h2 a").evaluate_all("links => links.map(link => link.href)")
    assert second
    assert not set(first) & set(second)
    assert page.get_by_label("Sort by").input_value() == "similar-desc"
    with page.expect_navigation():
        page.get_by_role("link", name="Next page").click()
    with page.expect_navigation():
        page.get_by_role("link", name="Previous page").click()
    again = page.locator(".row h2 a").all_inner_texts()
    with page.expect_navigation():
        page.get_by_role("link", name="Next page").click()
    with page.expect_navigation():
        page.get_by_role("link", name="First page").click()
    with page.expect_navigation():
        page.get_by_role("link", name="Next page").click()
    assert page.locator(".row h2 a").all_inner_texts() == again
    with page.expect_navigation():
        page.get_by_role("link", name="Previous page").click()
    # Open the largest story and follow the link to a similar article.
    title = page.locator(".row h2 a").first.inner_text()
    with page.expect_navigation():
        page.locator(".row h2 a").first.click()
    assert page.locator("h1").inner_text() == title
    assert page.locator(".timeline rect").count() > 1
    here = page.url
    target = page.locator("#similar .version:not(.own) h3 a").last
    address = target.get_attribute("href")
    with page.expect_navigation():
        target.click()
    assert page.url != here
    assert page.url.endswith(str(address))
    # The first article is listed among the similar articles of the second article.
    links = get(
        f"{site}/api/v1/similar",
        id=urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query)["id"][0],
        size=100,
    )
    assert urllib.parse.parse_qs(urllib.parse.urlsplit(here).query)["id"][0] in {
        each["id"] for each in links["rows"]
    }


def test_an_article_links_back_to_the_results(site: str, page: Page) -> None:
    page.goto(f"{site}/?q=the&sort=oldest&dedup=false&page=2")
    results = page.url
    titles = page.locator(".row h2 a").all_inner_texts()
    for _ in range(2):
        with page.expect_navigation():
            page.locator(".row h2 a, #similar h3 a").last.click()
        assert page.get_by_label("Search words").input_value() == "the"
    with page.expect_navigation():
        page.get_by_text("Back to the results for “the”").click()
    queries = (urllib.parse.parse_qs(each.partition("?")[2]) for each in (page.url, results))
    assert next(queries) == next(queries)
    assert page.locator(".row h2 a").all_inner_texts() == titles
    # If `listed` is invalid, the link leads to the unfiltered list.
    for wrong in ("sort=x", "%00=%ff", "page=0", "javascript:alert(1)"):
        page.goto(f"{site}/article?id=bare&listed={urllib.parse.quote(wrong)}")
        assert page.get_by_text("Back to the results").get_attribute("href") == "/"


@narrow
def test_searched_words_are_marked_in_rows(site: str, page: Page) -> None:
    page.goto(f"{site}/?q=harbour")
    marked = page.locator(".row mark").all_inner_texts()
    assert marked
    assert {each.lower() for each in marked} == {"harbour"}
    # The first result is visible without scrolling.
    box = page.locator(".row").first.bounding_box()
    assert box is not None
    assert page.viewport_size is not None
    assert box["y"] + 80 < page.viewport_size["height"]


def test_the_first_result_opens_with_the_keyboard_alone(site: str, page: Page) -> None:
    page.goto(site)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.row') !== null")
    page.keyboard.press("Enter")
    page.wait_for_url("**/article?*")


@narrow
def test_odd_articles_are_displayed_safely(site: str, page: Page) -> None:
    page.goto(f"{site}/?q=ferry+outer+islands")
    with page.expect_navigation():
        page.locator(".row h2 a").first.click()
    assert SCRIPT in page.locator("h1").inner_text()
    # The page shows the visible text, from which the fingerprint is also computed.
    shown = page.locator(".text").inner_text().strip()
    assert shown == "bold The ferry to the outer islands runs again from Monday, they say. &"
    assert page.title() != "caught"
    # A `javascript:` address does not become a link.
    assert page.locator("a[href^=javascript]").count() == 0
    page.goto(f"{site}/article?id=once")
    assert page.get_by_text("1 similar article").first.is_visible()
    page.goto(f"{site}/article?id=bare")
    assert page.locator("h1").inner_text() == "bare"
    assert page.get_by_text("No similar articles").is_visible()


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/article?id=none", 404, "there is no article"),
        ("/article", 400, "Field required"),
        ("/?sort=random", 400, "Input should be"),
        ("/?after=nonsense", 400, "not a valid cursor"),
        ("/?page=9999", 400, "numbered pages end"),
        ("/?since=yesterday", 400, "is not a time"),
        ("/?where=language", 400, "must be a field and a value"),
        ("/?where=language:en", 400, "cannot be filtered by"),
        ("/nowhere", 404, "there is no such "),
    ],
)
def test_invalid_addresses_are_refused(site: str, path: str, status: int, message: str) -> None:
    for prefix in ("", "/api/v1"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(site + prefix + (path.replace("/?", "/list?") if prefix else path))
        body = refused.value.read().decode()
        assert refused.value.code == status
        assert message in body
        assert body.startswith('{"type"' if prefix else "<!DOCTYPE html>")


def test_pages_tolerate_unknown_and_empty_parameters(site: str) -> None:
    for odd in (
        "fbclid=1",
        "sort=similar-desc&dedup=false&min_similar=1",
        "only=&page=",
    ):
        with urllib.request.urlopen(f"{site}/?{odd}") as answer:
            assert answer.status == 200
    for refused in ("api/v1/list?fbclid=1", "?only=similar", "feed.rss?sort=similar-asc&counting=matching"):
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(f"{site}/{refused}")
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(f"{site}/api/v1/list", data=b"{}")


def test_the_pages_listen_only_on_the_given_host(site: str, elasticsearch_url: str, tmp_path: Path) -> None:
    options = ("--index", "test-pages", "--url", elasticsearch_url, "--host", "127.0.0.2")
    with served(*options) as address:
        assert address.startswith("http://127.0.0.2:")
        assert get(f"{address}/api/v1/list", size=1) == get(f"{site}/api/v1/list", size=1)
        with pytest.raises(urllib.error.URLError, match="refused"):
            urllib.request.urlopen(address.replace("127.0.0.2", "127.0.0.1"))


def test_json_equals_the_readers_results(site: str, es: Elasticsearch) -> None:
    reader = Reader(es, forest="test-pages-forest")
    page = reader.list("test-pages", sort="similar-desc", size=3)
    found = get(f"{site}/api/v1/list", sort="similar-desc", size=3)
    assert found == page.model_dump(mode="json")
    again = get(f"{site}/api/v1/list", sort="similar-desc", size=3, after=found["next"])
    assert again == reader.list("test-pages", sort="similar-desc", size=3, after=page.next).model_dump(
        mode="json"
    )
    largest = page.rows[0].id
    overview = reader.overview("test-pages", "ferry", size=40).model_dump(mode="json")
    assert get(f"{site}/api/v1/overview", q="ferry", size=3) == overview
    for name in ("similar", "sources", "versions"):
        expected = getattr(reader, name)("test-pages", largest).model_dump(mode="json")
        assert get(f"{site}/api/v1/{name}", id=largest) == expected
    article = get(f"{site}/api/v1/article", id=largest)
    left_out = reader.left_out(article["text"], site=article["site"]).model_dump(mode="json")
    expected = reader.article("test-pages", largest).model_dump(mode="json")
    assert article == expected | {"left_out": left_out, "left_out_unknown": None}
    timeline = get(f"{site}/api/v1/timeline", id=largest)
    assert sum(each["articles"] for each in timeline["steps"]) == page.rows[0].similar + 1
    request = urllib.request.Request(
        f"{site}/api/v1/similar",
        data=json.dumps({"text": article["text"]}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        assert json.load(answer)["root"] == article["root"]


def test_json_includes_excerpts(quoted: SampleSite) -> None:
    api, reader = f"{quoted.address}/api/v1", quoted.reader
    for name in ("similar", "sources", "versions"):
        expected = getattr(reader, name)(quoted.index, "story").model_dump(mode="json")
        assert get(f"{api}/{name}", id="story") == expected
        assert (expected["excerpts"]["articles"], expected["excerpts"]["clusters"]) == (3, 2)
    excerpt = get(f"{api}/article", id="excerpt")
    assert excerpt["part_of"] == reader.article(quoted.index, "story").root
    by_root = get(f"{api}/articles", root=excerpt["root"])["excerpt_of"]
    assert (by_root["root"], by_root["first"]["id"]) == (excerpt["part_of"], "story")


def test_json_flags_placeholders(quoted: SampleSite) -> None:
    api, root = f"{quoted.address}/api/v1", quoted.reader.article(quoted.index, "wall-0").root
    found = [get(f"{api}/{name}", id="wall-4") for name in ("similar", "sources", "versions")]
    found.append(get(f"{api}/articles", root=root))
    assert [(each["root"], each["is_placeholder"]) for each in found] == [(root, True)] * 4
    assert get(f"{api}/versions", id="story")["is_placeholder"] is False


def test_openapi_describes_every_path_with_valid_examples(site: str) -> None:
    described = get(f"{site}/openapi.json")
    paths = described["paths"]
    names = (
        "list",
        "overview",
        "source-names",
        "article",
        "articles",
        "similar",
        "versions",
        "sources",
        "timeline",
        "explanation",
        "edits",
    )
    files = {"/feed.rss", "/export.csv", "/export.jsonl"}
    assert set(paths) == {f"/api/v1/{name}" for name in names} | files
    assert all(parameter["description"] for parameter in paths["/api/v1/list"]["get"]["parameters"])
    # The examples are valid responses.
    for model in (esdedup.Page, esdedup.SimilarPage, esdedup.SourcesPage, esdedup.VersionsPage):
        (example,) = described["components"]["schemas"][model.__name__]["examples"]
        model.model_validate(example)


@pytest.mark.parametrize("words", ["!!!", "*", "((((", "%00", "-"])
def test_queries_without_letters_find_nothing(site: str, words: str) -> None:
    path = f"q={urllib.parse.quote(words)}&source=Morning%20Wire"
    found = json.load(urllib.request.urlopen(f"{site}/api/v1/list?{path}"))
    assert (found["total_articles"], found["rows"]) == (0, [])
    body = urllib.request.urlopen(f"{site}/?{path}").read().decode()
    assert "No articles match" in body
    assert "Search without the filters" in body


@pytest.mark.parametrize("path", ["/", "/feed.rss", "/api/v1/list", "/static/pages.js"])
def test_head_responses_equal_get_responses_without_a_body(site: str, path: str) -> None:
    request = urllib.request.Request(site + path, method="HEAD")
    with urllib.request.urlopen(request) as head, urllib.request.urlopen(site + path) as get:
        assert (head.status, head.read()) == (200, b"")
        assert head.headers["Content-Type"] == get.headers["Content-Type"]
        assert int(head.headers["Content-Length"]) == len(get.read())


def test_a_page_beyond_the_end_links_back(site: str) -> None:
    body = urllib.request.urlopen(f"{site}/?page=490").read().decode()
    assert "The list ends before this page." in body
    assert 'rel="first"' in body
    assert 'rel="prev"' not in body


PARTS = [
    *(
        "<!--",
        "-->",
        "--!>",
        "<!-->",
        "<!--->",
        "->",
        "--",
        "<!",
        "<?",
        "</",
        "/>",
        ">",
        "<",
        "'",
        '"',
        "=",
        " ",
        "\n",
    ),
    *(
        "<a title=",
        "<a title='",
        '<b x="',
        "='",
        "<p>",
        "</p>",
        "<x-y a=",
        "<span/",
        "</span\n",
        "<!doctype html>",
    ),
    *("<script>", "</script>", "<script ", "</script ", "<style>", "</style>", "<style/>", "</style x='>'>"),
    *("<title>", "</title>", "<textarea>", "</textarea>", "<xmp>", "</xmp>", "<noscript>", "</noscript>"),
    *(
        "<iframe>",
        "</iframe>",
        "<noembed>",
        "</noembed>",
        "<plaintext>",
        "<\u017fcript>",
        "</\u017fcript>",
        "</3",
    ),
    *(
        "<svg>",
        "<svg><text>",
        "</svg>",
        "<desc>",
        "</desc>",
        "<math>",
        "</math>",
        "<![CDATA[",
        "]]>",
        "<select>",
    ),
    *("<option>", "</select>", "<table>", "<td>", "<template>", "</table>", "<foreignObject>", "<mi>"),
    *(
        "<div hidden>",
        "</div>",
        "<p style='display:none'>",
        "<span hidden>",
        "<b hidden>",
        "</b>",
        "<table hidden>",
    ),
    *(
        "<tr hidden>",
        "<td hidden>",
        "</td>",
        "<li hidden>",
        "<ul>",
        "</ul>",
        "<a hidden>",
        "<form hidden>",
        "<form>",
    ),
    *("<button>", "<select hidden>", "<dd hidden>", "<dl>", "<h1>", "<h2 hidden>", "<br hidden>", "<video>"),
]
# A text node is shown if it has a rectangle with a width; text in form controls has no rectangle.
SHOWN = """documents => documents.map(html => {
  const frame = document.body.appendChild(document.createElement("iframe"))
  const inner = frame.contentDocument
  inner.open(); inner.write(html); inner.close()
  const walker = inner.createTreeWalker(inner, NodeFilter.SHOW_TEXT), range = inner.createRange(), shown = []
  while (walker.nextNode()) {
    range.selectNodeContents(walker.currentNode)
    if ([...range.getClientRects()].some(each => each.width)) shown.push(walker.currentNode.data)
  }
  frame.remove()
  return shown.join(" ")
})"""


def test_visible_text_contains_every_word_a_browser_shows(browser: Browser) -> None:
    random = Random(13)
    documents = []
    for _ in range(500):
        # With fewer kinds of parts in a document, the same kinds combine more often.
        parts = random.sample(PARTS, random.choice([6, 12, len(PARTS)]))
        drawn = random.choices(parts, k=random.randint(2, 14))
        documents.append("<body>" + "".join(f"{part}word{at}." for at, part in enumerate(drawn)))
    page = browser.new_page()
    shown = page.evaluate(SHOWN, documents)
    words = re.compile(r"word[0-9]+\.")
    for document, text in zip(documents, shown, strict=True):
        assert set(words.findall(text)) <= set(words.findall(visible_text(document))), document
    assert sum(len(words.findall(text)) for text in shown) > 500
