"""Checks articles against their forest, which must have each article's node and root."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.stored import (
    Stored,
    StoredHash,
    StoredNode,
    genuine,
    interleaved,
    is_hash_name,
    is_node_id,
    keys_of,
    recreate_root,
)
from esdedup.elastic.stories import read_edits, story_values
from esdedup.fingerprint.bands import ARTICLES
from esdedup.forest.model import NO_TIME, Aging
from esdedup.maintenance.records import LONE, NO_LINKS, Record, Records
from esdedup.maintenance.violations import Remedy, RepairableViolation, Violation, ViolationKind, repairable

_BANDS_CHECKED_AT_ONCE = 1_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Batch:
    """Some articles, and the nodes and content hashes that they are compared with."""

    # Records that esdedup cannot have written.
    invalid: list[Record]
    # Valid records whose nodes cannot have expired.
    live: list[Record]
    # Valid records whose nodes may have expired.
    old: list[Record]
    # The existing nodes of the records' texts, roots and content hashes, by id.
    nodes: dict[str, StoredNode]
    # The records' remembered content hashes, by hash.
    hashes: dict[str, StoredHash]
    # Nodes with an earlier `seen` have expired.
    since_ms: int


@dataclasses.dataclass(frozen=True)
class ArticleAudit:
    """Compares the records of articles with a forest's nodes, the latest arrivals first."""

    index: ForestIndex
    records: Records
    aging: Aging
    on_articles: Callable[[int], None] = lambda _: None
    # Whether the forest is made from these articles alone.
    is_rebuild: bool = False
    # The name of the forest whose edits the articles should have; None means this forest.
    edited: str | None = None
    # The index and id of each article with an invalid record that `repairable` has read.
    invalid: set[tuple[str, str]] = dataclasses.field(default_factory=set)

    def violations(self) -> Iterator[list[Violation]]:
        """Yield a list of violations for each batch of articles."""
        yield list(self._state_behind())
        for batch in self._batches():
            yield [*self._wrong_bands(batch.live), *self._except_wrong_bands(batch)]
        if without := self.records.count_without():
            detail = "they were indexed without esdedup; lists and similar articles leave them out"
            subject = f"{without:,} articles"
            yield [Violation(kind=ViolationKind.NO_ROOT, subject=subject, detail=detail, count=without)]

    def repairable(
        self, *, since_seq: int = 0, until_seq: int | None = None
    ) -> Iterator[list[RepairableViolation]]:
        """Yield the repairable violations of each batch of articles after `since_seq`, until `until_seq`."""
        for batch in self._batches(since_seq, until_seq):
            self.invalid.update((record.index, record.id) for record in batch.invalid)
            found = self._except_wrong_bands(batch)
            yield [violation for violation in found if isinstance(violation, RepairableViolation)]

    def _batches(self, since_seq: int = 0, until_seq: int | None = None) -> Iterator[_Batch]:
        for records in self.records.batches(since_seq=since_seq, until_seq=until_seq):
            # Nodes are written before their articles, so after a refresh all nodes of this batch are visible.
            self.index.refresh_if_allowed()
            valid: list[Record] = []
            invalid: list[Record] = []
            for record in records:
                (valid if self._is_valid(record) else invalid).append(record)
            named = (record.content_hash for record in valid if record.content_hash)
            hashes = self.index.run(self.index.nodes.hashes(named))
            nodes = self._nodes(valid, hashes.values())
            # Read the status after the nodes: a node that is live by this status was live when it was read.
            since_ms = self.index.status().live_since_ms(self.aging)
            live: list[Record] = []
            old: list[Record] = []
            for record in valid:
                (live if self.aging.round_up(record.seen_ms) >= since_ms else old).append(record)
            yield _Batch(invalid=invalid, live=live, old=old, nodes=nodes, hashes=hashes, since_ms=since_ms)
            self.on_articles(len(records))

    def _state_behind(self) -> Iterator[Violation]:
        # Read the articles first: while a forest is fed, its state runs ahead of its articles.
        articles = self.records.state()
        forest = self.index.status().state
        if forest.after(articles) != forest:
            detail = f"its last arrival is {forest.seq}, but an article is arrival {articles.seq}"
            yield repairable(ViolationKind.STATE_BEHIND, self.index.name, detail, Remedy())

    def _nodes(self, batch: list[Record], remembered: Iterable[StoredHash]) -> dict[str, StoredNode]:
        ids = {
            node_id
            for record in batch
            if record.fingerprint is not None
            for node_id in (record.fingerprint, record.root)
        }
        ids.update(each.node for each in remembered if each.node is not None)
        return {node.id: node for node in self.index.run(self.index.nodes.by_id(ids))}

    def _except_wrong_bands(self, batch: _Batch) -> Iterator[Violation]:
        yield from map(self._invalid, batch.invalid)
        yield from self._against_nodes(batch)
        yield from self._other_stories(batch)
        yield from self._other_links(batch)

    def _against_nodes(self, batch: _Batch) -> Iterator[Violation]:
        # Compare each article with the nodes as repaired for the articles before it.
        repaired, hashes = dict(batch.nodes), dict(batch.hashes)
        for record in batch.live:
            if record.profile != self.index.meta.profile:
                detail = f"{record.profile!r}; the profile of the forest is {self.index.meta.profile!r}"
                yield Violation(kind=ViolationKind.OTHER_PROFILE, subject=record.id, detail=detail)
            elif record.fingerprint is not None:
                yield from self._of_article(record, record.fingerprint, repaired, hashes, batch)
            elif changed := self._remembered(record, repaired, hashes):
                detail = f"arrival {record.seq}, without a fingerprint, page {record.content_hash}"
                remedy = Remedy(stored=tuple(changed))
                yield repairable(ViolationKind.PAGE_BEHIND, record.id, detail, remedy)
        for record in batch.old:
            if record.profile == self.index.meta.profile:
                yield from self._of_old_article(record, repaired, batch.since_ms)

    def _other_stories(self, batch: _Batch) -> Iterator[Violation]:
        if not self.records.have_stories:
            return
        stories = self.index.run(read_edits(self.edited or self.index.name)).stories
        for record in (*batch.live, *batch.old):
            story = stories.of(record.root, record.fingerprint)
            if record.story != story:
                detail = f"its story is {record.story}, and should be {story}"
                remedy = Remedy(change=(record, story_values(story)))
                yield repairable(ViolationKind.OTHER_STORY, record.id, detail, remedy)

    def _other_links(self, batch: _Batch) -> Iterator[Violation]:
        for record in batch.live:
            root = batch.nodes.get(record.root)
            # A missing root gets the links of its articles; a text without a fingerprint has no links.
            right = root.links if root else NO_LINKS if record.fingerprint is None else record.links
            if record.links != right:
                detail = f"they are {record.links}; its root {record.root} has {right}"
                remedy = Remedy(change=(record, dict(right)))
                yield repairable(ViolationKind.OTHER_LINKS, record.id, detail, remedy)

    def _of_article(
        self,
        record: Record,
        fingerprint: str,
        nodes: dict[str, StoredNode],
        hashes: dict[str, StoredHash],
        batch: _Batch,
    ) -> Iterator[Violation]:
        """Compare an article with its node, root and content hash; add repairs to `nodes` and `hashes`."""
        node, root = nodes.get(fingerprint), nodes.get(record.root)
        if node is not None and node.seen_ms < batch.since_ms:
            # Ignore an expired node: the next article with this fingerprint makes a new node.
            node = None
        if node is not None and node.root != record.root:
            detail = f"its root is {record.root}, the root of its node is {node.root}"
            remedy = Remedy(change=(record, {"root": node.root}))
            yield repairable(ViolationKind.TWO_ROOTS, record.id, detail, remedy)
            return
        changed: dict[str, Stored] = {}
        for before, node_id in ((root, record.root), (node, fingerprint)):
            after = nodes[node_id] = self._with_article(before, node_id, record)
            if after != before:
                changed[node_id] = after
        kind = ViolationKind.NODE_BEHIND if changed else ViolationKind.PAGE_BEHIND
        if fingerprint not in batch.nodes:
            kind = ViolationKind.NODE_GONE
        elif record.root not in batch.nodes:
            kind = ViolationKind.ARTICLE_ROOT_GONE
        remembered = self._remembered(record, nodes, hashes)
        changed |= {each.document_id: each for each in remembered}
        if changed:
            detail = f"arrival {record.seq}, text {fingerprint}, root {record.root}"
            detail += f", page {record.content_hash}"
            yield repairable(kind, record.id, detail, Remedy(stored=tuple(changed.values())))

    def _of_old_article(
        self, record: Record, nodes: dict[str, StoredNode], live_since_ms: int
    ) -> Iterator[Violation]:
        """Compare an old article with its root and its node, skipping each of them that has expired."""
        for node_id in dict.fromkeys([record.root, record.fingerprint or ""]):
            node = nodes.get(node_id)
            if node is None or node.root != record.root or node.seen_ms < live_since_ms:
                continue
            # A rebuild reads later articles first. Their node is also this article's unless it had expired.
            is_same = self.is_rebuild and record.seen_ms + self.aging.retention_ms > node.made_ms
            after = self._with_article(node, node_id, record)
            if after != node and (is_same or after.signature != node.signature):
                nodes[node_id] = after
                detail = f"arrival {record.seq}, text {record.fingerprint}, root {record.root}"
                yield repairable(ViolationKind.NODE_BEHIND, record.id, detail, Remedy(stored=(after,)))

    def _remembered(
        self, record: Record, nodes: dict[str, StoredNode], hashes: dict[str, StoredHash]
    ) -> list[Stored]:
        """Return the nodes or content hashes to write, so that an article's content hash is remembered.

        The latest article with a content hash decides: the hash must be remembered with a node of that
        article's root, or without a node if the article has no fingerprint. Updates `hashes` and `nodes`.
        """
        if record.content_hash is None:
            return []
        own = None if record.fingerprint is None else nodes[record.fingerprint]
        last = hashes.get(record.content_hash)
        other = None if last is None or last.node is None else nodes.get(last.node)
        has_root = (other and other.root) == (own and own.root)
        seen_ms = self.aging.round_up(record.seen_ms)
        # No content hash may outlive its node, whose time may be rounded with another granularity.
        right = StoredHash(record.content_hash, own and own.id, min(seen_ms, own.seen_ms) if own else seen_ms)
        if (
            last is None
            or (last.node and not other)
            or min(each.seen_ms for each in (last, other) if each) < record.seen_ms
        ):
            changed = [own.remembering(right.content_hash, right.seen_ms) if own else right]
        elif has_root or record.seq != self.records.latest_of_hash(record.content_hash):
            return []
        else:
            # Replace the wrong document, or remove the hash from the node that wrongly has it.
            changed = [right]
            if other and other.content_hash == record.content_hash:
                changed.append(other._replace(content_hash="", hash_seen_ms=NO_TIME))
        nodes |= {each.id: each for each in changed if isinstance(each, StoredNode)}
        hashes[record.content_hash] = right
        return changed

    def _with_article(self, node: StoredNode | None, node_id: str, record: Record) -> StoredNode:
        """Return a node with the values that it must have if it existed when this article arrived."""
        seen_ms = self.aging.round_up(record.seen_ms)
        if node is None:
            own = StoredNode(
                record.fingerprint or "", record.root, record.signature, record.seq, record.seen_ms, seen_ms
            )
            if node_id != own.id:
                own = recreate_root(node_id, own, self.index.relation)
            return _linked(own, record)
        # A root recreated from a leaf gets its links from its articles, and its signature from an article of
        # its own text. Any other node keeps its signature and links, so that no forged value spreads.
        is_recreated = not genuine([node], self.index.relation)
        if self.is_rebuild or is_recreated:
            node = _linked(node, record)
        return node._replace(
            signature=record.signature if is_recreated and node_id == record.fingerprint else node.signature,
            seq=min(node.seq, record.seq),
            made_ms=min(node.made_ms, record.seen_ms),
            # Keep the node's time unless it is too early: it may have been rounded with another granularity.
            seen_ms=seen_ms if record.seen_ms > node.seen_ms else node.seen_ms,
        )

    def _wrong_bands(self, batch: list[Record]) -> Iterator[Violation]:
        profile = self.index.meta.profile
        records = [record for record in batch if record.fingerprint is not None and record.profile == profile]
        bands = keys_of(records, self.index.relation, ARTICLES)
        # A signature has no bands if all of its keys are frequent.
        findable = [(record, terms) for record, terms in zip(records, bands, strict=True) if terms]
        # Bands are checked per group, so a swap between adjacent articles would pass; interleave articles.
        for group in interleaved(findable, _BANDS_CHECKED_AT_ONCE):
            correct = self.records.with_bands(group)
            for record, _ in group:
                if (record.index, record.id) not in correct:
                    detail = "index it again, so that it is found by its bands"
                    yield Violation(kind=ViolationKind.WRONG_BANDS, subject=record.id, detail=detail)

    def _is_valid(self, record: Record) -> bool:
        if record.several or not (record.content_hash is None or is_hash_name(record.content_hash)):
            return False
        if record.fingerprint is None:
            return record.root.startswith(LONE)
        if not is_node_id(record.root) or record.seq < 1:
            return False
        if record.profile != self.index.meta.profile:
            return is_node_id(record.fingerprint)
        return self._signed(record) == record.fingerprint

    def _signed(self, record: Record) -> str:
        """Return the fingerprint of an article's signature, or why it has none."""
        relation = self.index.relation
        if len(record.signature) != relation.dtype.itemsize:
            return f"{len(record.signature)} bytes instead of {relation.dtype.itemsize}"
        return relation.ids(np.frombuffer(record.signature, relation.dtype))[0]

    def _invalid(self, record: Record) -> Violation:
        if record.several:
            detail = f"several values in {', '.join(record.several)}"
        elif record.root.startswith(LONE) and record.fingerprint is not None:
            detail = f"its root {record.root} is for a text without a fingerprint, but the article has one"
            cleared = dict.fromkeys(("fingerprint", "signature", "bands", "page", *NO_LINKS))
            remedy = Remedy(change=(record, cleared))
            return repairable(ViolationKind.INVALID_RECORD, record.id, detail, remedy)
        else:
            detail = f"fingerprint {record.fingerprint!r}, signature of {self._signed(record)}, "
            detail += f"page {record.content_hash!r}, root {record.root!r}, seq {record.seq}"
        detail += "; index it again"
        return Violation(kind=ViolationKind.INVALID_RECORD, subject=record.id, detail=detail)


def _linked(node: StoredNode, record: Record) -> StoredNode:
    """Return a root with its missing links taken from `record`; return other nodes unchanged."""
    if not node.is_root:
        return node
    part_of, has_part = (link if is_node_id(link) else "" for link in record.links.values())
    return node._replace(part_of=node.part_of or part_of, has_part=node.has_part or has_part)
