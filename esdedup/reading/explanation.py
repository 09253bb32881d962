"""Explains why two texts are near each other or not, and why two articles are in one cluster or not."""

import dataclasses
import functools

import numpy as np

from esdedup.boilerplate.boilerplate import untaught_filters
from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides, refuse_useless, without_placeholders
from esdedup.elastic.forest.article_nodes import ArticleNodes
from esdedup.elastic.forest.lookup import reader_nodes
from esdedup.elastic.forest.meta import read_meta
from esdedup.elastic.forest.search import NodeCache, NodeSearch
from esdedup.elastic.forest.status import ForestStatus, read_status
from esdedup.elastic.forest.stored import StoredNode, hash_name, signatures_of
from esdedup.elastic.requests import Requests
from esdedup.errors import ArticleRejected, ForestError, ForestMissing, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile, profile_labelled
from esdedup.fingerprint.simhash import to_hex
from esdedup.forest.model import NO_TIME
from esdedup.neighbours.explainer import Explainer, PastSignature, Signatures, compare_whole_texts
from esdedup.neighbours.explanation import Explanation
from esdedup.neighbours.relation import Way, relation_of
from esdedup.reading.articles import StoredText, text_by_fingerprint, text_by_id
from esdedup.reading.clusters import ForestScope
from esdedup.reading.verdict import (
    ArticleState,
    IndexedExplanation,
    Neighbour,
    NodeState,
    RootComparison,
    outcome,
)
from esdedup.sites import RawPage
from esdedup.times import DAY_MS, iso


def explain(
    one: str | RawPage,
    other: str | RawPage,
    profile: Profile = DEFAULT,
    *,
    overrides: Overrides = NO_OVERRIDES,
) -> Explanation:
    """Explain why two raw texts are near each other under a profile, or why they are not.

    Boilerplate is left out as in a new forest, which has not learned any yet.

    Args:
        one: The first text, with or without markup; a `RawPage` adds its site, and its address or id.
        other: The second text, treated as the later one.
        profile: The profile that determines fingerprints and thresholds.
        overrides: The passages that are declared boilerplate or text.

    Raises:
        SettingError: There are overrides, but the profile keeps boilerplate, so they have no effect.
    """
    refuse_useless(overrides, keep_boilerplate=profile.keep_boilerplate)
    filter_on, without = untaught_filters(overrides), functools.partial(without_placeholders, overrides)
    explainer = Explainer(profile, filter_on=filter_on, without=without)
    return explainer.explain(one, other)


def explain_articles(
    scope: ForestScope,
    index: str,
    one_id: str,
    other_id: str,
    *,
    in_index: str | None = None,
    other_in_index: str | None = None,
) -> Requests[IndexedExplanation]:
    """Explain why two articles are in one cluster, or why they are not.

    The comparison uses the profile that the articles were indexed with and, if their texts have not changed
    since, the signatures that decided their assignment. Without a forest, the explanation uses the index
    alone. `Maintenance.explain` also checks that the forest belongs to the index.

    Args:
        index: An index, alias or pattern; if several articles have the same id, the last to arrive is used.
        one_id: The id of the first article.
        other_id: The id of the second article; may equal `one_id`.
        in_index: The index to read the first article from, if several indices have its id.
        other_in_index: The index to read the second article from, if several indices have its id.

    Raises:
        ArticleNotFound: One of the articles does not exist.
        ArticleRejected: An article has no text.
        SettingError: The articles' profile is unknown, or the name of the index or an id is empty.
    """
    return explain_indexed(scope, index, (one_id, in_index), (other_id, other_in_index))


def explain_indexed(
    scope: ForestScope,
    index: str,
    one: tuple[str, str | None],
    other: tuple[str, str | None],
    *,
    profile: Profile | None = None,
    forest_missing: str | None = None,
) -> Requests[IndexedExplanation]:
    """Explain two articles, each given by its id and index (None means any index).

    `profile` defaults to the profile that the articles were fingerprinted with. `forest_missing` is the
    reason why the forest must not be read, or None.
    """
    ready = yield from scope.check(index)
    scope = yield from scope.of_index(index)
    index, fields = ready.index, ready.fields
    first = yield from text_by_id(index, one[0], fields=fields, in_index=one[1])
    second = yield from text_by_id(index, other[0], fields=fields, in_index=other[1])
    profile = profile or _profile_of(first, second)
    forest: _Forest | None = None
    learned_missing = forest_missing
    if forest_missing is None:
        try:
            forest = yield from _read_forest(scope.forest, index=index, fields=fields)
            if not profile.keep_boilerplate:
                yield from scope.learned.update(scope.forest)
        except ForestError as error:
            learned_missing = str(error)
            forest_missing = learned_missing if forest is None else None
    filter_on = functools.partial(scope.learned.filter_on, overrides=scope.overrides)
    without = functools.partial(without_placeholders, scope.overrides)
    of_texts = Explainer(profile, filter_on=filter_on if learned_missing is None else None, without=without)
    explainer = _IndexExplainer(index, fields, forest, of_texts)
    states = (yield from explainer.state(first, second)), (yield from explainer.state(second, first))
    comparison = explainer.compare(first, second, is_first_later=states[0].order > states[1].order)
    retention_ms = None if forest is None else forest.status.aging.retention_ms
    gap_ms = None
    if first.seen_ms is not None and second.seen_ms is not None:
        gap_ms = abs(first.seen_ms - second.seen_ms)
    return IndexedExplanation(
        comparison=comparison,
        one=states[0],
        other=states[1],
        forest=scope.forest,
        forest_missing=forest_missing,
        learned_missing=learned_missing,
        retention_days=None if retention_ms is None else round(retention_ms / DAY_MS, 3),
        same_cluster=first.root is not None and first.root == second.root,
        outcome=outcome(comparison, *states, gap_ms=gap_ms, retention_ms=retention_ms),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Forest:
    profile: str
    nodes: NodeSearch | ArticleNodes
    status: ForestStatus


def _read_forest(name: str, *, index: str, fields: Fields) -> Requests[_Forest]:
    """Open the forest of an index's articles; raise `ForestMissing` if it is missing."""
    meta = yield from read_meta(name)
    if meta is None:
        raise ForestMissing.of(name)
    status = yield from read_status(name)
    nodes = reader_nodes(name, meta, status.aging, index=index, fields=fields)
    return _Forest(profile=meta.profile, nodes=nodes, status=status)


def _profile_of(*articles: StoredText) -> Profile:
    """Return the profile of the first article that has one, or the default profile."""
    article = next((each for each in articles if each.profile is not None), None)
    if article is None or article.profile is None:
        return DEFAULT
    profile = profile_labelled(article.profile)
    if profile is None:
        raise SettingError(
            f"the article {article.id!r} was fingerprinted with {article.profile!r}, which this version does "
            "not know: pass the profile that it was indexed with"
        )
    return profile


class _IndexExplainer:
    """Compares articles of an index, and finds their states in the index and a forest."""

    def __init__(self, index: str, fields: Fields, forest: _Forest | None, explainer: Explainer) -> None:
        self._index = index
        self._fields = fields
        self._explainer = explainer
        self._label = explainer.profile.label
        self._relation = relation_of(explainer.profile)
        # Nodes of another profile cannot be compared with these articles.
        known = forest if forest is not None and forest.profile == self._label else None
        self._nodes = None if known is None else known.nodes
        self._live_since_ms = NO_TIME if known is None else known.status.live_since_ms(known.status.aging)
        # The articles read so far, by fingerprint.
        self._texts: dict[str, StoredText | None] = {}

    def compare(self, one: StoredText, other: StoredText, *, is_first_later: bool = False) -> Explanation:
        """Compare two articles by the signatures with which they were assigned, if known."""
        return self._explainer.explain(
            RawPage(one.text, one.site),
            RawPage(other.text, other.site),
            decided=(self._past_signature(one), self._past_signature(other)),
            is_first_later=is_first_later,
        )

    def state(self, article: StoredText, other: StoredText) -> Requests[ArticleState]:
        """Return the state of an article; `other` is the article that it is compared with."""
        other_root = None if other.root == article.root else other.root
        is_comparable = article.profile == self._label
        has_node = is_comparable and self._nodes is not None and article.fingerprint is not None
        nodes = yield from self._nodes_by_id(article.fingerprint, article.root)
        node = nodes.get(article.fingerprint or "")
        neighbour, live_leaves = (yield from self._first_neighbour(node)), None
        if has_node and self._nodes is not None and article.root is not None:
            live_leaves = yield from self._nodes.count_leaves(article.root, self._live_since_ms)
        return ArticleState(
            id=article.id,
            index=article.index,
            also_in=article.also_in,
            root=article.root,
            profile=article.profile,
            fingerprint=article.fingerprint,
            seq=article.seq,
            seen=None if article.seen_ms is None else iso(article.seen_ms),
            text_is_same=self._text_is_same(article) if is_comparable else None,
            stays_without=(yield from self._stays_without(article)) if is_comparable else None,
            node=self._node_state(node) if has_node else None,
            indexed=None if node is None else self._indexed(node),
            node_root=node and node.root,
            node_seq=node and node.seq,
            root_node=self._node_state(nodes.get(article.root or "")) if has_node else None,
            live_leaves=live_leaves,
            to_root=(yield from self._compare_with_root(article, article.root, neighbour)),
            to_other_root=(yield from self._compare_with_root(article, other_root, other)),
            neighbour=neighbour,
        )

    def _nodes_by_id(self, *ids: str | None) -> Requests[dict[str, StoredNode]]:
        given = {each for each in ids if each is not None}
        found = [] if self._nodes is None else (yield from self._nodes.by_id(given))
        return {node.id: node for node in found}

    def _signature(self, signed: StoredText | StoredNode) -> Signatures:
        return signatures_of([signed], self._relation)

    def _text_is_same(self, article: StoredText) -> bool | None:
        # Compare content hashes: the fingerprint changes with the learned boilerplate.
        content_hash = hash_name(self._explainer.content_hash(article.text))
        if content_hash and not article.content_hash and article.fingerprint is None:
            return None  # The content hash of a placeholder is not stored.
        return content_hash == (article.content_hash or "")

    def _stays_without(self, article: StoredText) -> Requests[bool | None]:
        """Return whether the forest remembers that an article's text gets no fingerprint."""
        if self._nodes is None or article.fingerprint is not None:
            return None
        found = yield from self._nodes.hashes([article.content_hash] if article.content_hash else [])
        return any(each.node is None and each.seen_ms >= self._live_since_ms for each in found.values())

    def _past_signature(self, article: StoredText) -> PastSignature | None:
        """Return the signature that decided an assignment; None if the text or the profile has changed."""
        if article.profile != self._label or not self._text_is_same(article):
            return None
        if article.fingerprint is None:
            return PastSignature(None)
        return PastSignature(self._signature(article)) if self._has_signature(article) else None

    def _has_signature(self, article: StoredText) -> bool:
        return len(article.signature) == self._relation.dtype.itemsize

    def _node_state(self, node: StoredNode | None) -> NodeState:
        if node is None:
            return "gone"
        return "live" if node.seen_ms >= self._live_since_ms else "expired"

    def _indexed(self, node: StoredNode) -> tuple[str, ...]:
        signature = self._signature(node)
        return tuple(to_hex(self._relation.representatives(signature)[self._relation.indexed(signature)]))

    def _compare_with_root(
        self, article: StoredText, root: str | None, member: StoredText | Neighbour | None
    ) -> Requests[RootComparison | None]:
        """Compare an article with a root, by their texts if both are stored.

        `member` is an article or node of the root's cluster, through which the article may join.
        """
        if root is None or article.fingerprint is None or root == article.fingerprint:
            return None
        if article.profile != self._label or not self._has_signature(article):
            return None
        holder = yield from self._with_fingerprint(root)
        if holder is not None and not (self._past_signature(holder) and self._past_signature(article)):
            holder = None
        known = holder or (yield from self._nodes_by_id(root)).get(root)
        # A recreated root has the signature of a leaf: its own text is unknown.
        if known is None or self._relation.ids(self._signature(known)) != [root]:
            return None
        one, other = self._signature(article), self._signature(known)
        own, others = (self._relation.representatives(each)[0] for each in (one, other))
        rules = self._explainer.profile.agreement
        if holder is not None:
            whole_texts = self.compare(holder, article).whole_texts
        else:
            whole_texts = None if rules is None else compare_whole_texts(other, one, rules)
        # An article that resembles the root may join through any member.
        way: Way | None = "root" if whole_texts is None or whole_texts.may_join else None
        if way is None and isinstance(member, StoredText):
            if member.profile == self._label and self._has_signature(member):
                way = self._relation.joining(one, self._signature(member), other)[0][0]
        elif way is None and isinstance(member, Neighbour):
            way = member.way
        return RootComparison(
            root=root,
            article=None if holder is None else holder.id,
            nearest_bits=int(self._relation.distances_bits(own[:, None], others[None, :]).min()),
            whole_texts=whole_texts,
            way=way,
        )

    def _first_neighbour(self, node: StoredNode | None) -> Requests[Neighbour | None]:
        """Find the neighbour through which a leaf may have joined: the earliest or its previous version."""
        if self._nodes is None or node is None or node.is_root:
            return None
        signature = self._signature(node)
        found = yield from self._nodes.candidates(signature, live_since_ms=NO_TIME)
        nodes = (each for each in found if isinstance(each, StoredNode))
        others = (each for each in nodes if each.root == node.root and each.id != node.id)
        neighbours = [each for _, each in NodeCache(others, self._relation).find_pairs(signature)]
        if not neighbours:
            return None
        root = (yield from self._nodes_by_id(node.root)).get(node.root)
        members = signatures_of(neighbours, self._relation)
        texts = np.repeat(signature, len(members))
        # If the root is gone, use each member in place of the root.
        roots = members if root is None else np.repeat(self._signature(root), len(members))
        ways, _ = self._relation.joining(texts, members, roots)
        first, way = min(
            zip(neighbours, ways, strict=True),
            key=lambda each: (
                *(each[0].seq > node.seq, each[1] is None, each[1] == "address"),
                -each[0].seq if each[1] == "address" else each[0].seq,
            ),
        )
        holder = yield from self._with_fingerprint(first.id)
        return Neighbour(fingerprint=first.id, article=None if holder is None else holder.id, way=way)

    def _with_fingerprint(self, fingerprint: str) -> Requests[StoredText | None]:
        """Read the first article with the given fingerprint; return None if it is missing or has no text."""
        if fingerprint not in self._texts:
            try:
                found = yield from text_by_fingerprint(self._index, [fingerprint], fields=self._fields)
            except ArticleRejected:
                found = None
            self._texts[fingerprint] = found
        return self._texts[fingerprint]
