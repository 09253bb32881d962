"""Feeds millions of arrivals to a forest, and checks a sample of them exhaustively against the laws.

python -m tests.nightly.large memory 10_000_000
python -m tests.nightly.large elastic 1_000_000     (on the server at ES_URL, otherwise on an embedded node)
"""

import contextlib
import os
import time
from collections.abc import Iterator

import numpy as np
import typer

from esdedup.fingerprint.profile import CLASSIC
from esdedup.fingerprint.simhash import from_hex, to_hex
from esdedup.forest import Aging, Arrivals, Assignment, Kind, Store
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from tests.support.assign import assign

BATCH = 1_000
# A run spans this many retention periods, so at most a third of all nodes are live at a time.
LIVING_PARTS = 3
AGING = Aging(retention_ms=1_000_000_000, granularity_ms=1_000_000)


class Exhaustive:
    """All nodes ever made, in plain columns. Assignments that are not checked are assumed to be correct."""

    def __init__(self, capacity: int) -> None:
        self.ids = np.zeros(capacity, np.uint64)
        self.roots = np.zeros(capacity, np.int64)
        self.seen = np.zeros(capacity, np.int64)
        self.count = 0
        self.row_of: dict[int, int] = {}

    def expected(self, node_id: int, time_ms: int) -> tuple[Kind, int]:
        """Return the kind and the root's id that an arrival gets according to the laws."""
        ids, roots, seen = (column[: self.count] for column in (self.ids, self.roots, self.seen))
        live = time_ms < seen + AGING.retention_ms
        same = np.flatnonzero(live & (ids == np.uint64(node_id)))
        if len(same):
            assert len(same) == 1
            return Kind.KNOWN, int(ids[roots[same[0]]])
        near = np.flatnonzero(np.bitwise_count(ids ^ np.uint64(node_id)) <= 3)
        candidates = np.unique(roots[near[live[near]]])
        if not len(candidates):
            return Kind.NEW_ROOT, node_id
        leaves = [int((live & (roots == root)).sum()) - int(live[root]) for root in candidates]
        # Rows are in the order of their seqs, so the first of the largest trees has the earliest root.
        return Kind.JOINED, int(ids[candidates[int(np.argmax(leaves))]])

    def note(self, node_id: int, answer: Assignment, root: int) -> None:
        seen = -(-answer.time_ms // AGING.granularity_ms) * AGING.granularity_ms
        if answer.kind is not Kind.KNOWN:
            row = self.count
            self.ids[row], self.seen[row] = node_id, seen
            self.count += 1
            self.row_of[node_id] = row
            self.roots[row] = self.row_of[root]
        row = self.row_of[node_id]
        for refreshed in (row, self.roots[row]):
            self.seen[refreshed] = max(self.seen[refreshed], seen)


def arrivals(count: int, held: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Make a batch of random arrivals, of which a fifth are near existing nodes and some near two roots."""
    batch = random.integers(0, 2**64, count, np.uint64)
    if len(held):
        copies = count // 5
        flips = np.uint64(1) << random.integers(0, 64, (copies, 3), np.uint64)
        batch[:copies] = random.choice(held, copies) ^ np.bitwise_or.reduce(flips, axis=1)
        batch[copies : copies + 10] = random.choice(held, 10)
        # Make roots six bits from another node, and arrivals three bits from both.
        for at in range(copies + 10, copies + 50, 2):
            bits = [np.uint64(1) << np.uint64(bit) for bit in random.choice(64, 6, replace=False)]
            base = random.choice(held[-20 * count :])
            batch[at] = base ^ np.bitwise_or.reduce(bits)
            batch[at + 1] = base ^ np.bitwise_or.reduce(bits[:3])
        random.shuffle(batch[copies:])
    return batch


def run(store: Store, total: int, *, samples_per_batch: float, seed: int = 11) -> None:
    random = np.random.default_rng(seed)
    model = Exhaustive(total)
    checked = dict.fromkeys(Kind, 0)
    assign_s, started = 0.0, time.monotonic()
    step_ms = LIVING_PARTS * AGING.retention_ms // total
    for first in range(0, total, BATCH):
        batch = arrivals(min(BATCH, total - first), model.ids[: model.count], random)
        times = (first + np.arange(len(batch))) * step_ms
        ids = to_hex(batch)
        before = time.monotonic()
        exist = np.ones(len(batch), bool)
        arriving = Arrivals(signatures=batch, exist=exist, content_hashes=batch, times_ms=times)
        answers = assign(store, arriving, now_ms=int(times[-1]))
        assign_s += time.monotonic() - before
        chosen = set(random.integers(0, len(batch), random.poisson(samples_per_batch)).tolist())
        root_ids = from_hex(answer.root or "" for answer in answers).tolist()
        for at, (node_id, answer, root) in enumerate(zip(batch.tolist(), answers, root_ids, strict=True)):
            if at in chosen:
                expected = model.expected(node_id, answer.time_ms)
                assert (answer.kind, root) == expected, (first + at, ids[at], answer, expected)
                checked[answer.kind] += 1
            model.note(node_id, answer, root)
        if first % (total // 20) < BATCH:
            print(  # noqa: T201
                f"{first + len(batch):>12,} arrivals, {model.count:,} nodes made, "
                f"{sum(checked.values()):,} checked, {(first + len(batch)) / assign_s:,.0f} arrivals/s, "
                f"{time.monotonic() - started:,.0f} s",
                flush=True,
            )
    counts = ", ".join(f"{count} {kind.value}" for kind, count in checked.items() if count)
    print(f"no difference in {sum(checked.values()):,} arrivals checked: {counts}")  # noqa: T201


@contextlib.contextmanager
def elastic_store() -> Iterator[Store]:
    from benchmarks import server
    from esdedup.elastic.forest.store import ElasticStore

    with contextlib.ExitStack() as stack:
        client = stack.enter_context(server.client(lifetime_s=7_200))
        name = f"test-large-{os.getpid()}"
        stack.callback(client.options(ignore_status=404).indices.delete, index=name)
        store = ElasticStore(
            client, forest=name, profile=CLASSIC, aging=AGING, lookup="search", memory_bytes=0
        )
        stack.callback(store.close)
        yield store


def main(where: str, count: str, samples: int = 1_000) -> None:
    total = int(count.replace("_", ""))
    samples_per_batch = samples * BATCH / total
    if where == "memory":
        run(
            MemoryStore(aging=AGING, relation=relation_of(CLASSIC)),
            total,
            samples_per_batch=samples_per_batch,
        )
    elif where == "elastic":
        with elastic_store() as store:
            run(store, total, samples_per_batch=samples_per_batch)
    else:
        raise typer.BadParameter("the first argument must be memory or elastic")


if __name__ == "__main__":
    typer.run(main)
