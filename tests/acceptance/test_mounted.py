"""The application and the widget of docs/guides/fastapi.md, in a browser."""

import runpy
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from elasticsearch import Elasticsearch
from playwright.sync_api import Browser

from esdedup import Dedup
from esdedup.serving.connections import address_of, listen
from tests.acceptance.conftest import LONG
from tests.support.code_blocks import ROOT, blocks_of
from tests.support.forests import feed
from tests.support.names import new_names

GUIDE = {each.title: each.text for each in blocks_of(ROOT / "docs/guides/fastapi.md") if each.title}
START_S = 30.0


@pytest.fixture(scope="module")
def address(
    es: Elasticsearch, elasticsearch_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("mounted")
    with new_names(es) as name, pytest.MonkeyPatch.context() as patch:
        index, forest = name("mounted"), name("forest")
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index)
            texts = [f"Ferry {LONG}", f"Ferry {LONG}", f"Goats on the roof of the school {LONG}"]
            articles = [
                {"_id": str(at), "title": text.split()[0], "text": text} for at, text in enumerate(texts)
            ]
            feed(es, dedup, index, articles)
        code = GUIDE["app.py"].replace("http://localhost:9200", elasticsearch_url)
        (folder / "app.py").write_text(code.replace('"news"', repr(index)), "utf-8")
        (folder / "widget.html").write_text(GUIDE["widget.html"], "utf-8")
        patch.chdir(folder)
        app: Any = runpy.run_path("app.py")["app"]
        with listen("127.0.0.1", 0) as listening:
            server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
            thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
            thread.start()
            end_s = time.monotonic() + START_S
            while not server.started and time.monotonic() < end_s:
                time.sleep(0.05)
            yield address_of(listening)
            server.should_exit = True
            thread.join(START_S)


def test_the_widget_shows_stories_and_links_to_the_pages(address: str, browser: Browser) -> None:
    page = browser.new_page()
    try:
        page.goto(address)
        page.wait_for_selector("li")
        shown = sorted(page.locator("li").all_inner_texts())
        assert shown == ["Ferry (1 similar)", "Goats (0 similar)"]
        page.get_by_role("link", name="Ferry").click()
        assert page.url.startswith(f"{address}/stories/article?id=")
        assert page.get_by_role("heading", level=1).inner_text() == "Ferry"
        page.goto(f"{address}/stories/")
        assert page.locator("h2, h3").count() >= 2
        style = page.locator("link[rel=stylesheet]").first.get_attribute("href")
        assert style is not None
        assert style.startswith("/stories/static/")
    finally:
        page.close()


def test_results_are_models_of_the_applications_own_api(address: str, browser: Browser) -> None:
    page = browser.new_page()
    try:
        answer = page.request.get(f"{address}/latest?q=ferry&size=1").json()
        assert (len(answer["rows"]), answer["rows"][0]["similar"]) == (1, 1)
        described = page.request.get(f"{address}/openapi.json").json()
        schema = described["paths"]["/latest"]["get"]["responses"]["200"]["content"]["application/json"]
        assert schema["schema"] == {"$ref": "#/components/schemas/Page"}
        assert page.request.get(f"{address}/stories/api/v1/list").json()["total_rows"] == 2
    finally:
        page.close()
