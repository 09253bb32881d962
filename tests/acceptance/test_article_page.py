"""The article page and the comparison of two articles in a browser: wide and narrow, in both languages."""

import dataclasses
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browsing import LOCALES, SampleSite, watched

WORDS = {
    "en": {
        "folded": "with the same wording",
        "compare": "compare",
        "choose": "Compare A with B",
        "only in A": "only in A",
        "one": "One story",
        "two": "Two stories",
        "alone": "In figures",
        "swap": "swap A and B",
        "first": "first:",
        "newest": "Last to first",
        "source": "By source",
        "others": "Only other sources",
        "own": "this article",
        "same": "the same wording as this article",
        "quoted by": "Also quoted in part by",
        "excerpts": "3 excerpts",
        "part of": "Quotes a part of: Of the story",
        "copies": "1 similar article",
        "placeholder": "This seems to be a placeholder, not a story",
    },
    "zh": {
        "folded": "篇正文相同",
        "compare": "对比",
        "choose": "对比 A 与 B",
        "only in A": "仅 A 有",
        "one": "同一组",
        "two": "两组",
        "alone": "数据",
        "swap": "互换 A 与 B",
        "first": "首发：",
        "newest": "时间倒序",
        "source": "按来源",
        "others": "只看其他来源",
        "own": "本文",
        "same": "与本文正文相同",
        "quoted by": "节选本文的报道",
        "excerpts": "节选 3 篇",
        "part of": "节选自：Of the story",
        "copies": "1 篇相似报道",
        "placeholder": "这似乎是占位文字，而不是一篇报道",
    },
}


@dataclasses.dataclass(frozen=True)
class Visit:
    """A page and the texts of its interface."""

    page: Page
    words: dict[str, str]


@pytest.fixture
def visit(browser: Browser, window: tuple[str, str]) -> Iterator[Visit]:
    size, language = window
    with watched(browser, size, locale=LOCALES[language]) as page:
        yield Visit(page, WORDS[language])


def follow(page: Page, name: str) -> None:
    with page.expect_navigation():
        page.get_by_role("link", name=name, exact=True).first.click()


def moments(page: Page) -> list[str]:
    return [str(each.get_attribute("datetime")) for each in page.locator(".version h3 + .meta time").all()]


def test_versions_can_be_sorted_and_grouped_by_source(site: SampleSite, visit: Visit) -> None:
    page, words = visit.page, visit.words
    page.goto(site.article())
    oldest_first = moments(page)
    assert len(oldest_first) > 3
    assert oldest_first == sorted(oldest_first)
    # The timeline and the article both name the first source.
    first = page.locator(".version .source").first.inner_text()
    assert page.locator(".timeline text.first").text_content() == f"{words['first']} {first}".replace(
        "： ", "："
    )
    assert page.locator(".full .first a").inner_text() == first
    assert page.locator(".version.own .tag").first.inner_text() == words["own"]
    # Articles with the same wording share an entry, which unfolds.
    copies = page.locator(".copies", has_text=words["folded"])
    assert copies.count()
    folded = copies.first.locator("li")
    assert not folded.first.is_visible()
    copies.first.locator("summary").click()
    assert folded.first.is_visible()
    follow(page, words["newest"])
    assert moments(page) == sorted(moments(page), reverse=True)
    follow(page, words["source"])
    assert page.locator(".sources li").count() > 1
    everything = page.locator("#similar-heading").inner_text()
    follow(page, words["others"])
    assert page.locator("#similar-heading").inner_text() != everything


def test_a_copy_is_listed_under_its_version(site: SampleSite, visit: Visit) -> None:
    page, words = visit.page, visit.words
    versions = site.reader.versions(site.index, site.largest[0]).versions
    folded = next(each for each in versions if each.copies)
    copy = folded.copies_shown[-1]
    page.goto(f"{site.address}/article?id={copy.id}")
    line = page.locator(".version.own")
    assert line.count() == 1
    assert line.locator("h3 + .meta .tag").inner_text() == words["same"]
    line.locator("summary").click()
    assert line.locator(".copies .tag").inner_text() == words["own"]


def test_a_link_compares_a_version_with_the_article(site: SampleSite, visit: Visit) -> None:
    page, words = visit.page, visit.words
    page.goto(site.article())
    text = page.locator(".text").inner_text()
    links = page.locator(".version").get_by_role("link", name=words["compare"], exact=True)
    with page.expect_navigation():
        links.last.click()
    assert words["one"] in page.locator(".why strong").inner_text()
    assert page.get_by_text(words["only in A"]).is_visible()
    marks = page.locator(".text del, .text ins")
    assert marks.count()
    # Without the other article's passages, the marked text equals the article's text except for spaces.
    whole = {
        without: page.locator(".text").evaluate(
            """(box, without) => [...box.childNodes]
                .filter(each => each.nodeName != without).map(each => each.textContent).join('')""",
            without,
        )
        for without in ("INS", "DEL")
    }
    assert "".join(text.split()) in ["".join(each.split()) for each in whole.values()]
    # The page explains, in words and figures, why the two articles are one story.
    page.get_by_text(words["alone"]).click()
    assert page.locator(".facts dd").count() >= 3
    assert re.search(r"\d%", page.locator(".facts").inner_text())
    sides = page.locator(".side h2 a").evaluate_all("links => links.map(each => each.href)")
    follow(page, words["swap"])
    assert page.locator(".side h2 a").evaluate_all("links => links.map(each => each.href)") == sides[::-1]


def test_any_two_articles_can_be_compared(site: SampleSite, visit: Visit) -> None:
    page, words = visit.page, visit.words
    page.goto(site.article(listed="q=the"))
    page.locator("input[name=one]").nth(1).check()
    page.locator("input[name=other]").nth(3).check()
    sources = page.locator(".version h3 + .meta .source").all_inner_texts()
    with page.expect_navigation():
        page.get_by_role("button", name=words["choose"]).click()
    assert page.locator(".side .source").all_inner_texts() == [sources[1], sources[3]]
    # The page keeps the search words.
    assert page.get_by_role("searchbox").input_value() == "the"
    # Any article can be chosen by the address of its page, even an article of another story.
    one, other = site.largest
    page.goto(f"{site.address}/article?id={other}")
    elsewhere = page.url
    page.goto(f"{site.address}/article?id={one}")
    page.locator(".with-another input[name=other]").fill(elsewhere)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert words["two"] in page.locator(".why strong").inner_text()


@pytest.mark.parametrize("view", ["oldest", "source"])
def test_excerpts_and_their_origin_are_shown(quoted: SampleSite, visit: Visit, view: str) -> None:
    page, words = visit.page, visit.words
    page.goto(f"{quoted.address}/article?id=story&view={view}&listed=q%3Dof")
    section = page.get_by_role("region", name=words["quoted by"])
    assert section.locator("h3").all_inner_texts() == ["Of the second-excerpt", "Of the excerpt"]
    oldest = section.locator(".row").last
    assert oldest.locator(".source").inner_text() == "Post of excerpt"
    assert oldest.locator(".outside").get_attribute("href") == "https://excerpt.example/"
    assert words["copies"] in oldest.inner_text()
    # Excerpts do not count as similar articles.
    assert page.locator("#similar .source", has_text="excerpt").count() == 0
    page.locator(".full").get_by_role("link", name=words["excerpts"]).click()
    assert page.evaluate("document.activeElement.id") == "excerpts"
    follow(page, "Of the excerpt")
    line = page.locator(".full .part")
    assert line.inner_text().startswith(words["part of"])
    assert not page.locator("#excerpts").count()
    follow(page, "Of the story")
    assert page.url.startswith(f"{quoted.address}/article?id=story&listed=")
    assert not page.locator(".part").count()
    # The story that this article quotes has been deleted.
    page.goto(f"{quoted.address}/article?id=lost-excerpt&view={view}")
    assert not page.locator(".part, #excerpts, .full .note").count()
    page.goto(f"{quoted.address}/article?id=wall-3&view={view}")
    assert page.locator(".full .note").inner_text().startswith(words["placeholder"])
