"""Reference model of the forest's laws: simple, exhaustive, one arrival at a time."""

import dataclasses
from collections.abc import Callable

from esdedup.forest import NO_TIME, Aging

DAY_MS = 86_400_000


Pairwise = Callable[[str, str], bool]


@dataclasses.dataclass
class ModelNode:
    # A root is named by its id and the period of the article that made it.
    id: str
    name: str
    root: str
    seq: int
    seen: int
    made: int
    # Only for a root: the name of a root that contains this root, and of a root that this root contains.
    part_of: str | None = None
    has_part: str | None = None
    indexed: set[int] = dataclasses.field(default_factory=set)
    # The link and id of the node's article, as negative numbers.
    addresses: frozenset[int] = frozenset()


@dataclasses.dataclass
class ModelHash:
    # None if the article got no node.
    node: ModelNode | None
    seen: int


class Model:
    def __init__(
        self,
        aging: Aging,
        near: Pairwise = lambda one, other: distance(one, other) <= 3,
        may_join: Callable[[str, str, str], bool] = lambda text, member, root: True,
        is_part: Pairwise = lambda text, whole: False,
        resemblance: Callable[[str, str], float] | None = None,
        representatives: Callable[[str], list[int]] = lambda text: [int(text, 16)],
        in_common: Callable[[int, int], bool] = lambda one, other: (one ^ other).bit_count() <= 3,
        max_postings: int = 2**31,
        continues: Pairwise = lambda text, before: False,
        has_root: Pairwise = lambda text, root: False,
        length: Callable[[str], int] = lambda text: 0,
        name: Callable[[str, int], str] = lambda text, period: text,
    ) -> None:
        self.aging = aging
        self.near = near
        self.may_join = may_join
        self.is_part = is_part
        # None means that the root with the most leaves is preferred.
        self.resemblance = resemblance
        self.representatives = representatives
        self.in_common = in_common
        self.max_postings = max_postings
        self.continues = continues
        self.has_root = has_root
        self.length = length
        self.name = name
        self.nodes: dict[str, ModelNode] = {}
        self.hashes: dict[int, ModelHash] = {}
        self.seq = 0
        self.time = NO_TIME
        self.origin = NO_TIME

    def assign(
        self,
        node_id: str | None,
        content_hash: int,
        time: int,
        *,
        now: int,
        addresses: frozenset[int] = frozenset(),
    ) -> tuple[str, str | None, str | None, str | None, str | None, int, int]:
        """Return the kind, the node, its root, the root's two links, the seq and the forest's time."""
        self.seq += 1
        own = self.time
        if time != NO_TIME and time <= now + DAY_MS:
            own, self.time = time, max(self.time, time)
            if self.origin == NO_TIME:
                self.origin = self.time
        remembered = self.hashes.get(content_hash)
        node = None if node_id is None else self.nodes.get(node_id)
        is_remembered = remembered is not None and self.lasts(remembered.seen)
        if remembered is not None and is_remembered and remembered.node is not None:
            kind, node = "known", remembered.node
            assert self.lives(node)
            assert self.lives(self.nodes[node.root])
        elif node_id is None or is_remembered:
            self.remember(content_hash, None)
            return "without_fingerprint", None, None, None, None, self.seq, self.time
        elif node is not None and self.lives(node):
            kind = "known"
        else:
            found = [
                other
                for other in self.nodes.values()
                if self.lives(other) and self.is_indexed_near(other, node_id, addresses)
            ]
            new = ModelNode(node_id, node_id, node_id, self.seq, NO_TIME, self.rounded(), addresses=addresses)
            near = [other for other in found if self.near(other.id, node_id)]
            root = self.best(
                node_id,
                self.roots_of_versions(new, found)
                or {other.root for other in near if self.may_join(node_id, other.id, other.root)},
            )
            self.mark_indexed(new)
            kind = "joined"
            if root is None:
                kind, root = "new_root", node_id
                new.part_of = self.linked(node_id, found, self.is_part)
                new.has_part = self.linked(node_id, found, lambda text, part: self.is_part(part, text))
                if own != NO_TIME and new.indexed:
                    new.name = self.name(node_id, own // self.aging.retention_ms)
            new.root = root
            node = self.nodes[node_id] = new
        for refreshed in (node, self.nodes[node.root]):
            refreshed.seen = max(refreshed.seen, self.rounded())
        self.remember(content_hash, node)
        root_node = self.nodes[node.root]
        links = root_node.part_of, root_node.has_part
        return kind, node.name, root_node.name, *links, self.seq, self.time

    def linked(self, text: str, found: list[ModelNode], is_linked: Pairwise) -> str | None:
        """Return the name of the best root for which `is_linked` is true, among near or linked roots."""
        roots = {
            other.root
            for other in found
            if self.near(other.id, text) or self.is_part(text, other.id) or self.is_part(other.id, text)
        }
        root = self.best(text, {each for each in roots if is_linked(text, each)})
        return root and self.nodes[root].name

    def roots_of_versions(self, new: ModelNode, found: list[ModelNode]) -> set[str]:
        """Return the roots of earlier versions, if enough of them form a chain up to the new version.

        Each version outside the chain requires four versions in the chain, or only one version if the version
        outside is less than half as long as the new text.
        """

        def is_next(later: ModelNode, before: ModelNode) -> bool:
            return bool(later.addresses & before.addresses) and self.continues(later.id, before.id)

        versions = sorted(
            (each for each in found if each.addresses & new.addresses), key=lambda each: each.seq
        )
        chain: list[ModelNode] = []
        needed = 0
        for number, each in reversed(list(enumerate(versions, 1))):
            later = chain[-1] if chain else new
            is_unchecked = chain and number >= self.max_postings
            if is_unchecked or later.root == each.root or is_next(later, each):
                chain.append(each)
            else:
                needed += 1 if self.length(each.id) * 2 < self.length(new.id) else 4
        if len(chain) < needed:
            return set()
        return {each.root for each in chain if is_next(new, each) and self.has_root(new.id, each.root)}

    def best(self, text: str, roots: set[str]) -> str | None:
        """Return the root with the best claim to a text, or the oldest in a tie; None if there is none."""
        return min(
            roots, key=lambda each: (-self.claim(text, each), self.nodes[each].seq, each), default=None
        )

    def claim(self, text: str, root: str) -> float:
        if self.resemblance is not None:
            return self.resemblance(text, root)
        return sum(self.lives(each) for each in self.nodes.values() if each.root == root != each.id)

    def remember(self, content_hash: int, node: ModelNode | None) -> None:
        # 0 is the content hash of every text without letters and digits.
        if content_hash:
            self.hashes[content_hash] = ModelHash(node, self.rounded())

    def remembered(self) -> set[tuple[int, str | None, int]]:
        """Return the remembered content hashes, with their nodes and the times when they were last seen."""
        return {
            (content_hash, None if each.node is None else each.node.id, each.seen)
            for content_hash, each in self.hashes.items()
            if self.lasts(each.seen)
        }

    def is_indexed_near(self, node: ModelNode, text: str, addresses: frozenset[int]) -> bool:
        by_wording = (
            self.in_common(one, other)
            for one in node.indexed - node.addresses
            for other in self.representatives(text)
        )
        return bool(node.indexed & own_key(addresses)) or any(by_wording)

    def mark_indexed(self, node: ModelNode) -> None:
        for value in {*self.representatives(node.id), *own_key(node.addresses)}:
            postings = [
                other for other in self.nodes.values() if value in other.indexed and self.lasts(other.made)
            ]
            if len(postings) < self.max_postings:
                node.indexed.add(value)

    def lives(self, node: ModelNode) -> bool:
        return self.lasts(node.seen)

    def lasts(self, seen: int) -> bool:
        if self.time == NO_TIME:
            return True
        since = seen if seen != NO_TIME else self.up(self.origin)
        return self.time < since + self.aging.retention_ms

    def rounded(self) -> int:
        return NO_TIME if self.time == NO_TIME else self.up(self.time)

    def up(self, time: int) -> int:
        step = self.aging.granularity_ms
        return (time + step - 1) // step * step


def distance(one: str, other: str) -> int:
    return (int(one, 16) ^ int(other, 16)).bit_count()


def own_key(addresses: frozenset[int]) -> set[int]:
    """Return the only address that is a key: the greatest, which is the article's link if it has one."""
    return {max(addresses)} if addresses else set()
