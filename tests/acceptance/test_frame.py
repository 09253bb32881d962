"""Features of all pages in a real browser: language, keys, times, new articles, accessibility."""

import re
import urllib.parse
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from axe_playwright_python.sync_playwright import Axe
from elasticsearch import Elasticsearch
from playwright.sync_api import Browser, Page

from esdedup import Dedup
from tests.support.browsing import LOCALES, SampleSite, served, watched
from tests.support.forests import ARTICLES, feed
from tests.support.names import Names

SWITCH = {"en": "中文", "zh": "English"}
# The WCAG rules, and the rules that axe calls best practice.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    size = getattr(request, "param", "wide")
    with watched(browser, size, locale="en-GB", timezone_id="Asia/Shanghai") as page:
        yield page


narrow = pytest.mark.parametrize("page", ["narrow"], indirect=True)


def violations(page: Page, rules: list[str] | dict[str, object]) -> str:
    """Return axe's report of violations, or an empty string."""
    found = Axe().run(page, options={"runOnly": rules, "resultTypes": ["violations"]})
    return str(found.generate_report()) if found.violations_count else ""


def test_pages_are_accessible(
    site: SampleSite, quoted: SampleSite, browser: Browser, window: tuple[str, str]
) -> None:
    size, language = window
    one, other = site.largest
    addresses = [
        f"{site.address}/?q=the",
        f"{site.address}/?q=zzz&since=2026-01-01",
        f"{site.address}/?compact=true&sort=sources-desc&min_similar=1&min_sources=2",
        site.article(listed="q=the"),
        site.article(view="source"),
        f"{quoted.address}/article?id=story",
        f"{quoted.address}/article?id=excerpt",
        f"{quoted.address}/article?id=wall-0",
        f"{site.address}/api/v1/docs",
        f"{site.address}/compare?one={one}&other={other}",
    ]
    with watched(browser, size, locale=LOCALES[language]) as page:
        for address in addresses:
            page.goto(address)
            assert page.locator("html").get_attribute("lang") == language
            # Collapsed sections are checked, too.
            page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
            assert not violations(page, RULES), address
            # Only the contrast rule depends on the colour scheme.
            page.emulate_media(color_scheme="dark")
            assert not violations(page, {"type": "rule", "values": ["color-contrast"]}), address
            page.emulate_media(color_scheme="light")
        page.keyboard.press("?")
        assert not violations(page, RULES)


def test_the_language_is_switched_and_kept(
    site: SampleSite, browser: Browser, window: tuple[str, str]
) -> None:
    size, language = window
    with watched(browser, size, locale=LOCALES[language], java_script_enabled=False) as page:
        page.goto(site.article(view="newest", listed="q=the"))
        before, titles = page.url, page.locator("h3").all_inner_texts()
        with page.expect_navigation():
            page.get_by_role("link", name=SWITCH[language], exact=True).click()
        assert page.url == before
        assert page.locator("h3").all_inner_texts() == titles
        assert page.locator("html").get_attribute("lang") != language
        # An article is marked with its own language, not with the language of the interface.
        is_chinese = re.search("[一-龥]", titles[0])
        assert page.locator(".text").get_attribute("lang") == ("zh" if is_chinese else "")
        page.goto(site.address)
        assert page.locator("html").get_attribute("lang") != language
        # Without scripts, the button that explains keys is hidden.
        assert not page.get_by_role("button", name=re.compile("Keys|快捷键")).is_visible()


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.href ?? document.activeElement.id"))


def test_keys_move_through_rows(site: SampleSite, page: Page) -> None:
    page.goto(f"{site.address}/?sort=oldest")
    links = page.locator(".row h2 a").evaluate_all("links => links.map(each => each.href)")
    assert len(links) > 3
    for key, at in (("j", 0), ("j", 1), ("j", 2), ("k", 1)):
        page.keyboard.press(key)
        assert focused(page) == links[at]
    page.keyboard.press("/")
    assert focused(page) == "q"
    # In the search field, keys type characters.
    page.keyboard.type("jo?/")
    assert page.locator("#q").input_value() == "jo?/"
    page.locator(".row h2 a").nth(2).focus()
    page.keyboard.press("Control+k")
    assert focused(page) == links[2]
    with page.expect_navigation():
        page.keyboard.press("o")
    assert page.url == links[2]


@narrow
def test_keys_are_explained_and_can_be_switched_off(site: SampleSite, page: Page) -> None:
    page.goto(site.address)
    page.keyboard.press("?")
    help_ = page.get_by_role("dialog")
    assert help_.is_visible()
    assert help_.locator("kbd").all_inner_texts() == ["/", "j", "k", "o", "?"]
    help_.get_by_label("Use these keys").uncheck()
    page.keyboard.press("Escape")
    assert not help_.is_visible()
    page.reload()
    page.keyboard.press("/")
    assert focused(page) != "q"
    page.get_by_role("button", name="Keys").click()
    help_.get_by_label("Use these keys").check()
    help_.get_by_role("button", name="Close").click()
    page.keyboard.press("/")
    assert focused(page) == "q"


def test_keys_work_without_local_storage(site: SampleSite, page: Page) -> None:
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw Error('denied') } })")
    page.goto(site.address)
    page.keyboard.press("/")
    assert focused(page) == "q"


def test_addresses_omit_empty_fields(site: SampleSite, page: Page) -> None:
    page.goto(f"{site.address}/?sort=oldest")
    page.get_by_role("searchbox").fill("council")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query, keep_blank_values=True)
    assert query == {"q": ["council"], "sort": ["oldest"]}


def test_times_are_in_the_readers_time_zone(site: SampleSite, page: Page) -> None:
    page.goto(site.article())
    time = page.locator(".full time").first
    moment = str(time.get_attribute("datetime"))
    written = page.evaluate(
        """moment => new Intl.DateTimeFormat('en', {
            year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit',
            hourCycle: 'h23', timeZone: 'Asia/Shanghai'
        }).format(new Date(moment))""",
        moment,
    )
    assert time.inner_text() == written
    assert "Asia/Shanghai" in page.locator(".zone").first.inner_text()
    page.goto(f"{site.address}/?sort=newest")
    assert page.locator(".row time").first.get_attribute("title") != moment
    # A bar covers a day in the reader's time zone; its count, the filter and the rows agree.
    bar = page.locator(".histogram .for-wide a").first
    label = str(bar.locator("title").text_content())
    bar.click()
    number, _, period = label.partition(" article")
    assert page.locator(".totals strong").last.inner_text() == number
    assert period.partition(": ")[2] in page.locator(".narrowings li").first.inner_text()
    moment = str(page.locator(".row time").first.get_attribute("datetime"))
    day = datetime.fromisoformat(moment).astimezone(ZoneInfo("Asia/Shanghai"))
    assert f"{day:%b} {day.day}, " in period
    feed = page.locator(".exports a").first.get_attribute("href")
    assert "time_zone=Asia%2FShanghai" in str(feed)


@narrow
def test_new_articles_are_announced_without_reloading(
    page: Page, es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    index, forest = index_name("live"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES[:3])
    with served("--index", index, "--forest", forest, "--url", elasticsearch_url) as address:
        page.clock.install()
        page.goto(f"{address}/?q=lighthouse+keepers")
        page.goto(f"{address}/?sort=newest")
        note = page.locator("#live")
        page.clock.run_for(61_000)
        assert not note.is_visible()
        text = "A note that nobody else has had, about lighthouses, their keepers and the tides there."
        with Dedup(es, forest=forest) as dedup:
            feed(es, dedup, index, [{"_id": "new", "text": text, "title": "A new note"}])
        with page.expect_response("**/api/v1/list?*"):
            page.clock.run_for(60_000)
        note.wait_for()
        assert note.inner_text() == "New articles: 1. Show them"
        with page.expect_navigation():
            note.get_by_role("link").click()
        assert page.locator(".row h2", has_text="A new note").first.is_visible()
        assert not note.is_visible()
