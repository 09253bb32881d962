"""The list page in a real browser, wide and narrow, in both languages."""

import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from elasticsearch import Elasticsearch, helpers
from playwright.sync_api import Browser, Page, expect

from esdedup import Dedup, Reader
from esdedup.times import time_ms
from esdedup.web.list_page import VISIT_COOKIE as COOKIE
from tests import sample
from tests.support.browsing import LOCALES, SIZES, WINDOWS, served, watched

SHARED_WORDS = "harbour"
ARTICLES: list[dict[str, Any]] = [
    {
        "_id": article["id"],
        "_source": article
        | {"language": "en" if article["text"].isascii() else "zh", "desk": f"desk {at % 3}"},
    }
    for at, article in enumerate(sample.articles(400))
]


class Site(NamedTuple):
    """An index and the address of its pages."""

    address: str
    index_name: str


class Visitor(NamedTuple):
    """A browser page with the size of its window and the language of its interface."""

    page: Page
    size: str
    language: str

    def says(self, english: str, chinese: str) -> str:
        return english if self.language == "en" else chinese

    def unfold(self, kind: str) -> None:
        """Open a section that is collapsed in narrow windows."""
        summary = self.page.locator(f"details.{kind} > summary")
        assert summary.is_visible() is (self.size == "narrow")
        if self.size == "narrow":
            summary.click()

    def follow(self, locator: str) -> None:
        with self.page.expect_navigation():
            self.page.locator(locator).first.click()

    @property
    def totals(self) -> list[int]:
        """The numbers of stories and articles that the page shows."""
        return [int(each.replace(",", "")) for each in self.page.locator(".totals strong").all_inner_texts()]

    @property
    def parameters(self) -> dict[str, list[str]]:
        return urllib.parse.parse_qs(urllib.parse.urlsplit(self.page.url).query)


@pytest.fixture(scope="module")
def site(es: Elasticsearch, elasticsearch_url: str) -> Iterator[Site]:
    index, forest = "test-list-page", "test-list-page-forest"
    es.options(ignore_status=404).indices.delete(index=[index])
    es.options(ignore_status=404).indices.delete(index=[forest])
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        keyword = {"type": "keyword"}
        es.indices.put_mapping(index=index, properties={"language": keyword, "desk": keyword})
        actions = ({"_index": index, **article} for article in ARTICLES)
        # With `backfill`, articles arrive at their time of publication.
        helpers.bulk(es, dedup.enrich(actions, backfill=True), refresh=True)
    with served("--index", index, "--forest", forest, "--url", elasticsearch_url) as address:
        yield Site(address, index)
    es.indices.delete(index=[index, forest])


wide, narrow = (pytest.mark.parametrize("window", [each], ids="-".join) for each in WINDOWS[:2])


@pytest.fixture
def visitor(browser: Browser, window: tuple[str, str]) -> Iterator[Visitor]:
    size, language = window
    with watched(browser, size, locale=LOCALES[language]) as page:
        yield Visitor(page, size, language)


@pytest.mark.parametrize("window", WINDOWS, ids="-".join)
def test_the_first_page_is_small_and_shows_a_row(site: Site, visitor: Visitor) -> None:
    page, loaded = visitor.page, []
    page.on("response", lambda answer: loaded.append(len(answer.body())))
    page.goto(site.address)
    assert page.locator("html").get_attribute("lang") == visitor.language
    assert re.search(
        visitor.says(
            r"^\d+ stories, 400 articles · newest first · compact$",
            r"^\d+ 组，共 400 篇报道 · 最新在前 · 紧凑显示$",
        ),
        page.locator(".totals").inner_text(),
    )
    page.wait_for_load_state("networkidle")
    assert len(loaded) >= 3
    assert sum(loaded) < 100_000
    box = page.locator(".row").first.bounding_box()
    assert box is not None
    assert box["y"] + 100 < SIZES[visitor.size][1]
    # The filters are on one line or collapsed.
    lines = {
        round(label["y"] + label["height"])
        for each in page.locator(".filters > *:not(.hidden)").all()
        if each.is_visible() and (label := each.bounding_box())
    }
    assert len(lines) == (1 if visitor.size == "wide" else 0)


def test_a_row_shows_and_unfolds_its_details(site: Site, visitor: Visitor, es: Elasticsearch) -> None:
    page, reader = visitor.page, Reader(es)
    page.goto(f"{site.address}/?q={SHARED_WORDS}&sort=similar-desc")
    (expected,) = reader.list(
        site.index_name,
        query=reader.search_query(site.index_name, SHARED_WORDS),
        sort="similar-desc",
        size=1,
        details=True,
    ).rows
    details = expected.details
    assert details is not None
    assert details.earliest is not None
    assert details.most_different is not None
    row = page.locator(".row").first
    assert {each.lower() for each in row.locator("mark").all_inner_texts()} == {SHARED_WORDS}
    assert row.locator(".badge").inner_text() == visitor.says(
        f"+{expected.similar} similar", f"+{expected.similar} 篇相似"
    )
    assert visitor.says(f"{expected.sources} sources", f"{expected.sources} 个来源") in row.inner_text()
    moment = row.locator("time").first
    assert moment.get_attribute("datetime") == expected.published_at.replace("Z", "+00:00")
    assert row.locator(".curve path").count() == 1
    if details.earliest.id == expected.id:
        assert row.locator(".first").inner_text() == visitor.says("published first", "首发")
    else:
        assert row.locator(".first a").inner_text() == details.earliest.source
    assert not row.locator("dl").is_visible()
    row.locator("summary").click()
    shown = row.locator("dl").inner_text()
    for term in visitor.says("First,Newest,Most different,By source", "首发,最新,差异最大,按来源").split(","):
        assert term in shown
    for source in details.largest_sources:
        assert source.source in shown
    visitor.follow('.row dd a[href*="/compare"]')
    compared = {*visitor.parameters["one"], *visitor.parameters["other"]}
    assert {each.rpartition("/")[2] for each in compared} == {expected.id, details.most_different.id}
    assert page.locator("ins, del").count()


def test_rows_link_to_stories_with_the_same_headline(site: Site, visitor: Visitor, es: Elasticsearch) -> None:
    found = Reader(es).list(site.index_name, sort="similar-desc", size=100, details=True).rows
    same = next(
        row.details.same_headline for row in found if row.details and row.details.same_headline.stories
    )
    visitor.page.goto(f"{site.address}/?sort=similar-desc&size=100")
    shown = visitor.page.locator(".namesakes").first
    says = visitor.says(f"also under this headline: {same.stories} stor", f"同一标题下另有 {same.stories} 组")
    assert shown.inner_text().startswith(says)
    wholes = [row.details.excerpt_of.id for row in found if row.details and row.details.excerpt_of]
    assert wholes
    for link, whole in zip(visitor.page.locator(".row .part a").all(), wholes, strict=True):
        assert f"id={whole}&" in (link.get_attribute("href") or "")
    visitor.follow(".namesakes a")
    assert visitor.parameters["id"] == [same.rows[0].id]


@narrow
def test_several_sources_are_selected_and_removed(site: Site, visitor: Visitor) -> None:
    page = visitor.page
    page.goto(site.address)
    for number in (1, 2):
        visitor.unfold("facets")
        visitor.follow(".facet .value:not(.chosen)")
        assert len(visitor.parameters["source"]) == number
    chosen = visitor.parameters["source"]
    expected = sum(each["_source"].get("source") in chosen for each in ARTICLES)
    assert visitor.totals[1] == expected
    assert set(page.locator(".row .source").all_inner_texts()) <= set(chosen)
    assert page.locator(".narrowings li").count() == 3
    # Other sources can still be added, with their own counts.
    visitor.unfold("facets")
    assert page.locator(".facet .value:not(.chosen)").first.is_visible()
    # A search keeps the selected sources.
    page.locator("#q").fill("the")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert visitor.parameters["source"] == chosen
    visitor.follow(".narrowings a")
    assert visitor.parameters["source"] == chosen[1:]
    assert visitor.parameters["q"] == ["the"]


def test_a_source_is_found_by_part_of_its_name(site: Site, visitor: Visitor) -> None:
    page = visitor.page
    page.goto(site.address)
    visitor.unfold("facets")
    names = {each["_source"]["source"] for each in ARTICLES}
    chosen = max(names)
    offered = page.locator("#source-names option")
    field = page.get_by_placeholder(visitor.says("Another source", "其他来源"))
    with page.expect_response("**/source-names*"):
        field.press_sequentially(chosen[-4:].upper())
    expect(offered).to_have_count(sum(chosen[-4:].lower() in each.lower() for each in names))
    assert chosen in [each.get_attribute("value") for each in offered.all()]
    field.fill(chosen)
    with page.expect_navigation():
        field.press("Enter")
    assert visitor.parameters == {"source": [chosen]}
    assert visitor.totals[1] == sum(each["_source"]["source"] == chosen for each in ARTICLES)


def test_a_time_range_narrows_the_list(site: Site, visitor: Visitor) -> None:
    page = visitor.page
    page.goto(site.address)
    visitor.unfold("folded")
    times = sorted(each["_source"]["published_at"] for each in ARTICLES)
    since, until = times[len(times) // 3], times[len(times) // 2]
    for name, time in (("since", since), ("until", until)):
        page.locator(f"[name={name}]").fill(time[:10])
        page.locator(f"[name={name}_time]").fill(time[11:16])
    visitor.follow(".apply")
    inside = sum(since[:16] <= each <= f"{until[:16]}:00" for each in times)
    assert 0 < inside < len(times)
    assert visitor.totals[1] == inside
    visitor.unfold("folded")
    # The form keeps the times of day, also after switching to the compact list.
    assert page.locator("[name=until_time]").input_value() == until[11:16]
    visitor.follow(".totals a")
    assert visitor.parameters["since"] == [since[:16]]
    assert visitor.totals[1] == inside
    assert page.locator("[name=since_time]").input_value() == since[11:16]


def test_languages_and_other_fields_narrow_the_list(site: Site, visitor: Visitor) -> None:
    page = visitor.page
    page.goto(site.address)
    visitor.unfold("facets")
    headings = page.locator(".facet h2").all_inner_texts()
    assert headings == visitor.says("Sources,Language,desk", "来源,语言,desk").split(",")
    with page.expect_navigation():
        page.locator(".facet .value").get_by_text(visitor.says("Chinese", "中文"), exact=True).click()
    assert visitor.parameters["where"] == ["language:zh"]
    assert visitor.totals[1] == sum(each["_source"]["language"] == "zh" for each in ARTICLES)
    assert visitor.says("Language: Chinese", "语言：中文") in page.locator(".narrowings").inner_text()


def test_a_bar_of_the_histogram_narrows_the_list(site: Site, visitor: Visitor) -> None:
    page = visitor.page
    page.goto(site.address)
    visitor.unfold("over-time")
    bars = page.locator(".histogram a:visible")
    assert bars.count() > 5
    label = bars.nth(2).text_content() or ""
    counted = int(re.findall(r"(\d+) (?:article|篇)", label)[0])
    # Each bar is large enough to tap.
    for box in (bar.bounding_box() for bar in bars.all()):
        assert box is not None
        assert min(box["width"], box["height"]) >= 24
    with page.expect_navigation():
        bars.nth(2).click()
    assert visitor.totals[1] == counted
    assert {"since", "until"} <= visitor.parameters.keys()
    visitor.follow(".narrowings a")
    assert visitor.totals[1] == len(ARTICLES)


def test_rows_are_filtered_by_sources_and_shown_compactly(
    site: Site, visitor: Visitor, es: Elasticsearch
) -> None:
    page = visitor.page
    page.goto(f"{site.address}/?sort=sources-desc&min_sources=3&min_similar=1")
    expected = Reader(es).list(site.index_name, sort="sources-desc", min_sources=3)
    assert sorted(visitor.totals) == [expected.total_rows, len(ARTICLES)]
    assert page.locator(".row h2").all_inner_texts() == [row.title for row in expected.rows]
    tall = page.locator(".row").first.bounding_box()
    visitor.follow(".totals a")
    assert visitor.parameters["compact"] == ["true"]
    assert visitor.parameters["min_sources"] == ["3"]
    boxes = [row.bounding_box() for row in page.locator(".row").all()]
    in_sight = [box for box in boxes if box and box["y"] + box["height"] <= SIZES[visitor.size][1]]
    assert len(in_sight) >= (10 if visitor.size == "wide" else 5)
    assert tall is not None
    assert boxes[0] is not None
    assert boxes[0]["height"] < 0.7 * tall["height"]
    # The row links to the article on its own site.
    assert page.locator(".row .outside").first.get_attribute("href") == expected.rows[0].url
    visitor.follow(".narrowings a")
    assert "min_similar" not in visitor.parameters
    visitor.follow(".totals a")
    assert page.locator(".row .snippet").count()


@narrow
def test_an_empty_list_offers_ways_to_widen_it(site: Site, visitor: Visitor) -> None:
    page = visitor.page
    source = urllib.parse.quote(str(ARTICLES[0]["_source"]["source"]))
    page.goto(f"{site.address}/?q=the&since=2031-01-01&source={source}")
    says = visitor.says('No articles match "the". Try other words.', "没有与“the”匹配的报道。")
    assert page.locator(".nothing p").first.inner_text().startswith(says)
    ways = page.locator(".nothing a")
    assert ways.count() == 4
    with page.expect_navigation():
        ways.nth(0).click()
    assert "since" not in visitor.parameters
    assert visitor.parameters["source"]
    assert page.locator(".row").count()


@wide
def test_exports_contain_the_rows_of_the_list(site: Site, visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{site.address}/?q={SHARED_WORDS}&where=language:en")
    rows = visitor.totals[0]
    for link in page.locator(".exports a").all():
        with urllib.request.urlopen(f"{site.address}{link.get_attribute('href')}") as answer:
            body = answer.read().decode()
        counted = body.count("<item>") if link.inner_text() == "RSS" else len(body.strip().splitlines())
        # A feed has at most one page of rows; CSV has a header.
        expected = {"RSS": min(rows, 20), "CSV": rows + 1, "JSON Lines": rows}[link.inner_text()]
        assert counted == expected, link.inner_text()


@wide
def test_printed_pages_show_only_rows_and_totals(site: Site, visitor: Visitor) -> None:
    page = visitor.page
    page.goto(site.address)
    page.emulate_media(media="print")
    for kind in (".top", ".bottom", ".facets", ".over-time", ".pages", ".exports a", ".ranges"):
        assert not page.locator(kind).first.is_visible()
    assert page.locator(".row h2").first.is_visible()
    assert page.locator(".totals").is_visible()


def test_rows_unfold_without_scripts(site: Site, browser: Browser) -> None:
    with watched(browser, "narrow", java_script_enabled=False) as page:
        page.goto(f"{site.address}/?sort=similar-desc")
        page.locator(".row summary").first.click()
        assert page.locator(".row dl").first.is_visible()


def test_articles_since_the_last_visit_are_marked(site: Site, browser: Browser, es: Elasticsearch) -> None:
    with watched(browser, "narrow", locale="en-GB") as page:
        page.goto(site.address)
        assert page.locator(".new").count() == 0
        (cookie,) = [each for each in page.context.cookies() if each["name"] == COOKIE]
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
        # Pretend that the last visit was at the articles' median time.
        times = sorted(time_ms(each["_source"]["published_at"]) or 0 for each in ARTICLES)
        then_s = times[len(times) // 2] // 1_000
        cookie["value"] = f"-{then_s}"
        page.context.add_cookies([cookie])  # type: ignore[list-item]
        page.goto(f"{site.address}/?sort=similar-desc")
        new = sum(each > then_s * 1_000 for each in times)
        text = page.locator(".totals .new").inner_text()
        assert text.startswith(f"{new} new articles since your last visit")
        rows = Reader(es).list(site.index_name, sort="similar-desc", arrived_since=str(then_s * 1_000)).rows
        expected = [
            ""
            if not row.new_articles
            else "new"
            if row.new_articles > row.similar
            else f"{row.new_articles} new"
            for row in rows
        ]
        assert {each == "" for each in expected} == {True, False}
        marks = [each.locator(".new").all_inner_texts() for each in page.locator(".row").all()]
        assert ["".join(each) for each in marks] == expected
