"""The TypeScript client is generated from the API description, compiled, and used from another origin."""

import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch, helpers
from playwright.sync_api import Browser, Page, expect

from docs.made_from_code import without_examples
from esdedup import Dedup, Reader
from esdedup.web.app import api_description
from tests.support.browsing import served, watched
from tests.support.forests import ARTICLES

ROOT = Path(__file__).parents[2]
CLIENT, EXAMPLE = "clients/typescript", "examples/front-end"
INSTALL_S = 420.0
INDEX, FOREST = "test-typescript", "test-typescript-forest"
# Lines after `@ts-expect-error` must not compile; if one does, the compiler reports it.
USE = """
const first = page.rows[0];
if (first) console.log(first.similar.toFixed(), first.details?.snippet.title.map((part) => part.is_match));
// @ts-expect-error: there is no such sort
await client.list({ sort: "best" });
// @ts-expect-error: an article has an id
await client.article({});
// @ts-expect-error: there is no such edit
await client.edit({ kind: "join", ids: ["42"] });
// @ts-expect-error: `next` may be missing
page.next.length;
"""
# Two articles in one cluster, without title and source, and with a word that is longer than a line.
ODD_TEXT = f"The quokka keeper counted {'x' * 300} and wrote the number down. " * 3
ODD = [{"_id": f"odd-{place}", "_source": {"text": ODD_TEXT, "published_at": 0}} for place in range(2)]
# Prints the requests of the client, which are not sent; the last page of results has no `next`.
SENT = """
import { Client } from "./dist/index.js";

const stop = new AbortController();
const sent = [];
const answers = ["second", null].map((next) => Response.json({ rows: [], next }));
const client = new Client("http://desk.example/news/", {
  init: { headers: new Headers({ Authorization: "Bearer token" }), signal: stop.signal },
  fetch: async (...request) => { sent.push(request); return answers.shift() ?? Response.json({}); },
});
for await (const _ of client.pages({ page: 2, q: "ferry" })) {}
await client.similarToText({ text: "The ferry" }, {}, new AbortController().signal);
await client.edits();
await client.edit({ kind: "merge", ids: ["42", { index: "old", id: "42" }], to: "17" });
stop.abort();
console.log(JSON.stringify(sent.map(([address, { method, headers, signal }]) =>
  [method, address, Object.fromEntries(headers), signal.aborted])));
"""


def _run(folder: Path, *command: str, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True, timeout=seconds, env=os.environ
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the client and the example, with the client's packages installed."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, so the client for TypeScript cannot be compiled")
    folder = tmp_path_factory.mktemp("checkout")
    for each in (CLIENT, EXAMPLE):
        ignored = shutil.ignore_patterns("node_modules", "dist", "openapi.json")
        shutil.copytree(ROOT / each, folder / each, ignore=ignored)
    done = _run(folder / CLIENT, "npm", "ci", seconds=INSTALL_S)
    if done.returncode:
        pytest.skip(f"the packages for the client cannot be installed: {done.stderr.strip()[-300:]}")
    return folder


@pytest.fixture(scope="module")
def built(checkout: Path) -> Path:
    """The checkout after the client is compiled."""
    done = _run(checkout / CLIENT, "npm", "run", "build")
    assert done.returncode == 0, done.stdout
    return checkout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_types_match_the_api_description(checkout: Path) -> None:
    folder = checkout / CLIENT
    kept = (folder / "src/schema.ts").read_text()
    (folder / "openapi.json").write_text(json.dumps(without_examples(api_description())))
    done = _run(folder, "npm", "run", "generate")
    assert done.returncode == 0, done.stderr
    assert (folder / "src/schema.ts").read_text() == kept, "run `make client`"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_example_of_the_readme_compiles(built: Path) -> None:
    folder = built / CLIENT
    (block,) = re.findall(r"```ts\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    use = folder / "src/use.ts"
    use.write_text(block.replace('"esdedup-client"', '"./index.js"') + USE)
    done = _run(folder, "npx", "tsc", "--noEmit")
    use.unlink()
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_client_sends_parameters_headers_and_bodies(built: Path) -> None:
    done = _run(built / CLIENT, "node", "--input-type=module", "--eval", SENT)
    assert done.returncode == 0, done.stderr
    base, token = "http://desk.example/news/api/v1", {"authorization": "Bearer token"}
    assert json.loads(done.stdout) == [
        ["GET", f"{base}/list?page=2&q=ferry", token, True],
        ["GET", f"{base}/list?q=ferry&after=second", token, True],
        ["POST", f"{base}/similar", token | {"content-type": "application/json"}, True],
        ["GET", f"{base}/edits", token, True],
        ["POST", f"{base}/edits", token | {"content-type": "application/json"}, True],
    ]


@pytest.fixture(scope="module")
def index(es: Elasticsearch) -> Iterator[str]:
    es.options(ignore_status=404).indices.delete(index=[INDEX, FOREST])
    with Dedup(es, forest=FOREST) as dedup:
        dedup.setup(INDEX)
        articles = [*ARTICLES, *ODD]
        helpers.bulk(es, dedup.enrich({"_index": INDEX, **each} for each in articles), refresh=True)
    yield INDEX
    es.indices.delete(index=[INDEX, FOREST])


@contextlib.contextmanager
def other_site(folder: Path) -> Iterator[str]:
    """Serve the files of a front end from another origin; yield the address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=folder)
    ) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{site.server_port}"
        site.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_example_shows_each_story_once(
    built: Path, browser: Browser, es: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    options = ("--index", index, "--forest", FOREST, "--url", elasticsearch_url)
    with other_site(built) as front_end:
        with served(*options, "--allow-origin", front_end) as base:
            for size in ("wide", "narrow"):
                with watched(browser, size) as page:
                    _use(page, f"{front_end}/{EXAMPLE}/?base={base}", Reader(es))
            page = browser.new_page()
            page.goto(f"{front_end}/{EXAMPLE}/?base={base}")
            expect(page.get_by_role("button", name="More")).to_be_visible()
            _search(page, "x" * 1_001)
            # The example shows the server's error message.
            expect(page.get_by_role("status")).to_contain_text("at most 1000 characters")
            expect(page.get_by_role("button", name="More")).to_be_hidden()
            # A new search aborts the pending search.
            page.route("**/list?q=harbour*", lambda _: None)
            _search(page, "harbour")
            with page.expect_event("requestfailed") as given_up:
                _search(page, "quokka")
            assert given_up.value.failure == "net::ERR_ABORTED"
            expect(page.get_by_role("heading", level=2)).to_have_text(["Untitled"])
            page.locator("summary").click()
            expect(page.locator("li")).to_have_text(["Untitled"])
            page.close()
        with served(*options) as base:
            page = browser.new_page()
            page.goto(f"{front_end}/{EXAMPLE}/?base={base}")
            # Without `--allow-origin`, the browser withholds the response from the page.
            expect(page.get_by_role("status")).to_contain_text("Failed to fetch")
            page.close()


def _use(page: Page, address: str, reader: Reader) -> None:
    expected = reader.list(INDEX, size=10)
    page.goto(address)
    rows = page.locator("article")
    expect(rows).to_have_count(10)
    status = f"Stories: {expected.total_rows}, articles: {expected.total_articles}"
    expect(page.get_by_role("status")).to_have_text(status)
    page.get_by_role("button", name="More").click()
    expect(rows).to_have_count(20)
    _search(page, "quokka")
    # The word that is longer than a line must not widen the page.
    expect(page.get_by_role("heading", level=2)).to_have_text(["Untitled"])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    _search(page, "harbour")
    expect(page.locator("mark").first).to_have_text(re.compile("harbour", re.IGNORECASE))
    found = reader.list(INDEX, query=reader.search_query(INDEX, "harbour"), size=10)
    expect(rows).to_have_count(len(found.rows))
    place = next(place for place, row in enumerate(found.rows) if row.similar)
    rows.nth(place).locator("summary").click()
    expect(rows.nth(place).locator("li")).to_have_count(min(5, found.rows[place].similar))


def _search(page: Page, words: str) -> None:
    page.get_by_role("searchbox").fill(words)
    page.get_by_role("button", name="Search").click()
