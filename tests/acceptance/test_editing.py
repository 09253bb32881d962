"""Editing stories in a real browser, with and without scripts, and at the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch
from playwright.sync_api import Browser

from esdedup import Dedup, Reader
from tests.acceptance.conftest import Run
from tests.acceptance.test_frame import RULES, violations
from tests.support.browsing import LOCALES, SampleSite, sample_site, watched
from tests.support.forests import ARTICLES, feed
from tests.support.names import Names, new_names

WORDS = {"en": ("Merge both stories", "Undo edit 1"), "zh": ("合并两组", "撤销第 1 条")}


@pytest.fixture(scope="module")
def desk(es: Elasticsearch, elasticsearch_url: str) -> Iterator[SampleSite]:
    """Pages of an index whose stories a named editor may edit."""
    with new_names(es) as name:
        index, forest = name("desk"), name("desk-forest")
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index, editorial=True)
            feed(es, dedup, index, ARTICLES)
        options = "--editor-header", "X-Remote-User"
        with sample_site(es, elasticsearch_url, index, forest, *options) as site:
            yield site


def test_an_editor_merges_two_stories_and_undoes_the_merge(
    desk: SampleSite, browser: Browser, window: tuple[str, str], tmp_path: Path
) -> None:
    size, language = window
    one, other = desk.largest
    merge, undo = WORDS[language]
    options = {"locale": LOCALES[language], "extra_http_headers": {"X-Remote-User": "A. Chen"}}

    def similar() -> int:
        return desk.reader.similar(desk.index, one).total

    before = similar()
    with watched(browser, size, java_script_enabled=language == "en", **options) as page:
        page.goto(f"{desk.address}/article?id={one}")
        if language == "en":
            assert not violations(page, RULES)
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
            assert not violations(page, RULES)
        page.screenshot(path=tmp_path / "edits.png")
        page.get_by_role("button", name=undo).click()
        assert page.url.endswith("/edits")
    assert similar() == before


def test_an_editor_merges_rows_of_the_list(
    desk: SampleSite, browser: Browser, window: tuple[str, str], tmp_path: Path
) -> None:
    size, language = window
    merge = {"en": "Merge the chosen rows", "zh": "合并所选的行"}[language]
    options = {"locale": LOCALES[language], "extra_http_headers": {"X-Remote-User": "A. Chen"}}
    before = desk.reader.list(desk.index)
    with watched(browser, size, java_script_enabled=language == "en", **options) as page:
        page.goto(f"{desk.address}/?sort=oldest")
        boxes = page.locator("[name=chosen]")
        for number in (0, 2):
            boxes.nth(number).check()
        if language == "en":
            assert not violations(page, RULES)
        page.screenshot(path=tmp_path / "chosen.png")
        page.get_by_role("button", name=merge).click()
        assert page.url.endswith("/?sort=oldest")
    after = desk.reader.list(desk.index)
    assert after.total_rows == before.total_rows - 1
    assert after.total_articles == before.total_articles


def test_visitors_cannot_edit(desk: SampleSite, browser: Browser) -> None:
    with watched(browser, "wide", locale="en-GB") as page:
        page.goto(f"{desk.address}/article?id={desk.largest[0]}")
        assert page.locator("#editing").count() == 0


def test_editing_commands_report_edits_and_refusals(
    online: Run, es: Elasticsearch, index_name: Names
) -> None:
    index, forest = index_name("desk"), index_name("desk-forest")
    assert online("setup", index, "--editorial", "--forest", forest).code == 0
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, ARTICLES)
    rows = Reader(es).list(index, sort="similar-desc", size=3).rows
    one, other, third = (row.id for row in rows)
    where = ("--index", index, "--forest", forest, "--by", "A. Chen")
    merged = online("merge", one, other, *where, "--why", "one fire", "--json")
    assert merged.code == 0, merged.err
    assert merged.json["articles"] == rows[1].similar + 1
    assert Reader(es).similar(index, one).total == rows[0].similar + rows[1].similar + 1
    moved = online("move", third, "--to", one, *where)
    assert moved.code == 0, moved.err
    assert "edit 2:" in moved.out
    split = online("split", third, *where)
    assert split.code == 0, split.err
    assert online("edits", "--undo", "1", *where).code == 0
    listed = online("edits", "--index", index, "--forest", forest)
    assert [word in listed.out for word in ("merge", "one fire", "undone", "undo 1", "A. Chen")] == [True] * 5
    assert online("verify", "--index", index, "--forest", forest).code == 0
    for command, code, words in (
        (("merge", one, *where), 2, "at least two"),
        (("merge", one, "none", *where), 1, "no article"),
        (("merge", one, one, *where), 2, "already"),
        (("edits", "--undo", "1", *where), 2, "no edit 1"),
        (("edits", "--undo", "1", "--index", index, "--forest", forest), 2, "--by"),
        (("split", one, *where[:2], "--forest", index_name("none"), "--by", "x"), 3, "forest"),
    ):
        refused = online(*command)
        assert refused.code == code, (command, refused.err)
        assert words in refused.err
        assert "Traceback" not in refused.err
