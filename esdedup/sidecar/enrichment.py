"""`Enrichment`: what becomes of the items of a request before Elasticsearch gets them."""

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from esdedup.elastic.article_indices import WritableIndex
from esdedup.errors import ArticleRejected, IndexNotReady
from esdedup.ingest.actions import ArticleAction, read_action, redated
from esdedup.ingest.assigner import Assigned
from esdedup.sidecar.bulk_request import BulkItem
from esdedup.sidecar.indices import Found
from esdedup.sidecar.rights import Headers

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
        backfill: bool = False,
    ) -> None:
        """Enrich.

        Args:
            find: As `Indices.find`.
            may_write: As `Rights.may_write`.
            assign: As `Intake.assign`.
            backfill: Whether old articles are expected.
        """
        self._find = find
        self._may_write = may_write
        self._assign = assign
        self._backfill = backfill

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
        outcomes: list[Outcome] = [Untouched()] * len(items)
        named = [name for each in items if (name := _written(each)) is not None]
        found = await self._find(frozenset(named))
        set_up = {name for name, each in found.items() if each is not None}
        if not set_up:
            return outcomes
        allowed = await self._may_write(headers, sorted(set_up))
        read: list[tuple[int, _Read]] = []
        for at, item in enumerate(items):
            if at % _READ_AT_ONCE == 0:
                await asyncio.sleep(0)
            name = _written(item)
            index = None if name is None else found[name]
            if name is None or index is None:
                continue
            if not allowed[name]:
                outcomes[at] = Rejected(f"the caller may not write to the index [{name}]", 403)
            elif isinstance(index, IndexNotReady):
                outcomes[at] = Rejected(str(index))
            else:
                outcome = self._read(item, index)
                if isinstance(outcome, _Read):
                    read.append((at, outcome))
                else:
                    outcomes[at] = outcome
        assigned = await self._assign([each.article for _, each in read])
        for (at, own), each in zip(read, assigned, strict=True):
            outcomes[at] = Changed(each.enriched(own.index), own.document, own.index.fields.dedup, each)
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
        changed = redated(action, fields=index.fields, now_ms=now_ms, backfill=self._backfill)
        return Untouched() if changed is action else Changed(changed, document, index.fields.dedup, None)


@dataclasses.dataclass(frozen=True)
class _Read:
    article: ArticleAction
    index: WritableIndex
    document: Mapping[str, Any]


def _written(item: BulkItem) -> str | None:
    """Return where an item writes a document; None if it does not, or if nobody says where."""
    return None if item.operation == "delete" else item.index
