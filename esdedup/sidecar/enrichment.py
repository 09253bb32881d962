"""`Enrichment`: what becomes of the items of a request before Elasticsearch gets them."""

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from esdedup.elastic.article_indices import WritableIndex
from esdedup.elastic.names import check_index_name
from esdedup.errors import ArticleRejected, IndexNotReady
from esdedup.ingest.actions import ArticleAction, read_action, redated
from esdedup.ingest.assigned import Assigned
from esdedup.sidecar.bulk_request import BulkItem
from esdedup.sidecar.headers import Headers
from esdedup.sidecar.indices import Found
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.rights import CallerMayNot

# Reading an article takes some 20 µs. In between, other requests have their turn.
_READ_AT_ONCE = 100


@dataclasses.dataclass(frozen=True)
class Untouched:
    """The item goes on as it came: it writes no article, or not where articles are kept."""


@dataclasses.dataclass(frozen=True)
class Changed:
    """The item goes on with this action in its place, as `elasticsearch.helpers.bulk` has them."""

    action: Mapping[str, Any]
    # The item's document as it was read.
    document: Mapping[str, Any]
    # The name of the dedup object.
    dedup: str
    # What was decided for its article; None if it has no text.
    assigned: Assigned | None


@dataclasses.dataclass(frozen=True)
class Rejected:
    """The item does not go on."""

    reason: str
    status: int = 400


Outcome = Untouched | Changed | Rejected


class Enrichment:
    """Assigns the articles among items."""

    def __init__(
        self,
        *,
        find: Callable[[Collection[str]], Awaitable[Mapping[str, Found]]],
        may_write: Callable[[Headers, Collection[str]], Awaitable[Mapping[str, bool]]],
        assign: Callable[[Sequence[ArticleAction]], Awaitable[Sequence[Assigned]]],
    ) -> None:
        """Enrich.

        Args:
            find: As `Indices.find`.
            may_write: As `Rights.may_write`.
            assign: As `Intake.assign`.
        """
        self._find = find
        self._may_write = may_write
        self._assign = assign

    async def enrich(self, items: Sequence[BulkItem], *, headers: Headers) -> list[Outcome]:
        """Return what becomes of each item.

        Args:
            items: Of one request.
            headers: Of that request.

        Raises:
            BulkMalformed: An update cannot be read, for which Elasticsearch would refuse the whole request.
            CallerRefused: Elasticsearch does not know the caller.
            EsdedupError: No article of the request could be assigned: see `Intake.assign`.
        """
        named = [name for each in items if (name := _written(each)) is not None]
        found = {
            name: each for name, each in (await self._find(frozenset(named))).items() if each is not None
        }
        if not found:
            return [Untouched()] * len(items)
        allowed = await self._may_write(headers, sorted(found))
        targets: dict[str | None, WritableIndex | Rejected] = {}
        for name, each in found.items():
            if not allowed[name]:
                targets[name] = Rejected(f"the caller may not write to the index [{name}]", 403)
            elif isinstance(each, IndexNotReady):
                targets[name] = Rejected(str(each))
            else:
                targets[name] = each
        return await self._enrich(items, [targets.get(_written(each)) for each in items])

    async def enrich_for(self, items: Sequence[BulkItem], index: WritableIndex) -> list[Outcome]:
        """Return what becomes of each item, which somebody else will write to an index.

        Args:
            items: Articles.
            index: As `writable` returns it.

        Raises:
            EsdedupError: As for `enrich`.
        """
        return await self._enrich(items, [index] * len(items))

    async def writable(self, name: str, *, headers: Headers) -> WritableIndex:
        """Return what is known of an index that a caller may write to.

        Args:
            name: Of the index.
            headers: Of the caller's request.

        Raises:
            CallerRefused: Elasticsearch does not know the caller.
            CallerMayNot: It does not let the caller write there.
            IndexNotReady: The index was not set up.
            SettingError: No index can have that name.
            ServerError: Elasticsearch does not answer.
        """
        check_index_name(name)
        allowed = await self._may_write(headers, [name])
        if not allowed[name]:
            raise CallerMayNot(f"the caller may not write to the index {name!r}")
        index = (await self._find([name]))[name]
        if index is None:
            raise IndexNotReady(f"the index {name!r} was not set up for articles", index=name)
        if isinstance(index, IndexNotReady):
            raise index
        return index

    async def _enrich(
        self, items: Sequence[BulkItem], targets: Sequence[WritableIndex | Rejected | None]
    ) -> list[Outcome]:
        """Return what becomes of each item, by where it is written; None: where no articles are kept."""
        outcomes: list[Outcome] = [Untouched()] * len(items)
        read: list[tuple[int, _Read]] = []
        for at, (item, target) in enumerate(zip(items, targets, strict=True)):
            if at % _READ_AT_ONCE == 0:
                await asyncio.sleep(0)
            outcome = self._read(item, target) if isinstance(target, WritableIndex) else target
            if isinstance(outcome, _Read):
                read.append((at, outcome))
            elif outcome is not None:
                outcomes[at] = outcome
        assigned = await self._assign([each.article for _, each in read])
        for (at, own), each in zip(read, assigned, strict=True):
            try:
                outcomes[at] = Changed(each.enriched(own.index), own.document, own.index.fields.dedup, each)
            except ArticleRejected as rejected:
                outcomes[at] = Rejected(str(rejected))
        return outcomes

    def _read(self, item: BulkItem, index: WritableIndex) -> "Outcome | _Read":
        """Return the item's article; or what becomes of the item if it has none."""
        try:
            document = item.document()
            given = {**item.meta, "_op_type": item.operation, "_index": item.index, "_source": document}
            routed = item.index if index.is_routed_by_root else None
            action = read_action(given, index.fields, position=item.line, routed_index=routed)
        except ArticleRejected as rejected:
            return Rejected(str(rejected))
        if isinstance(action, ArticleAction):
            return _Read(action, index, document)
        now_ms = int(time.time() * 1000)
        changed = redated(action, fields=index.fields, now_ms=now_ms, backfill=False)
        return Untouched() if changed is given else Changed(changed, document, index.fields.dedup, None)


def count_articles(outcomes: Sequence[Outcome], metrics: Metrics) -> None:
    """Count the articles among items by what became of them."""
    for each in outcomes:
        if isinstance(each, Rejected):
            metrics.article("rejected")
        elif isinstance(each, Changed) and each.assigned is not None:
            metrics.article(each.assigned.assignment.kind.value)


@dataclasses.dataclass(frozen=True)
class _Read:
    article: ArticleAction
    index: WritableIndex
    document: Mapping[str, Any]


def _written(item: BulkItem) -> str | None:
    """Return where an item writes a document; None if it does not, or if nobody says where."""
    return None if item.operation == "delete" else item.index
