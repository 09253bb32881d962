"""`Metrics`: the metrics of a sidecar, for Prometheus."""

import collections
import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from esdedup.elastic.names import DEFAULT_FOREST

RequestKind = Literal["bulk", "document", "own", "other"]
"""Kinds of requests: bulk and single writes of articles, the sidecar's own endpoints, and all others."""

ArticleKind = Literal["new_root", "joined", "known", "without_fingerprint", "rejected", "not_set_up"]
"""Outcomes of articles; `not_set_up` counts writes to an index that was not set up."""
Refusal = Literal[
    "host",
    "foreign_page",
    "token",
    "body_too_large",
    "bodies",
    "requests",
    "queue",
    "not_owner",
    "late",
    "shutting_down",
]
"""Why the sidecar refused a request; refusals by Elasticsearch are not counted here."""
# The `Refusal` for each kind of problem whose own name is not a `Refusal`.
_REASONS = {"queue_full": "queue", "content_too_long_exception": "body_too_large"}
_Status = Literal["2xx", "3xx", "409", "429", "4xx", "5xx", "none"]
_EXACT: dict[int, _Status] = {409: "409", 429: "429"}
_CLASSES: dict[int, _Status] = {2: "2xx", 3: "3xx", 4: "4xx"}
_ERRORS = ("5xx", "none")
_Metric = TypeVar("_Metric", Counter, Gauge, Histogram)

# Buckets: one article takes a few milliseconds; a batch waits for Elasticsearch for a few minutes at most.
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_ARTICLES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)


class Metrics:
    """The metrics of one sidecar; thread-safe."""

    def __init__(self, forest: str = DEFAULT_FOREST) -> None:
        """Register all metrics; metrics about the forest have its name as a label."""
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)

        def counter(name: str, text: str, **label: object) -> Counter:
            return self._new(Counter, name, text, label)

        def gauge(name: str, text: str) -> Gauge:
            return self._new(Gauge, name, text)

        def of_forest(name: str, text: str) -> Gauge:
            return self._new(Gauge, name, text, {"forest": (forest,)}).labels(forest)

        def seconds(name: str, text: str, **label: object) -> Histogram:
            return self._new(Histogram, f"{name}_seconds", text, label, buckets=_SECONDS)

        self._articles = counter("articles", "Articles by outcome.", outcome=ArticleKind)
        self.undated = counter("undated_articles", "Articles without a plausible date.")
        self.with_boilerplate = counter(
            "boilerplate_articles", "Articles whose fingerprints omit boilerplate."
        )
        self.boilerplate_letters = counter("boilerplate_letters", "Boilerplate letters and digits left out.")
        self.batch_articles = self._new(
            Histogram, "batch_articles", "Articles in a batch.", buckets=_ARTICLES
        )
        self.batch_wait = seconds("batch_wait", "Wait of a batch's first article until assignment starts.")
        self.batch_decide = seconds("batch_decide", "Fingerprinting a batch and choosing its roots.")
        self.batch_write = seconds(
            "batch_write", "Writing the nodes of a batch, until Elasticsearch acknowledges them."
        )
        self.queue = gauge("queue_articles", "Articles that are waiting or being assigned.")

        self._requests = seconds("request", "Time from a request to its complete response.", kind=RequestKind)
        self._in_progress = gauge("requests_in_progress", "Requests in progress.")
        self._refused = counter("requests_refused", "Requests that the sidecar refused.", reason=Refusal)
        self.bodies = gauge("request_bodies_bytes", "Total size of the bodies of requests in progress.")

        self._upstream = counter(
            "elasticsearch_requests",
            "Requests to Elasticsearch by the status of its response; `none` if there was no response.",
            status=_Status,
        )
        self._upstream_seconds = seconds(
            "elasticsearch_request", "Time from a request to Elasticsearch to the start of its response."
        )
        self._items = counter(
            "bulk_items",
            "Items of bulk requests with articles, by status; compressed responses are not counted.",
            status=_Status,
        )

        self.lease = of_forest("lease_held", "1 if this process owns the forest, else 0.")
        self.nodes = of_forest("forest_nodes", "Nodes of the forest; 0 on a standby.")
        self.hashes = of_forest("forest_pages", "Content hashes that created no node; 0 on a standby.")
        self.memory = of_forest("forest_memory_bytes", "Memory of nodes, content hashes and the learner.")
        self.filled = of_forest(
            "forest_filled_ratio",
            "Used share of `memory_bytes`, or of the nodes that memory can hold; 0 if they are searched for.",
        )
        self.expired_nodes = counter("expired_nodes", "Expired nodes that were deleted.")
        self.passages = of_forest("boilerplate_passages", "Passages learned as boilerplate; 0 on a standby.")
        self.placeholders = of_forest(
            "placeholders", "Clusters recognised as placeholders since the owner started; 0 on a standby."
        )

    def articles(self, counts: Mapping[ArticleKind, int]) -> None:
        """Count articles by outcome."""
        for kind, count in counts.items():
            self._articles.labels(kind).inc(count)

    @contextlib.contextmanager
    def request(self, kind: RequestKind) -> Iterator[None]:
        """Count a request, and record its duration."""
        start_s = time.perf_counter()
        self._in_progress.inc()
        try:
            yield
        finally:
            self._in_progress.dec()
            self._requests.labels(kind).observe(time.perf_counter() - start_s)

    def refused(self, kind: str) -> None:
        """Count a problem by its kind, if it is one of the reasons in `Refusal`."""
        reason = _REASONS.get(kind, kind)
        if reason in get_args(Refusal):
            self._refused.labels(reason).inc()

    def upstream(self, status: int | None, *, seconds: float) -> None:
        """Record a request to Elasticsearch; a status of None means that there was no response."""
        self._upstream.labels(_status(status)).inc()
        self._upstream_seconds.observe(seconds)

    def items(self, statuses: Mapping[int, int]) -> None:
        """Count items by the status in Elasticsearch's response."""
        for status, number in statuses.items():
            self._items.labels(_status(status)).inc(number)

    @property
    def summary(self) -> str:
        """The numbers of requests, articles and errors so far, as a text."""
        counts: collections.Counter[str] = collections.Counter()
        for sample in (sample for metric in self.registry.collect() for sample in metric.samples):
            status = sample.labels.get("status", "")
            counts[sample.name.removeprefix("esdedup_") + status * (status in _ERRORS)] += int(sample.value)
        errors = sum(counts[f"elasticsearch_requests_total{status}"] for status in _ERRORS)
        return (
            f"{counts['request_seconds_count']:,} requests, {counts['articles_total']:,} articles, "
            f"{counts['requests_refused_total']:,} requests refused, {errors:,} errors of Elasticsearch"
        )

    def _new(
        self, kind: type[_Metric], name: str, text: str, label: Mapping[str, Any] | None = None, **bounds: Any
    ) -> _Metric:
        """Create a metric, with a series for each label value: a literal type or a tuple lists the values."""
        metric = kind(f"esdedup_{name}", text, tuple(label or ()), registry=self.registry, **bounds)
        for given in (label or {}).values():
            for value in get_args(given) or given:
                metric.labels(value)
        return metric


def _status(status: int | None) -> _Status:
    if status is None:
        return "none"
    return _EXACT.get(status) or _CLASSES.get(status // 100, "5xx")
