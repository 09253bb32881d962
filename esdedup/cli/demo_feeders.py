"""Three feeders of different kinds that send articles to one sidecar at once: what the demo shows."""

import contextlib
import dataclasses
import functools
import json
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from elasticsearch import Elasticsearch, helpers

from esdedup.elastic.errors import translated
from esdedup.errors import ArticleRejected, SidecarError
from esdedup.ingest.batches import batches
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.files import FileArticle

# Each feeder gets several batches of the sample corpus, and none of them waits long for its answer.
_BATCH_ARTICLES = 250
# The first batch waits until the server has made its indices, which a busy machine does slowly.
_ANSWER_S = 300
_ATTEMPTS = 10
# Of an answer that is none of a bulk request.
_SHOWN_BYTES = 300

Send = Callable[[Sequence[FileArticle]], dict[str, str]]
"""Sends articles; returns, by id, why articles were not indexed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeederResult:
    """What one feeder did."""

    articles: int
    seconds: float


class SharedArticles:
    """Articles that feeders share: each takes the next ones as soon as it has sent those before."""

    def __init__(
        self,
        articles: Iterable[FileArticle | ArticleRejected],
        *,
        on_rejected: Callable[[ArticleRejected], None],
    ) -> None:
        """Share articles, of which none is read yet; those that are not indexed are passed on."""
        self.read = self.failed = 0
        self._on_rejected = on_rejected
        self._lock = threading.Lock()
        self._batches = batches(
            self._readable(articles), most=_BATCH_ARTICLES, size_of=lambda article: article.size_bytes
        )

    def run(self, feeders: Mapping[str, Send]) -> dict[str, FeederResult]:
        """Send all articles; return what each feeder did.

        Raises:
            EsdedupError: A feeder cannot go on.
        """
        with ThreadPoolExecutor(len(feeders)) as pool:
            feeding = {name: pool.submit(self._feed, send) for name, send in feeders.items()}
            try:
                wait(feeding.values(), return_when=FIRST_EXCEPTION)
            finally:
                # If one of them has failed, the others end after what they are sending.
                with self._lock:
                    self._batches = iter(())
        return {name: each.result() for name, each in feeding.items()}

    def _feed(self, send: Send) -> FeederResult:
        articles, started = 0, time.monotonic()
        while batch := self._next():
            refused = send(batch)
            articles += len(batch)
            with self._lock:
                for article in batch:
                    if article.id in refused:
                        self._reject(ArticleRejected(article.name, refused[article.id]))
        return FeederResult(articles=articles, seconds=time.monotonic() - started)

    def _next(self) -> list[FileArticle]:
        with self._lock:
            return next(self._batches, [])

    def _readable(self, articles: Iterable[FileArticle | ArticleRejected]) -> Iterator[FileArticle]:
        for article in articles:
            self.read += 1
            if isinstance(article, FileArticle):
                yield article
            else:
                self._reject(article)

    def _reject(self, rejected: ArticleRejected) -> None:
        self.failed += 1
        self._on_rejected(rejected)


@contextlib.contextmanager
def three_feeders(es: Elasticsearch, sidecar: str, *, index: str, forest: str) -> Iterator[dict[str, Send]]:
    """Yield a feeder with curl, one with Elasticsearch's client, and one with `Dedup` over `es`."""
    has_curl = shutil.which("curl") is not None
    with (
        Elasticsearch(sidecar, request_timeout=_ANSWER_S) as client,
        Dedup(es, sidecar=sidecar, forest=forest) as dedup,
    ):
        yield {
            "curl" if has_curl else "urllib, as there is no curl here": functools.partial(
                _send_plainly, _curl if has_curl else _urllib, f"{sidecar}/{index}/_bulk"
            ),
            "helpers.bulk(Elasticsearch(sidecar), …)": functools.partial(_send, client, index),
            "helpers.bulk(es, Dedup(es, sidecar=…).enrich(…))": functools.partial(
                _send_enriched, es, dedup, index
            ),
        }


def _send_plainly(
    post: Callable[[str, bytes], bytes], url: str, articles: Sequence[FileArticle]
) -> dict[str, str]:
    lines = (line for each in articles for line in ({"index": {"_id": each.id}}, each.article))
    answer = post(url, "".join(f"{json.dumps(line)}\n" for line in lines).encode())
    try:
        return _refused(json.loads(answer)["items"])
    except (ValueError, KeyError) as error:
        said = answer[:_SHOWN_BYTES].decode(errors="replace")
        raise SidecarError(f"{url} answers: {said}", address=url) from error


def _send(client: Elasticsearch, index: str, articles: Sequence[FileArticle]) -> dict[str, str]:
    with translated("send articles to the sidecar", index=index):
        return _refused(helpers.bulk(client, _actions(articles, index), raise_on_error=False)[1])


def _send_enriched(
    es: Elasticsearch, dedup: Dedup, index: str, articles: Sequence[FileArticle]
) -> dict[str, str]:
    rejected: dict[str, str] = {}
    actions = dedup.enrich(
        _actions(articles, index), on_rejected=lambda each: rejected.update({each.article: each.reason})
    )
    with translated("index articles", index=index):
        return rejected | _refused(helpers.bulk(es, actions, raise_on_error=False)[1])


def _actions(articles: Iterable[FileArticle], index: str) -> Iterator[dict[str, Any]]:
    for each in articles:
        yield {"_index": index, "_id": each.id, "_source": each.article}


def _refused(items: Any) -> dict[str, str]:
    """Return why items of a bulk answer failed, by id."""
    results = (result for item in items for result in item.values())
    return {each["_id"]: each["error"]["reason"] for each in results if "error" in each}


def _curl(url: str, body: bytes) -> bytes:
    # Neither settings of the user's nor proxies. It repeats what it is asked to repeat (429, 503).
    command = ["curl", "--disable", "--noproxy", "*", "--silent", "--show-error", "--retry", str(_ATTEMPTS)]
    command += ["--max-time", str(_ANSWER_S), "--header", "Content-Type: application/x-ndjson"]
    command += ["--data-binary", "@-", url]
    done = subprocess.run(command, check=False, input=body, capture_output=True)  # noqa: S603 - as above
    if done.returncode != 0:
        raise SidecarError(
            f"curl cannot reach {url}: {done.stderr.decode(errors='replace').strip()}", address=url
        )
    return done.stdout


def _urllib(url: str, body: bytes) -> bytes:
    request = urllib.request.Request(url, body, {"Content-Type": "application/x-ndjson"})  # noqa: S310 - http
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=_ANSWER_S) as answer:
            return bytes(answer.read())
    except OSError as error:
        raise SidecarError(f"cannot reach {url}: {error}", address=url) from error
