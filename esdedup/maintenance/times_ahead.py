"""Finds times in the future, caused by a clock that was ahead, and sets them back."""

from collections.abc import Iterator
from typing import Any

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.stored import Stored, StoredHash
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.forest.model import NO_TIME, Aging, State
from esdedup.maintenance.records import Record, Records
from esdedup.maintenance.violations import Remedy, Violation, ViolationKind, repairable
from esdedup.times import iso


class TimesAhead:
    """The times in the future in one forest, and in the articles that it assigned."""

    def __init__(self, index: ForestIndex, records: Records | None, *, latest_ms: int, aging: Aging) -> None:
        """Treat times after `latest_ms` as times in the future. Without `records`, check only the forest."""
        self._index = index
        self._records = records
        self._latest_ms, self._latest_seen_ms = latest_ms, aging.round_up(latest_ms)
        self._aging = aging

    def violations(self) -> Iterator[Violation]:
        """Yield a violation for each time in the future."""
        self._index.refresh_if_allowed()
        state = self._index.status().state
        if state.time_ms > self._latest_ms:
            yield _violation(self._index.name, state.time_ms)
        for some in self._index.nodes.later_than(made_ms=self._latest_ms, seen_ms=self._latest_seen_ms):
            yield from (_violation(each.document_id, _latest_ms(each)) for each in some)
        for batch in self._articles_ahead():
            yield from (_violation(record.id, record.seen_ms) for record in batch)

    def true_state(self) -> State:
        """Return the state of the forest, ignoring times in the future."""
        state = self._index.status(latest_ms=self._latest_ms).state
        return state if self._records is None else state.after(self._records.state(latest_ms=self._latest_ms))

    def set_articles_back(self, writer: ForestWriter, state: State) -> None:
        """Set back the times of articles only."""
        time_ms = None if state.time_ms == NO_TIME else state.time_ms
        for batch in self._articles_ahead():
            writer.lease.renew()
            changes: list[tuple[Record, dict[str, Any]]] = []
            for record in batch:
                is_ahead = record.published_ms > self._latest_ms
                changes.append((record, {"seen": time_ms} | ({"published": time_ms} if is_ahead else {})))
            assert self._records is not None
            self._records.update(changes)
            self._records.refresh()

    def _articles_ahead(self) -> Iterator[list[Record]]:
        if self._records is not None:
            yield from self._records.batches(later_than_ms=self._latest_ms)

    def set_back(self, stored: Stored, state: State) -> Stored:
        """Return a node or content hash without times in the future; they become the time of `state`."""
        seen_ms = self._aging.round_up(state.time_ms)

        def back(time_ms: int) -> int:
            return seen_ms if time_ms > self._latest_seen_ms else time_ms

        if isinstance(stored, StoredHash):
            return stored._replace(seen_ms=back(stored.seen_ms))
        return stored._replace(
            made_ms=state.time_ms if stored.made_ms > self._latest_ms else stored.made_ms,
            seen_ms=back(stored.seen_ms),
            hash_seen_ms=back(stored.hash_seen_ms),
        )


def _latest_ms(stored: Stored) -> int:
    return stored.seen_ms if isinstance(stored, StoredHash) else max(stored.made_ms, stored.seen_ms)


def _violation(subject: str, time_ms: int) -> Violation:
    detail = f"{iso(time_ms)}; the clock was ahead; a repair sets the time back"
    return repairable(ViolationKind.TIME_AHEAD, subject, detail, Remedy())
