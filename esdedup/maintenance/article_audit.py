"""The laws of the forest, checked afterwards on the articles: each must find itself in it."""

from collections.abc import Callable, Iterator

import numpy as np

from esdedup.elastic.forest.documents import StoredNode, apart, is_node_id, keys_of, root_again
from esdedup.elastic.forest.index import ForestIndex
from esdedup.forest.model import NO_TIME, Aging
from esdedup.maintenance.records import LONE, Record, Records
from esdedup.maintenance.violations import Violation, ViolationKind

_BANDS_CHECKED_AT_ONCE = 1_000


class ArticleAudit:
    """Goes through the labels of articles, the latest first."""

    def __init__(
        self,
        index: ForestIndex,
        labels: Records,
        aging: Aging,
        *,
        on_articles: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Prepare.

        Args:
            index: The forest's; read only.
            labels: Of the articles.
            aging: How long nodes live: articles whose node may have expired are excused.
            on_articles: Told how many articles more have been looked at.
        """
        self._index = index
        self._labels = labels
        self._aging = aging
        self._on_articles = on_articles

    def violations(self) -> Iterator[list[Violation]]:
        """Yield the violations of each page of articles, also if there are none."""
        yield list(self._state_behind())
        for unsound, live, found in self._pages():
            yield [
                *map(_no_label, unsound),
                *self._wrong_bands(live),
                *self._against_nodes(live, found),
            ]
        without = self._labels.count_without()
        if without:
            yield [
                Violation(
                    kind=ViolationKind.NO_ROOT,
                    subject=f"{without:,} articles",
                    detail="they were indexed without esdedup, and no list or search by root finds them",
                )
            ]

    def remedies(self) -> Iterator[list[Violation]]:
        """Yield of each page the violations that a repair can mend, without looking for others."""
        yield list(self._state_behind())
        for _, live, found in self._pages():
            yield [violation for violation in self._against_nodes(live, found) if violation.can_be_repaired]

    def _pages(self) -> Iterator[tuple[list[Record], list[Record], dict[str, StoredNode]]]:
        """Yield of each page the articles that make no sense, those whose node must live, and nodes by id."""
        for page in self._labels.pages():
            # Nodes are written before articles: after this all those of the page are there.
            self._index.refresh()
            sound: list[Record] = []
            unsound: list[Record] = []
            for label in page:
                (sound if self._is_sound(label) else unsound).append(label)
            found = self._nodes(sound)
            # After the nodes: what must live at this time lived when they were read.
            self._live_since_ms = self._index.status().live_since_ms(self._aging)
            live = [label for label in sound if self._seen_until_ms(label) >= self._live_since_ms]
            yield unsound, live, found
            self._on_articles(len(page))

    def _state_behind(self) -> Iterator[Violation]:
        # In this order: a forest that is being written to runs ahead of its articles.
        articles = self._labels.state()
        forest = self._index.status().state
        after = forest.after(articles)
        if after != forest:
            yield Violation(
                kind=ViolationKind.STATE_BEHIND,
                subject=self._index.name,
                detail=f"it is at arrival {forest.seq}, and an article is arrival {articles.seq}",
                state=after,
            )

    def _nodes(self, page: list[Record]) -> dict[str, StoredNode]:
        wanted = {
            name
            for label in page
            if label.fingerprint is not None
            for name in (label.fingerprint, label.root)
        }
        return {node.id: node for node in self._index.run(self._index.search.by_id(wanted))}

    def _against_nodes(self, page: list[Record], found: dict[str, StoredNode]) -> Iterator[Violation]:
        # What mends one article counts for those after it.
        nodes = dict(found)
        for label in page:
            if label.profile != self._index.meta.profile:
                yield Violation(
                    kind=ViolationKind.OTHER_PROFILE,
                    subject=label.id,
                    detail=f"{label.profile!r}, where the forest has {self._index.meta.profile!r}",
                )
            elif label.fingerprint is not None:
                yield from self._of_article(label, label.fingerprint, nodes, found)

    def _of_article(
        self, label: Record, fingerprint: str, nodes: dict[str, StoredNode], found: dict[str, StoredNode]
    ) -> Iterator[Violation]:
        """Compare an article with its node and its root.

        Args:
            label: Of the article.
            fingerprint: Its.
            nodes: By id, as repaired so far; goes on with what mends this one.
            found: By id, as they are.
        """
        node, root = nodes.get(fingerprint), nodes.get(label.root)
        if node is not None and node.seen_ms < self._live_since_ms:
            # It expired, and its id would start anew.
            node = None
        if node is not None and node.root != label.root:
            yield Violation(
                kind=ViolationKind.TWO_ROOTS,
                subject=label.id,
                detail=f"its root is {label.root}, that of its text's node is {node.root}",
                relabel=(label, node.root),
            )
            return
        repaired = []
        for before, node_id in ((root, label.root), (node, fingerprint)):
            after = self._with_article(before, node_id, label)
            if after != before and after not in repaired:
                repaired.append(after)
                nodes[node_id] = after
        if repaired:
            kind = ViolationKind.NODE_BEHIND
            if fingerprint not in found:
                kind = ViolationKind.NODE_GONE
            elif label.root not in found:
                kind = ViolationKind.ARTICLE_ROOT_GONE
            yield Violation(
                kind=kind,
                subject=label.id,
                detail=f"arrival {label.seq}, text {fingerprint}, root {label.root}",
                nodes=tuple(repaired),
            )

    def _with_article(self, node: StoredNode | None, node_id: str, label: Record) -> StoredNode:
        """Return the node as it must be at least, since it was there for this article."""
        seen_ms = self._seen_until_ms(label)
        if node is None:
            own = StoredNode(
                label.fingerprint or "", label.root, label.signature, label.seq, label.seen_ms, seen_ms
            )
            return own if node_id == own.id else root_again(node_id, own, self._index.relation)
        return node._replace(
            # A root that was made of a leaf's article gets its own text's.
            signature=label.signature if node_id == label.fingerprint else node.signature,
            seq=min(node.seq, label.seq),
            made_ms=min(node.made_ms, label.seen_ms),
            # Rounding is left alone: it may have been another one.
            seen_ms=seen_ms if label.seen_ms > node.seen_ms else node.seen_ms,
        )

    def _wrong_bands(self, page: list[Record]) -> Iterator[Violation]:
        own = self._index.meta.profile
        labels = [label for label in page if label.fingerprint is not None and label.profile == own]
        bands = keys_of(labels, self._index.relation, self._index.layout)
        # What is indexed under nothing has none to be found by.
        findable = [(label, terms) for label, terms in zip(labels, bands, strict=True) if terms]
        # As with the keys of nodes: what a slip would exchange does not come into one group.
        for group in apart(findable, _BANDS_CHECKED_AT_ONCE):
            fine = self._labels.with_bands(group)
            for label, _ in group:
                if (label.index, label.id) not in fine:
                    yield Violation(
                        kind=ViolationKind.WRONG_BANDS,
                        subject=label.id,
                        detail="index it again to have it found by its bands",
                    )

    def _is_sound(self, label: Record) -> bool:
        """Tell whether the label is one that esdedup writes."""
        if label.fingerprint is None:
            return label.root.startswith(LONE)
        if not is_node_id(label.root) or label.seq < 1:
            return False
        if label.profile != self._index.meta.profile:
            return is_node_id(label.fingerprint)
        relation = self._index.relation
        return len(label.signature) == relation.dtype.itemsize and relation.ids(
            np.frombuffer(label.signature, relation.dtype)
        ) == [label.fingerprint]

    def _seen_until_ms(self, label: Record) -> int:
        if label.seen_ms == NO_TIME:
            return NO_TIME
        return int(self._aging.round_up(np.array(label.seen_ms)))


def _no_label(label: Record) -> Violation:
    return Violation(
        kind=ViolationKind.NO_LABEL,
        subject=label.id,
        detail=f"fingerprint {label.fingerprint!r}, root {label.root!r}, seq {label.seq}; index it again",
    )
