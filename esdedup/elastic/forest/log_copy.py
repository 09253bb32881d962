"""`LogCopy`: the nodes of a log that another process goes on writing. Pure."""

from typing import NamedTuple

from esdedup.elastic.forest.documents import Hit, packed_of
from esdedup.elastic.pages import Hits
from esdedup.forest import NO_TIME, Aging, Nodes, State
from esdedup.neighbours.relation import Relation

Version = tuple[int, int]
"""The `_seq_no` and the `_primary_term` of a document: no two writes of it have both in common."""


class _Document(NamedTuple):
    version: Version
    # The latest `seen` of what it has; NO_TIME if none is known.
    seen_ms: int


class LogCopy:
    """The nodes and pages of a log that grows, and which documents they were read from.

    What has expired may have been deleted: the nodes of its documents are here until they are forgotten,
    as in the memory of the owner.
    """

    def __init__(self, relation: Relation, aging: Aging, *, memory_bytes: int) -> None:
        """Hold nothing yet.

        Args:
            relation: The profile's.
            aging: How long nodes live.
            memory_bytes: What they may take in memory.
        """
        self.aging = aging
        self.nodes = Nodes(relation, aging)
        # The number of the last document, which may grow, and what it had.
        self.number, self._last = 0, b""
        # How often a document was read that had something new.
        self.read_count = 0
        # Whether there is something that `settle` has not met.
        self.is_unsettled = False
        self._memory_bytes = memory_bytes
        self._documents: dict[int, _Document] = {}
        # As these documents say. The forest's own may be later, when what was needed until then is not read.
        self._state = State()

    def add(self, hits: Hits) -> None:
        """Add what the next documents have, from `number` on (inclusive).

        Raises:
            ValueError: They are not what was there, and more; or it takes too much memory.
        """
        logs = [packed for hit in hits for (packed,) in [packed_of([hit])]]
        if self.number:
            if not hits or hits[0]["sort"][0] != self.number or not logs[0].startswith(self._last):
                raise ValueError(f"the document {self.number} of its log is another one by now")
            logs[0] = logs[0][len(self._last) :]
        for hit, log in zip(hits, logs, strict=True):
            self._note(hit, log)
        if any(logs):
            self.is_unsettled = True
            self.nodes.load_logs(logs)
            # Some of them have expired.
            self._refuse_beyond(2 * self._memory_bytes)

    def settle(self, *, live_since_ms: int | None = None) -> None:
        """Give the nodes their roots when all was read, and forget what has expired; more may be added.

        Args:
            live_since_ms: The `seen` from which on (inclusive) nodes live. None: as the documents say.

        Raises:
            ValueError: The nodes take too much memory.
        """
        if live_since_ms is None:
            live_since_ms = self._state.live_since_ms(self.aging)
        self.nodes.settle(live_since_ms=live_since_ms)
        self.is_unsettled = False
        self._documents = self._living(live_since_ms)
        self._refuse_beyond(self._memory_bytes)

    def versions(self, live_since_ms: int) -> dict[int, Version]:
        """Return the versions, by number, of the documents before the last one in which something lives."""
        living = self._living(live_since_ms)
        return {number: each.version for number, each in living.items() if number < self.number}

    def _note(self, hit: Hit, log: bytes) -> None:
        """Note a document, and what it has that was not read before."""
        number, made_ms = hit["sort"][0], _times_ms(hit, "made")
        seen_ms = max(_times_ms(hit, "seen"), default=NO_TIME)
        self._documents[number] = _Document(version_of(hit), seen_ms)
        self._last = self._last + log if number == self.number else log
        self.number = number
        self.read_count += bool(log)
        if made_ms:
            self._state = self._state.after(State(time_ms=max(made_ms), origin_ms=min(made_ms)))

    def _living(self, live_since_ms: int) -> dict[int, _Document]:
        return {number: each for number, each in self._documents.items() if each.seen_ms >= live_since_ms}

    def _refuse_beyond(self, most_bytes: int) -> None:
        if self.nodes.size_bytes > most_bytes:
            raise ValueError(f"its nodes take more than {most_bytes:,} bytes of memory")


def version_of(hit: Hit) -> Version:
    """Return the version of a document."""
    return hit["_seq_no"], hit["_primary_term"]


def _times_ms(hit: Hit, name: str) -> list[int]:
    return [int(each) for each in hit["fields"].get(name, [])]
