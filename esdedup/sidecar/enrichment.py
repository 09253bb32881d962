"""`Enrichment`: adds roots to the items of a request before Elasticsearch gets them."""

import asyncio
import dataclasses
import logging
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Literal

from starlette.types import Scope

from esdedup.elastic.meta import WritableIndex
from esdedup.elastic.names import check_index_name
from esdedup.errors import ArticleRejected, IndexNotReady, Refused, ServerError, SettingError
from esdedup.ingest.actions import ArticleAction, article_in, name_of
from esdedup.sidecar.auth import caller_of
from esdedup.sidecar.bulk_request import BulkItem, Rejection
from esdedup.sidecar.metrics import ArticleKind, Metrics
from esdedup.sidecar.owner import Ownership
from esdedup.sidecar.upstream import Headers

log = logging.getLogger("esdedup")

# How long a look-up is cached. For this time after `setup`, articles may still be written without roots.
_CACHED_S = 2.0
# The maximum number of concurrent requests to Elasticsearch.
_AT_ONCE = 4
# The maximum number of index names in a request: each may need a look-up, which delays other requests.
_MOST_NAMES = 1_000
# The maximum number of cached names, limited since clients choose them.
_MOST_CACHED = 10_000

Target = WritableIndex | IndexNotReady | None
"""A set-up index; the reason if it cannot be written to; None for an index that was not set up."""


class Indices(AbstractAsyncContextManager["Indices"]):
    """Looks up which indices are set up, with `Articles.find` in threads; results are cached briefly."""

    def __init__(self, find: Callable[[str], WritableIndex | None]) -> None:
        self._find = find
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="esdedup-indices")
        # Indices that are cached or being looked up.
        self._known: dict[str, asyncio.Future[Target]] = {}

    async def __aexit__(self, *_: object) -> None:
        """Stop the threads, without waiting for unanswered requests to Elasticsearch."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def find(self, names: Iterable[str]) -> dict[str, Target]:
        """Return the indices by name; raises `ServerError`, and `Refused` if there are too many names."""
        unique = list(dict.fromkeys(names))
        if len(unique) > _MOST_NAMES:
            reason = f"a request may name {_MOST_NAMES:,} indices, not {len(unique):,}: send smaller requests"
            raise Refused(reason, kind="too_many_indices")
        return dict(zip(unique, await asyncio.gather(*map(self._find_one, unique)), strict=True))

    def _find_one(self, name: str) -> asyncio.Future[Target]:
        if name not in self._known:
            if len(self._known) >= _MOST_CACHED:
                self._known.clear()
            loop = asyncio.get_running_loop()
            pending = self._known[name] = loop.run_in_executor(self._threads, self._look_up, name)
            pending.add_done_callback(lambda _: self._expire(name, pending))
        # Concurrent requests for the same name wait for the same look-up.
        return asyncio.shield(self._known[name])

    def _expire(self, name: str, answer: asyncio.Future[Target]) -> None:
        """Remove an error from the cache immediately, since it may be transient, and other results later."""
        if answer.cancelled() or answer.exception() or isinstance(answer.result(), IndexNotReady):
            self._known.pop(name, None)
        else:
            asyncio.get_running_loop().call_later(_CACHED_S, self._known.pop, name, None)

    def _look_up(self, name: str) -> Target:
        try:
            return self._find(name)
        except IndexNotReady as error:
            return error
        except ServerError as error:
            # Elasticsearch cannot parse the name; the status is 500 if a date in it has an invalid zone.
            if error.status != HTTPStatus.BAD_REQUEST and not (error.status == 500 and name.startswith("<")):
                raise
            return IndexNotReady(str(error), index=name)


# Reading an article takes about 20 µs; the event loop runs other tasks after this many articles.
_READ_AT_ONCE = 100

# Matches invalid index names. Some of them make Elasticsearch refuse the whole request, or never answer.
_NO_NAME = re.compile(r"|\.\.?|[_+-].*|.*[*?,].*|[^<].*:.*", re.DOTALL)


@dataclasses.dataclass(eq=False, kw_only=True)
class Enrichment:
    """Assigns roots to the articles in requests, while this process owns the forest."""

    forest: str
    # The methods `Indices.find`, `Rights.may_write` and `OwnerThread.assigning`.
    find: Callable[[Collection[str]], Awaitable[Mapping[str, Target]]]
    may_write: Callable[[Headers, Collection[str]], Awaitable[Mapping[str, bool]]]
    assigning: Callable[[Sequence[ArticleAction], Hashable], AbstractAsyncContextManager[None]]
    ownership: Callable[[], Ownership]
    metrics: Metrics
    unknown_index: Literal["pass", "warn", "refuse"] = "warn"
    # Indices about which a warning was logged.
    _warned: set[str] = dataclasses.field(default_factory=set)

    async def enrich(
        self,
        items: Sequence[BulkItem],
        scope: Scope,
        *,
        unset: WritableIndex | None = None,
        backfill: bool = False,
    ) -> None:
        """Set the addition or rejection of each item; the request's scope identifies the caller.

        `unset` is the target of items that name no index; if it is given, items for an index that is not set
        up are rejected. If `unset` is None, both kinds of items are forwarded unchanged. Raises
        `CallerRefused`, and the errors that `OwnerThread.assigning` raises.
        """
        headers = scope["headers"]
        for item in items:
            if item.index is not None and _NO_NAME.fullmatch(item.index):
                item.rejection = _invalid_name(item.index)
        possible = [item for item in items if item.rejection is None]
        named = frozenset(name for each in possible if (name := _name_to_find(each)) is not None)
        targets = await self._targets(named, headers, is_required=unset is not None)
        is_passed = [each.operation != "delete" and each.index not in (None, *targets) for each in possible]
        self.metrics.articles({"not_set_up": sum(is_passed)})
        if unset is None and not targets:
            return
        now_ms = int(time.time() * 1000)
        for at, item in enumerate(possible):
            if at % _READ_AT_ONCE == _READ_AT_ONCE - 1:
                await asyncio.sleep(0)
            target = unset if item.index is None else targets.get(item.index)
            if isinstance(target, Rejection):
                if item.operation != "delete" or _name_to_find(item) is not None:
                    item.rejection = target
            elif target is not None and item.operation != "delete":
                _read(item, target, now_ms=now_ms, backfill=backfill)
        # The ASGI server may not know the client's address.
        caller = ((scope.get("client") or ("",))[0], caller_of(headers))
        articles = [each.article for each in possible if each.article is not None]
        self.metrics.undated.inc(sum(each.dated_ms is None for each in articles))
        async with self.assigning(articles, caller):
            for item in possible:
                if (article := item.article) is None:
                    continue
                if article.rejection is not None:
                    item.rejection = Rejection(str(article.rejection))
                else:
                    item.added = article.added
        letters = [each.boilerplate_letters for each in articles]
        self.metrics.with_boilerplate.inc(sum(map(bool, letters)))
        self.metrics.boilerplate_letters.inc(sum(letters))
        kinds: Counter[ArticleKind] = Counter(
            each.assignment.kind.value for each in articles if each.rejection is None
        )
        kinds["rejected"] = sum(each.rejection is not None for each in items)
        self.metrics.articles(kinds)

    async def _targets(
        self, names: frozenset[str], headers: Headers, *, is_required: bool
    ) -> dict[str, WritableIndex | Rejection]:
        """Return set-up indices by name; for other indices, the reason why their articles are rejected."""
        targets: dict[str, WritableIndex | Rejection] = {
            each: _invalid_name(each) for each in names if is_required and not _is_index_name(each)
        }
        found = await self.find(names - targets.keys())
        known = sorted(name for name, each in found.items() if each is not None)
        allowed = await self.may_write(headers, known) if known else {}
        for name, each in found.items():
            if each is None:
                if is_required or self.unknown_index == "refuse":
                    targets[name] = Rejection(f"the index {name!r} was not set up for articles", 409)
                elif (
                    self.unknown_index == "warn"
                    and name not in self._warned
                    and len(self._warned) < _MOST_CACHED
                ):
                    self._warned.add(name)
                    log.warning("articles in %r get no roots: run esdedup setup for this index", name)
            elif not allowed[name]:
                targets[name] = Rejection(f"the caller may not write to the index [{name}]", 403)
            elif isinstance(each, IndexNotReady):
                targets[name] = Rejection(str(each), 409 if is_required else 400)
            elif (refusal := each.refusal(self.forest)) is not None:
                targets[name] = Rejection(f"{refusal}: send it to a sidecar of that forest")
            else:
                targets[name] = each
        return targets


def _read(item: BulkItem, index: WritableIndex, *, now_ms: int, backfill: bool) -> None:
    """Set the item's article; if it has none, set its addition or rejection."""
    item.objects = index.objects
    if item.meta.get("doc_as_upsert", "false") != "false":
        item.rejection = Rejection("the update has doc_as_upsert in its query: send it in the body")
        return
    try:
        name = name_of(item.meta.get("_id"), f"line {item.line}")
        own = {"_op_type": item.operation, "_index": item.index, "_source": item.document()}
        found = article_in(item.meta | own, index, name=name, now_ms=now_ms, backfill=backfill)
    except ArticleRejected as rejected:
        item.rejection = Rejection(str(rejected))
        return
    if isinstance(found, ArticleAction):
        item.article = found
    else:
        item.added = found


def _name_to_find(item: BulkItem) -> str | None:
    """Return the index to look up for an item; for a deletion, only if the name contains a date."""
    is_deletion = item.operation == "delete" and not (item.index or "").startswith("<")
    return None if is_deletion else item.index


def _invalid_name(name: str) -> Rejection:
    return Rejection(f"{name!r} is not a valid index name")


def _is_index_name(name: str) -> bool:
    try:
        check_index_name(name)
    except SettingError:
        return False
    return True
