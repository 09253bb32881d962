"""What a desk needs of the pages, in a real browser: ranges, times, named searches, print, large targets."""

import re
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit
from xml.etree import ElementTree as ET

import pytest
from elasticsearch import Elasticsearch
from playwright.sync_api import Browser, Page

from tests.acceptance.conftest import editors_site, windows
from tests.acceptance.test_frame import RULES, violations
from tests.support import pages
from tests.support.browsing import LOCALES, WINDOWS, SampleSite, sample_site, watched
from tests.support.forests import ARTICLES
from tests.support.names import new_names

# An article every 45 minutes, the latest one now.
STEP = timedelta(minutes=45)
# The heights and widths of everything that one can click or fill in, except for words in a sentence.
SMALL_TARGETS = """() => [...document.querySelectorAll('a:not(svg a), button, summary, select, textarea,'
    + 'label:has(input), input:not([type=hidden], label *)')].flatMap(each => {
  const { width, height } = each.getBoundingClientRect();
  const isShown = each.checkVisibility({ visibilityProperty: true }) && width > 1;
  return isShown && Math.min(width, height) < 24 ? [`${each.outerHTML} ${width} × ${height}`] : [];
})"""


@pytest.fixture(scope="module")
def desk(es: Elasticsearch, elasticsearch_url: str) -> Iterator[SampleSite]:
    """Pages of articles that have just been published, and of which some have no boilerplate."""
    now = datetime.now(UTC)
    recent = [
        each | {"published_at": (now - at * STEP).isoformat()} for at, each in enumerate(reversed(ARTICLES))
    ]
    with editors_site(es, elasticsearch_url, recent) as site:
        yield site


window = windows(WINDOWS)


@pytest.fixture
def page(browser: Browser, window: tuple[str, str]) -> Iterator[Page]:
    size, language = window
    zone = {"en": "Europe/London", "zh": "Asia/Shanghai"}[language]
    with watched(browser, size, locale=LOCALES[language], timezone_id=zone) as page:
        yield page


def parameters(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def total(page: Page) -> int:
    return int(page.locator(".totals strong").last.inner_text().replace(",", ""))


def test_a_click_selects_a_range(
    desk: SampleSite, page: Page, window: tuple[str, str], tmp_path: Path
) -> None:
    words = {
        "en": {"24h": "24 hours", "7d": "7 days", "today": "Today"},
        "zh": {"24h": "近 24 小时", "7d": "近 7 天", "today": "今天"},
    }[window[1]]
    page.goto(f"{desk.address}/?sort=newest&since=2026-01-01")
    counts = {}
    for period, label in words.items():
        with page.expect_navigation():
            page.get_by_role("link", name=label, exact=True).click()
        assert parameters(page) == {"sort": ["newest"], "period": [period]}
        assert page.locator(".ranges [aria-current]").inner_text() == label
        assert page.locator(".narrowings li").inner_text().lower().endswith(f"{label.lower()} ✕")
        counts[period] = total(page)
        page.screenshot(path=tmp_path / f"{period}.png")
    # The articles of a day and of a week, of which the last may have become too old meanwhile.
    assert counts["24h"] in {timedelta(days=1) // STEP, timedelta(days=1) // STEP + 1}
    assert counts["7d"] in {timedelta(days=7) // STEP, timedelta(days=7) // STEP + 1}
    assert 1 <= counts["today"] <= counts["24h"]
    assert not violations(page, RULES)
    # Following pages and other views stay in the range; another click removes it.
    page.goto(f"{desk.address}/?sort=newest&period=7d")
    for rel in ("next", "next", "prev"):
        with page.expect_navigation():
            page.locator(f"[rel={rel}]").click()
        assert parameters(page)["period"] == ["7d"]
        assert page.locator(".row").count()
    with page.expect_navigation():
        page.locator(".ranges [aria-current]").click()
    assert parameters(page) == {"sort": ["newest"]}


def test_the_largest_bar_is_named(desk: SampleSite, page: Page, window: tuple[str, str]) -> None:
    page.goto(f"{desk.address}/?period=7d&q=the")
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    bars = [str(each.text_content()) for each in page.locator(".histogram a:visible title").all()]
    tall = page.locator(".histogram a:visible rect:last-child").evaluate_all(
        "all => all.map(e => +e.getAttribute('height'))"
    )
    largest = bars[tall.index(max(tall))]
    shown = page.locator("figcaption span:visible").all_inner_texts()
    assert shown[1] == {"en": f"peak of {largest}", "zh": f"高峰 {largest}"}[window[1]]


def test_rows_have_absolute_and_relative_times(desk: SampleSite, page: Page, window: tuple[str, str]) -> None:
    language = window[1]
    page.goto(f"{desk.address}/?sort=newest")
    row = page.locator(".row").nth(3)
    time = row.locator("time").first
    moment = page.evaluate(
        """([moment, language]) => new Intl.DateTimeFormat(language, {
            year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit',
            hourCycle: 'h23'
        }).format(new Date(moment))""",
        [time.get_attribute("datetime"), language],
    )
    ago, _, at = time.inner_text().partition(" · ")
    assert ago.endswith({"en": "ago", "zh": "前"}[language])
    assert at == moment
    # The link to the original page is on the line of the source.
    source, original = (row.locator(each).first.bounding_box() for each in (".source", ".outside"))
    assert source is not None
    assert original is not None
    assert abs(source["y"] + source["height"] - original["y"] - original["height"]) < 6
    page.goto(f"{desk.address}/?sort=newest&q=the&period=7d")
    page.emulate_media(media="print")
    printed = page.inner_text("main")
    assert "ago" not in printed.split()
    assert not page.locator(".ago:visible").count()
    query = {"en": ("Search words: the", "7 days"), "zh": ("搜索词：the", "近 7 天")}[language]
    for words in query:
        assert words in printed
    assert "✕" not in printed
    assert "time zone" in printed or "时区" in printed


def test_a_search_is_saved_under_a_name(
    desk: SampleSite, page: Page, window: tuple[str, str], tmp_path: Path
) -> None:
    save, name, open_ = {
        "en": ("Save this search", "Town news", "Open its address"),
        "zh": ("保存此搜索", "本地要闻", "打开其网址"),
    }[window[1]]
    page.goto(f"{desk.address}/?q=the&period=7d&sort=newest")
    page.get_by_text(save).click()
    page.locator(".ranges [name=name]").fill(name)
    assert not violations(page, RULES)
    page.screenshot(path=tmp_path / "name.png")
    with page.expect_navigation():
        page.get_by_role("button", name=open_).click()
    saved = page.url
    assert parameters(page) == {"q": ["the"], "period": ["7d"], "sort": ["newest"], "name": [name]}
    assert page.locator("h1").inner_text() == name
    assert page.title().startswith(name)
    assert not violations(page, RULES)
    feed_ = str(page.locator(".exports a").first.get_attribute("href"))
    with urllib.request.urlopen(urljoin(desk.address, feed_)) as answer:
        read = ET.fromstring(answer.read())
    assert read.findtext("channel/title") == name
    assert read.findtext("channel/language") == window[1]
    # The name belongs to this search only, on all of its pages.
    with page.expect_navigation():
        page.locator(".switch a").click()
    assert parameters(page)["name"] == [name]
    with page.expect_navigation():
        page.locator(".narrowings a").first.click()
    assert "name" not in parameters(page)
    page.goto(saved)
    assert page.locator("h1").is_visible()


@pytest.mark.parametrize("window", [("narrow", "en"), ("narrow", "zh")], ids="-".join)
def test_targets_are_large_enough_for_fingers(desk: SampleSite, page: Page) -> None:
    one, other = desk.largest
    for path in (
        *("/?q=the&name=x&period=7d", "/?compact=true&min_similar=1", "/?q=zzz&since=2026-01-01"),
        *(f"/article?id={one}&listed=q%3Dthe", f"/article?id={one}&view=source"),
        f"/compare?one={one}&other={other}",
    ):
        page.goto(f"{desk.address}{path}")
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
        assert page.evaluate(SMALL_TARGETS) == [], path


def test_boilerplate_is_grey_in_full_size(
    es: Elasticsearch, elasticsearch_url: str, browser: Browser, window: tuple[str, str]
) -> None:
    size, language = window
    style = "each => [getComputedStyle(each).fontSize, getComputedStyle(each).color]"
    legend = {"en": "Grey text is treated as boilerplate", "zh": "灰色文字视为模板文字"}[language]
    with (
        new_names(es) as name,
        sample_site(es, elasticsearch_url, *pages.feed_pages(es, name)) as site,
        watched(browser, size, locale=LOCALES[language]) as page,
    ):
        page.goto(f"{site.address}/article?id=late")
        text = page.locator(".text").first.evaluate(style)
        grey = page.locator(".text .boilerplate").first.evaluate(style)
        assert text[0] == grey[0]
        assert text[1] != grey[1]
        assert page.locator(".legend").inner_text().startswith(legend)
        assert not violations(page, RULES)


def test_lists_have_the_punctuation_of_the_language(
    desk: SampleSite, page: Page, window: tuple[str, str]
) -> None:
    one, _ = desk.largest
    page.goto(f"{desk.address}/article?id={one}&view=source")
    shown = page.inner_text("main figcaption")
    # Colons of times of day are the same in both languages.
    found = {*re.findall("[,;:()](?![0-9])|[，、；：（）]", shown)}
    assert found
    assert all(each.isascii() is (window[1] == "en") for each in found), shown
