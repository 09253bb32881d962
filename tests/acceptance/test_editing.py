"""Editing stories in a real browser, with and without scripts, and at the command line."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch
from playwright.sync_api import Browser, Page

from esdedup import Dedup, Editor, EditRequest, Reader
from tests.acceptance.conftest import Run, editors_site, windows
from tests.acceptance.test_frame import RULES, violations
from tests.support.browsing import LOCALES, WINDOWS, SampleSite, watched
from tests.support.forests import ARTICLES, feed
from tests.support.names import Names

WORDS = {
    "en": {
        "merge": "Merge both stories",
        "joined": "articles? joined the story",
        "undo": "Undo",
        "undone": "Edit {} is undone, {} articles? moved back",
        "redo": "Redo",
        "again": "Edit {} is in effect again, {} articles? moved",
        "split": "Split this text off",
        "out": r"{} articles moved out \({} with the same text\)",
        "rows": "Merge the chosen rows",
        "next": "Keep the choice, next page",
        "save": "Save the name and the note",
        "saved": "The name and the note are saved",
        "later": "1 later edit stays in effect",
    },
    "zh": {
        "merge": "合并两组",
        "joined": "已并入",
        "undo": "撤销",
        "undone": "已撤销第 {} 条，移回 {} 篇报道",
        "redo": "恢复",
        "again": "第 {} 条调整已恢复，移动 {} 篇报道",
        "split": "把本文拆成新的一组",
        "out": "已移出 {} 篇报道（其中 {} 篇正文相同）",
        "rows": "合并所选各组",
        "next": "保留所选，下一页",
        "save": "保存名称和备注",
        "saved": "名称和备注已保存",
        "later": "之后的 1 条调整仍然有效",
    },
}


@dataclasses.dataclass(frozen=True)
class Seat:
    """An editor's page, without scripts in Chinese, and the texts of its interface."""

    page: Page
    language: str

    @property
    def words(self) -> dict[str, str]:
        return WORDS[self.language]

    def press(self, name: str) -> None:
        with self.page.expect_navigation():
            self.page.get_by_role("button", name=self.words[name], exact=True).click()

    def reports(self, name: str, *numbers: int) -> bool:
        """Whether the page reports an edit in these words; numbers replace the braces."""
        self.check()
        notice = self.page.locator(".edited").inner_text()
        return re.search(self.words[name].format(*numbers), notice) is not None

    def check(self) -> None:
        # Axe is a script.
        if self.language == "en":
            assert not violations(self.page, RULES)


@pytest.fixture(scope="module")
def desk(es: Elasticsearch, elasticsearch_url: str) -> Iterator[SampleSite]:
    """Pages of an index whose stories a named editor may edit."""
    with editors_site(es, elasticsearch_url, ARTICLES) as site:
        yield site


window = windows(WINDOWS)


@pytest.fixture
def seat(browser: Browser, window: tuple[str, str]) -> Iterator[Seat]:
    size, language = window
    options = {"locale": LOCALES[language], "extra_http_headers": {"X-Remote-User": "A. Chen"}}
    with watched(browser, size, java_script_enabled=language == "en", **options) as page:
        yield Seat(page, language)


def last_edit(desk: SampleSite, es: Elasticsearch) -> int:
    return len(Editor(es).history(desk.index).edits)


def test_an_editor_merges_two_stories_and_undoes_the_merge(
    desk: SampleSite, seat: Seat, es: Elasticsearch, tmp_path: Path
) -> None:
    page, (one, other) = seat.page, desk.largest

    def similar() -> int:
        return desk.reader.similar(desk.index, one).total

    before = similar()
    page.goto(f"{desk.address}/article?id={one}")
    seat.check()
    form = page.locator("#editing form").first
    form.locator("[name=to]").fill(f"{desk.address}/article?id={other}")
    form.locator("[name=why]").fill("one fire")
    form.screenshot(path=tmp_path / "form.png")
    seat.press("merge")
    made, moved = last_edit(desk, es), similar() - before
    assert moved > 0
    # The other story keeps its name, and the articles of this one join it.
    assert f"/article?id={one}&edited={made}&" in page.url
    assert seat.reports("joined")
    assert str(before + 1) in page.locator(".edited").inner_text()
    page.screenshot(path=tmp_path / "merged.png")
    page.goto(f"{desk.address}/edits")
    edit = page.locator(f"#edit-{made}")
    for words in ("A. Chen", "one fire"):
        assert words in edit.inner_text()
    # Both stories are named by one of their articles.
    links = [str(each.get_attribute("href")) for each in edit.locator(".stories a").all()]
    assert len(links) == 2
    found = [desk.reader.article(desk.index, each.rpartition("id=")[2]) for each in links]
    assert [each.text for each in found] != [found[0].text] * 2
    assert {each.root for each in found} == {desk.reader.article(desk.index, one).root}
    seat.check()
    page.screenshot(path=tmp_path / "edits.png")
    with page.expect_navigation():
        edit.get_by_role("button").click()
    assert "/edits?edited=" in page.url
    assert seat.reports("undone", made, before + 1)
    assert similar() == before


def test_an_editor_merges_rows_of_several_pages(
    desk: SampleSite, seat: Seat, es: Elasticsearch, tmp_path: Path
) -> None:
    page, before = seat.page, desk.reader.list(desk.index)
    page.goto(f"{desk.address}/?sort=oldest&size=5")
    titles = page.locator(".row h2")
    chosen, values = [titles.nth(0).inner_text()], "all => all.map(each => each.value).sort()"
    checked = page.locator("[name=chosen]:checked")
    page.locator(".row [name=chosen]").nth(0).check()
    seat.check()
    seat.press("next")
    assert "page=2" in page.url
    chosen.append(titles.nth(3).inner_text())
    page.locator(".row [name=chosen]").nth(3).check()
    seat.press("next")
    shown = page.locator("#desk .check")
    assert sorted(shown.all_inner_texts()) == sorted(chosen)
    kept = checked.evaluate_all(values)
    assert len(kept) == 2
    # A search keeps the choice too.
    page.locator("#q").fill("the")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert checked.evaluate_all(values) == kept
    seat.check()
    page.screenshot(path=tmp_path / "chosen.png")
    seat.press("rows")
    assert seat.reports("joined")
    assert "chosen" not in page.url
    after = desk.reader.list(desk.index)
    assert after.total_rows == before.total_rows - 1
    assert after.total_articles == before.total_articles
    seat.press("undo")
    assert page.locator(".edited").is_visible()
    assert "q=the" in page.url
    assert desk.reader.list(desk.index).total_rows == before.total_rows


def test_edits_are_undone_and_redone_in_place(
    desk: SampleSite, seat: Seat, es: Elasticsearch, tmp_path: Path
) -> None:
    page, (one, _) = seat.page, desk.largest
    copied = next(each for each in desk.reader.versions(desk.index, one).versions if each.copies)
    text, copies = copied.article.id, copied.copies
    page.goto(f"{desk.address}/article?id={text}&view=newest")
    seat.press("split")
    made = last_edit(desk, es)
    assert seat.reports("out", copies + 1, copies)
    assert "view=newest" in page.url
    page.screenshot(path=tmp_path / "split.png")
    assert desk.reader.similar(desk.index, text).total == copies
    shown_before_undo = page.url
    # Another edit on top does not prevent the undo, and stays in effect.
    Editor(es).edit(desk.index, EditRequest(kind="name", to=one, name="The other story"), by="B. Li")
    seat.press("undo")
    assert seat.reports("undone", made, copies + 1)
    assert seat.words["later"] in page.locator(".edited").inner_text()
    assert "view=newest" in page.url
    page.screenshot(path=tmp_path / "undone.png")
    seat.press("redo")
    assert seat.reports("again", made, copies + 1)
    seat.press("undo")
    assert seat.reports("undone", made, copies + 1)
    # An address that reports an edit which is no longer in effect offers no undo.
    page.goto(shown_before_undo)
    seat.check()
    assert page.locator(".edited form").count() == 0
    Editor(es).edit(desk.index, EditRequest(kind="name", to=one), by="B. Li")
    assert desk.reader.similar(desk.index, one).total > copies


def test_a_story_gets_a_name_and_a_note(desk: SampleSite, seat: Seat, tmp_path: Path) -> None:
    page, (one, _) = seat.page, desk.largest
    name, note = {"en": ("Harbour <fire>", "wait for the police"), "zh": ("港口大火", "等待警方通报")}[
        seat.language
    ]
    page.goto(f"{desk.address}/article?id={one}")
    page.locator("#editing [name=name]").fill(name)
    page.locator("#editing [name=note]").fill(note)
    seat.press("save")
    assert seat.reports("saved")
    assert page.locator(".story").inner_text() == f"{name} {note}"
    assert page.locator("#editing [name=name]").input_value() == name
    page.screenshot(path=tmp_path / "article.png")
    # Visitors who are not editors see the name on the list, too.
    page.goto(f"{desk.address}/?sort=similar-desc")
    assert page.locator(".row").first.locator(".story").inner_text() == f"{name} {note}"
    assert page.locator(".story").count() == 1
    seat.check()
    page.screenshot(path=tmp_path / "list.png")
    page.goto(f"{desk.address}/edits")
    assert name in page.locator(".row h2").first.inner_text()
    seat.check()
    with page.expect_navigation():
        page.locator(".row").first.get_by_role("button").click()
    page.goto(f"{desk.address}/article?id={one}")
    assert page.locator(".story").count() == 0


def test_an_edit_cannot_be_undone_twice(desk: SampleSite, browser: Browser, es: Elasticsearch) -> None:
    one, _ = desk.largest
    made = Editor(es).edit(desk.index, EditRequest(kind="name", to=one, name="One"), by="A. Chen").edit
    headers = {"X-Remote-User": "A. Chen"}
    page = browser.new_page(locale="en-GB", extra_http_headers=headers)
    page.goto(f"{desk.address}/article?id={one}&edited={made.number}&moved=0&same=0")
    Editor(es).edit(desk.index, EditRequest(kind="undo", undoes=made.number), by="B. Li")
    page.locator(".edited button").click()
    assert "the edit has been undone already" in page.inner_text("main")
    page.locator("main a").click()
    assert page.url == f"{desk.address}/article?id={one}"
    page.close()


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
    named = online("name", one, *where, "--name", "Harbour fire", "--note", "wait")
    assert (named.code, named.out) == (0, "edit 5: name and note saved\n"), named.err
    history = online("edits", "--index", index, "--forest", forest, "--json").json
    assert [each["name"] for each in history["names"].values()] == ["Harbour fire"]
    assert "Harbour fire" in online("edits", "--index", index, "--forest", forest).out
    for command, code, words in (
        (("name", one, *where, "--name", "Harbour fire", "--note", "wait"), 2, "already"),
        (("merge", one, *where), 2, "at least two"),
        (("merge", one, "none", *where), 1, "no article"),
        (("merge", one, one, *where), 2, "already"),
        (("edits", "--undo", "1", *where), 2, "undone already"),
        (("edits", "--undo", "1", "--index", index, "--forest", forest), 2, "--by"),
        (("split", one, *where[:2], "--forest", index_name("none"), "--by", "x"), 3, "forest"),
    ):
        refused = online(*command)
        assert refused.code == code, (command, refused.err)
        assert words in refused.err
        assert "Traceback" not in refused.err
