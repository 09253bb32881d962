import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from playwright.sync_api import Browser, sync_playwright

from esdedup import Dedup
from esdedup.cli import main
from tests.support import excerpts
from tests.support.browsing import WINDOWS, SampleSite, sample_site
from tests.support.forests import feed
from tests.support.names import new_names

LONG = "and a text that is long enough to be told from others"


class Result:
    """The exit code and the output of a command."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code, self.out, self.err = code, out.decode(), err.decode()
        assert "Traceback" not in self.err, self.err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


def lines(*articles: Any) -> bytes:
    return b"".join(json.dumps(article).encode() + b"\n" for article in articles)


def environment_of(url: str | None, changes: dict[str, str]) -> dict[str, str]:
    """Return the environment with `changes` and `url`, without variables that name another server."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ES_", "ELASTIC"))}
    return inherited | changes | ({} if url is None else {"ELASTICSEARCH_URL": url})


def run_in(directory: Path, of: str | None = None) -> Run:
    """Return a function that runs the command in this process, which is faster than starting Python.

    Args:
        directory: The working directory.
        of: The server's address, set in the environment.
    """

    def run(
        *arguments: object, stdin: bytes | None = None, url: str | None = of, **environment: str
    ) -> Result:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(directory)
            patch.setattr(os, "environ", environment_of(url, environment))
            patch.setattr(sys, "argv", ["esdedup", *map(str, arguments)])
            out, err = io.BytesIO(), io.BytesIO()
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin or b"")))
            patch.setattr(sys, "stdout", io.TextIOWrapper(out, "utf-8", write_through=True))
            patch.setattr(sys, "stderr", io.TextIOWrapper(err, "utf-8", write_through=True))
            handled = signal.getsignal(signal.SIGINT)
            with pytest.raises(SystemExit) as ended:
                main()
            signal.signal(signal.SIGINT, handled)
            return Result(int(ended.value.code or 0), out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the command in this process, in the test's own directory."""
    return run_in(tmp_path)


@pytest.fixture
def online(tmp_path: Path, elasticsearch_url: str) -> Run:
    """Run the command in this process, with the address of the node."""
    return run_in(tmp_path, elasticsearch_url)


@pytest.fixture
def run_process(tmp_path: Path) -> Run:
    """Run the command in its own process, as a user does."""

    def run_process(
        *arguments: object, stdin: bytes | None = None, url: str | None = None, **environment: str
    ) -> Result:
        done = subprocess.run(
            [Path(sys.executable).parent / "esdedup", *map(str, arguments)],
            check=False,
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            cwd=tmp_path,
            timeout=300,
            env=environment_of(url, environment),
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return run_process


_ARGUMENTS_OF_CHROMIUM = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium: on Debian, apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS_OF_CHROMIUM)
        yield browser
        browser.close()


def windows(params: list[tuple[str, str]]) -> Any:
    """Return a fixture of the size of a window and the reader's preferred language."""

    @pytest.fixture(params=params, ids="-".join)
    def window(request: pytest.FixtureRequest) -> tuple[str, str]:
        size, language = request.param
        return size, language

    return window


window = windows(WINDOWS[:2])


@contextlib.contextmanager
def editors_site(es: Elasticsearch, url: str, articles: list[dict[str, Any]]) -> Iterator[SampleSite]:
    """Serve an index of these articles, whose stories a named editor may edit."""
    with new_names(es) as name:
        index, forest = name("desk"), name("desk-forest")
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index, editorial=True)
            feed(es, dedup, index, articles)
        with sample_site(es, url, index, forest, "--editor-header", "X-Remote-User") as site:
            yield site


@pytest.fixture(scope="session")
def site(es: Elasticsearch, elasticsearch_url: str, unchanged: tuple[str, str]) -> Iterator[SampleSite]:
    """Pages with the sample's articles, shared by all tests that only read."""
    with sample_site(es, elasticsearch_url, *unchanged) as site:
        yield site


@pytest.fixture(scope="session")
def quoted(es: Elasticsearch, elasticsearch_url: str) -> Iterator[SampleSite]:
    """Pages with a story that has excerpts, and with a placeholder."""
    with new_names(es) as name:
        index, forest = name("quoted"), name("forest")
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index)
            feed(es, dedup, index, [*excerpts.articles(), *excerpts.placeholders()])
        es.delete(index=index, id="lost", refresh=True)
        with sample_site(es, elasticsearch_url, index, forest) as site:
            yield site
