"""An editor at work in a real browser, with and without scripts, and at the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch
from playwright.sync_api import Browser

from esdedup import Dedup
from tests.acceptance.test_frame import RULES, barriers
from tests.support.browsing import LOCALES, SampleSite, sample_site, watched
from tests.support.forests import ARTICLES, feed
from tests.support.names import new_names

WORDS = {"en": ("Merge both stories", "Undo edit 1"), "zh": ("合并两组", "撤销第 1 条")}


@pytest.fixture
def desk(es: Elasticsearch, elasticsearch_url: str) -> Iterator[SampleSite]:
    with new_names(es) as name:
        index, forest = name("desk"), name("desk-forest")
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index, editorial=True)
            feed(es, dedup, index, ARTICLES)
        options = "--editor-header", "X-Remote-User"
        with sample_site(es, elasticsearch_url, index, forest, *options) as site:
            yield site


@pytest.mark.parametrize(("size", "language"), [("wide", "en"), ("narrow", "zh")])
def test_an_editor_merges_two_stories_and_undoes_it(
    desk: SampleSite, browser: Browser, size: str, language: str, tmp_path: Path
) -> None:
    one, other = desk.largest
    merge, undo = WORDS[language]
    options = {"locale": LOCALES[language], "extra_http_headers": {"X-Remote-User": "A. Chen"}}

    def similar() -> int:
        return desk.reader.similar(desk.index, one).total

    before = similar()
    with watched(browser, size, java_script_enabled=language == "en", **options) as page:
        page.goto(f"{desk.address}/article?id={one}")
        if language == "en":
            assert not barriers(page, RULES)
        form = page.locator("#editing form")
        form.locator("[name=to]").fill(f"{desk.address}/article?id={other}")
        form.locator("[name=why]").fill("one fire")
        form.screenshot(path=tmp_path / "form.png")
        form.get_by_role("button", name=merge).click()
        assert page.url.endswith(f"/article?id={one}#similar")
        assert similar() > before
        page.goto(f"{desk.address}/edits")
        assert "A. Chen" in page.inner_text("main")
        assert "one fire" in page.inner_text("main")
        if language == "en":
            assert not barriers(page, RULES)
        page.screenshot(path=tmp_path / "edits.png")
        page.get_by_role("button", name=undo).click()
        assert page.url.endswith("/edits")
    assert similar() == before


def test_visitors_see_nothing_of_it(desk: SampleSite, browser: Browser) -> None:
    with watched(browser, "wide", locale="en-GB") as page:
        page.goto(f"{desk.address}/article?id={desk.largest[0]}")
        assert page.locator("#editing").count() == 0
