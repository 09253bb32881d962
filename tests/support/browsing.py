"""The pages in a real browser, served by the command that users start."""

import contextlib
import dataclasses
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch
from playwright.sync_api import Browser, Page

from esdedup import Reader

WINDOWS = [("wide", "en"), ("narrow", "zh"), ("wide", "zh"), ("narrow", "en")]
"""All pairs of a window size and a language; the first two pairs cover both sizes and both languages."""
SIZES = {"wide": (1280, 900), "narrow": (375, 812)}
"""The width and height of windows, in pixels."""
LOCALES = {"en": "en-GB", "zh": "zh-CN"}
"""The browser's locale, by the language in which it gets the pages."""


@contextlib.contextmanager
def served(*options: str) -> Iterator[str]:
    """Run the command on a free port; yield the address that it prints."""
    command = [str(Path(sys.executable).parent / "esdedup"), "serve", *options, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r" at (http://\S+) ", line)
            assert found, line
            yield found[1]
        finally:
            process.terminate()
            assert process.wait(timeout=30) in {0, -15}


@contextlib.contextmanager
def watched(browser: Browser, size: str, **options: Any) -> Iterator[Page]:
    """Yield a page; fail the test if it has an error, scrolls sideways or loads anything from another server.

    Args:
        browser: A browser.
        size: The size of the window, a key of `SIZES`.
        options: Options of the browser's context, such as ``locale`` and ``color_scheme``.
    """
    width, height = SIZES[size]
    page = browser.new_page(viewport={"width": width, "height": height}, **options)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    # Leaving a page aborts its pending requests.
    page.on(
        "requestfailed",
        lambda request: None if request.failure == "net::ERR_ABORTED" else wrong.append(request.url),
    )
    page.on("request", lambda request: None if "//127.0.0.1" in request.url else wrong.append(request.url))
    yield page
    # A submitted form may still be loading another page.
    page.wait_for_load_state()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
    assert not wrong, wrong


@dataclasses.dataclass(frozen=True)
class SampleSite:
    """A server that shows the pages of an index."""

    address: str
    index: str
    reader: Reader

    def article(self, **options: str) -> str:
        """Return the address of the page about the third version in the largest cluster."""
        third = self.reader.versions(self.index, self.largest[0]).versions[2].article
        return f"{self.address}/article?{urllib.parse.urlencode({'id': third.id} | options)}"

    @property
    def largest(self) -> list[str]:
        """The id of one article from each of the two largest clusters."""
        return [row.id for row in self.reader.list(self.index, sort="similar-desc", size=2).rows]


@contextlib.contextmanager
def sample_site(es: Elasticsearch, url: str, index: str, forest: str, *options: str) -> Iterator[SampleSite]:
    """Serve an index of the sample's articles."""
    with served("--index", index, "--forest", forest, "--url", url, *options) as address:
        yield SampleSite(address, index, Reader(es, forest=forest))
