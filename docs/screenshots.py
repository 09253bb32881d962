"""Takes the screenshots for the documents: ``make screenshots``.

Starts an Elasticsearch, indexes the sample corpus as if its last article had just arrived, and takes
screenshots of the pages: wide and narrow, and two of them in Chinese.
"""

import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from elasticsearch import Elasticsearch, helpers
from playwright.sync_api import Browser, Page, sync_playwright

from esdedup import Dedup, Reader
from esdedup.times import iso, time_ms
from tests import sample

FOLDER = Path(__file__).parent
COMMAND = str(Path(sys.executable).parent / "esdedup")
INDEX = "news"
ARTICLES = 3_000
WIDE, NARROW = (1280, 940), (390, 844)
# The sizes, each with an infix for file names.
SIZES = ((WIDE, ""), (NARROW, "-narrow"))
# By locale: a suffix for file names, the words to search for, and words of a large story.
LANGUAGES = {"en-GB": ("", "rain", "budget"), "zh-CN": (".zh", "医院", "学校")}


@contextlib.contextmanager
def elasticsearch() -> Iterator[str]:
    """Run an embedded node; yield its address."""
    with tempfile.TemporaryDirectory() as data:
        start = [COMMAND, "node", "start", "--data", data, "--port", "0", "--json"]
        started = subprocess.run(start, check=True, capture_output=True, text=True)
        try:
            yield json.loads(started.stdout)["url"]
        finally:
            subprocess.run([COMMAND, "node", "stop", "--data", data], check=True, capture_output=True)


def feed(es: Elasticsearch) -> None:
    """Index the sample corpus, with all times shifted so that the latest is now."""
    articles = list(sample.articles(ARTICLES))
    times_ms = [time_ms(each["published_at"]) or 0 for each in articles]
    later_ms = int(datetime.now(UTC).timestamp() * 1000) - max(times_ms)
    with Dedup(es) as dedup:
        dedup.setup(INDEX)
        actions = (
            {"_index": INDEX, "_id": each["id"], "_source": each | {"published_at": iso(at_ms + later_ms)}}
            for each, at_ms in zip(articles, times_ms, strict=True)
        )
        helpers.bulk(es, dedup.enrich(actions, backfill=True), refresh=True)


@contextlib.contextmanager
def pages(url: str) -> Iterator[str]:
    """Serve the pages; yield their address."""
    serve = [COMMAND, "serve", "--index", INDEX, "--url", url, "--port", "0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r" at (http://\S+) ", process.stdout.readline())
            assert found is not None
            yield found[1]
        finally:
            process.terminate()


def story(reader: Reader, words: str) -> tuple[str, str]:
    """Return two ids from the largest story with the given words: its first article and another version."""
    query = reader.search_query(INDEX, words)
    row = reader.list(INDEX, query=query, sort="similar-desc", size=1).rows[0]
    versions = [each.article for each in reader.versions(INDEX, row.id).versions]
    other = min(versions[1:], key=lambda each: abs((each.resemblance or 0) - 0.75))
    return versions[0].id, other.id


def photograph(browser: Browser, address: str, reader: Reader) -> None:
    """Take screenshots of a list, an article and a comparison, some of them narrow or in Chinese."""

    def open_page(size: tuple[int, int], locale: str) -> Page:
        width, height = size
        zone = "Asia/Shanghai" if locale == "zh-CN" else "Europe/London"
        return browser.new_page(viewport={"width": width, "height": height}, locale=locale, timezone_id=zone)

    for locale, (suffix, words, story_words) in LANGUAGES.items():
        first, other = story(reader, story_words)
        for size, kind in SIZES if not suffix else SIZES[:1]:
            page = open_page(size, locale)
            page.goto(f"{address}/?q={words}&sort=newest")
            if size is WIDE:
                page.locator(".row summary").first.click()
            page.screenshot(path=FOLDER / f"list{kind}{suffix}.png")
            page.goto(f"{address}/article?id={other}")
            page.locator("#similar").evaluate("section => section.scrollIntoView()")
            page.screenshot(path=FOLDER / f"article{kind}{suffix}.png")
            page.close()
        if not suffix:
            page = open_page(WIDE, locale)
            page.goto(f"{address}/compare?one={first}&other={other}")
            page.screenshot(path=FOLDER / "comparison.png")
            page.close()


def main() -> None:
    """Take all screenshots."""
    with elasticsearch() as url, Elasticsearch(url) as es:
        feed(es)
        with pages(url) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"]
            )
            photograph(browser, address, Reader(es))
            browser.close()


if __name__ == "__main__":
    main()
