"""Explains two texts, or two indexed articles from their index and their forest."""

import functools
from collections.abc import Sequence

from esdedup.boilerplate.pins import NO_PINS, Pins, refuse_useless
from esdedup.boilerplate.untaught import omit_untaught
from esdedup.elastic.forest.documents import live_leaves
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.node_cache import NodeCache
from esdedup.elastic.forest.stored import StoredNode, page_name, signatures_of
from esdedup.errors import ArticleRejected, SettingError
from esdedup.fingerprint.profile import DEFAULT, Profile, profile_labelled
from esdedup.fingerprint.simhash import to_hex
from esdedup.forest.model import NO_TIME
from esdedup.maintenance.stored_texts import StoredText, StoredTexts
from esdedup.maintenance.verdict import (
    ArticleState,
    IndexedExplanation,
    Neighbour,
    NodeState,
    RootComparison,
    outcome,
)
from esdedup.neighbours.explainer import Decided, Explainer, compare_whole_texts
from esdedup.neighbours.explanation import Explanation
from esdedup.neighbours.relation import relation_of
from esdedup.neighbours.representatives import distances_bits
from esdedup.sites import site_name
from esdedup.times import DAY_MS, iso


def explain(
    one: str,
    other: str,
    profile: Profile = DEFAULT,
    *,
    pins: Pins = NO_PINS,
    sites: tuple[str | None, str | None] = (None, None),
) -> Explanation:
    """Explain why two raw texts are near each other under a profile, or why they are not.

    Of each is left out what a forest leaves out before it has learned anything.

    Args:
        one: The first text, with or without markup.
        other: The second text.
        profile: Decides fingerprints and thresholds.
        pins: What is pinned as boilerplate or as text.
        sites: The sites of the two, names or addresses, for the pins of these sites.

    Raises:
        SettingError: The profile keeps boilerplate, so pins would have no effect.
    """
    refuse_useless(pins, keep_boilerplate=profile.keep_boilerplate)
    names = [None if site is None else site_name(site) for site in sites]
    explainer = Explainer(profile, omit_on=omit_untaught(pins))
    return explainer.explain(one, other, sites=(names[0], names[1]))


def profile_of(articles: Sequence[StoredText]) -> Profile:
    """Return the profile that articles were fingerprinted with: the first article's if they differ.

    Raises:
        SettingError: It is not a standard profile.
    """
    labels = [(article.id, article.profile) for article in articles if article.profile is not None]
    if not labels:
        return DEFAULT
    article_id, label = labels[0]
    profile = profile_labelled(label)
    if profile is None:
        raise SettingError(
            f"the article {article_id!r} was fingerprinted with {label!r}, which this version does not "
            "know: pass the profile that it was indexed with"
        )
    return profile


class IndexExplainer:
    """Explains why two articles of an index are in one cluster or not."""

    def __init__(self, texts: StoredTexts, forest: ForestIndex | None, explainer: Explainer) -> None:
        """Read articles of some indices and the nodes of one forest.

        Args:
            texts: The articles.
            forest: The forest's index; None if it is missing.
            explainer: Compares two texts by one profile.
        """
        self._texts = texts
        self._explainer = explainer
        self._label = explainer.profile.label
        self._relation = relation_of(explainer.profile)
        # Nodes of another profile cannot be compared with these articles.
        self._forest = forest if forest is not None and forest.meta.profile == self._label else None
        aging = None if forest is None else forest.status().aging
        self._retention_ms = None if aging is None else aging.retention_ms
        self._live_since_ms = (
            NO_TIME if self._forest is None or aging is None else self._forest.status().live_since_ms(aging)
        )
        self._with_fingerprint = functools.cache(self._find_text)

    def explain(
        self,
        one: StoredText,
        other: StoredText,
        *,
        forest: str,
        forest_missing: str | None,
        learned_missing: str | None,
    ) -> IndexedExplanation:
        """Compare two articles, and explain their clusters.

        Args:
            one: The first article.
            other: The second article; may be the same.
            forest: The name of the forest.
            forest_missing: Why the forest could not be read; None if it was.
            learned_missing: Why what it has learned could not be read; None if it was.
        """
        comparison = self._explainer.explain(
            one.text,
            other.text,
            sites=(one.site, other.site),
            decided=(self._decided_by(one), self._decided_by(other)),
        )
        states = self._state(one, other), self._state(other, one)
        gap_ms = None if one.seen_ms is None or other.seen_ms is None else abs(one.seen_ms - other.seen_ms)
        return IndexedExplanation(
            comparison=comparison,
            one=states[0],
            other=states[1],
            forest=forest,
            forest_missing=forest_missing,
            learned_missing=learned_missing,
            retention_days=None if self._retention_ms is None else round(self._retention_ms / DAY_MS, 3),
            same_cluster=one.root is not None and one.root == other.root,
            outcome=outcome(
                comparison,
                *states,
                gap_ms=gap_ms,
                retention_ms=self._retention_ms,
            ),
        )

    def _state(self, article: StoredText, other: StoredText) -> ArticleState:
        is_comparable = article.profile == self._label
        has_node = is_comparable and self._forest is not None and article.fingerprint is not None
        ids = {each for each in (article.fingerprint, article.root) if each is not None}
        nodes = (
            {node.id: node for node in self._forest.run(self._forest.search.by_id(ids))}
            if self._forest
            else {}
        )
        node = nodes.get(article.fingerprint or "")
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
            stays_without=self._stays_without(article) if is_comparable else None,
            node=self._node_state(node) if has_node else None,
            indexed=None if node is None else self._indexed(node),
            node_root=node and node.root,
            node_seq=node and node.seq,
            root_node=self._node_state(nodes.get(article.root or "")) if has_node else None,
            live_leaves=self._count_live_leaves(article.root) if has_node else None,
            to_root=self._compare_with_root(article, article.root),
            to_other_root=self._compare_with_root(
                article, other.root if other.root != article.root else None
            ),
            neighbour=self._first_neighbour(node),
        )

    def _text_is_same(self, article: StoredText) -> bool:
        """Return whether an article has the text that it had when it arrived."""
        # Its fingerprint is its node's, which the same text need not have now.
        return page_name(self._explainer.page(article.text)) == (article.page or "")

    def _stays_without(self, article: StoredText) -> bool | None:
        """Return whether the page of an article without a fingerprint is remembered as such a one."""
        if self._forest is None or article.fingerprint is not None:
            return None
        pages = self._forest.run(self._forest.search.pages([article.page] if article.page else []))
        return any(page.node is None and page.seen_ms >= self._live_since_ms for page in pages.values())

    def _decided_by(self, article: StoredText) -> Decided | None:
        """Return by what it was decided about the present text of an article.

        None if that is not known: its text has changed, or it was indexed with another profile.
        """
        if article.profile != self._label or not self._text_is_same(article):
            return None
        if article.fingerprint is None:
            return Decided(None)
        is_whole = len(article.signature) == self._relation.dtype.itemsize
        return Decided(signatures_of([article], self._relation)) if is_whole else None

    def _node_state(self, node: StoredNode | None) -> NodeState:
        if node is None:
            return "gone"
        return "live" if node.seen_ms >= self._live_since_ms else "expired"

    def _indexed(self, node: StoredNode) -> tuple[str, ...]:
        signature = signatures_of([node], self._relation)
        return tuple(to_hex(self._relation.representatives(signature)[self._relation.indexed(signature)]))

    def _count_live_leaves(self, root: str | None) -> int | None:
        if self._forest is None or root is None:
            return None
        return self._forest.run(self._forest.search.count(live_leaves([root], self._live_since_ms)))

    def _compare_with_root(self, article: StoredText, root: str | None) -> RootComparison | None:
        """Compare an article with a root, by their texts if an article still has the root's text."""
        if root is None or article.fingerprint is None or root == article.fingerprint:
            return None
        if article.profile != self._label or len(article.signature) != self._relation.dtype.itemsize:
            return None
        holder = self._with_fingerprint(root)
        decided = None if holder is None else self._decided_by(holder), self._decided_by(article)
        if holder is not None and decided[0] is not None and decided[1] is not None:
            sites = holder.site, article.site
            found = self._explainer.explain(holder.text, article.text, sites=sites, decided=decided)
            if found.one.fingerprint == root and found.nearest is not None:
                return RootComparison(
                    root=root,
                    article=holder.id,
                    nearest_bits=found.nearest.distance_bits,
                    whole_texts=found.whole_texts,
                    may_join=found.may_join,
                )
        node = next(iter(self._forest.run(self._forest.search.by_id([root]))), None) if self._forest else None
        # A recreated root has the signature of a leaf: its own text is unknown.
        if node is None or self._relation.ids(signatures_of([node], self._relation)) != [root]:
            return None
        return self._by_signatures(article, node)

    def _by_signatures(self, article: StoredText, root: StoredNode) -> RootComparison:
        one, other = (signatures_of([each], self._relation) for each in (article, root))
        mine, theirs = (self._relation.representatives(each)[0] for each in (one, other))
        rules = self._explainer.profile.agreement
        return RootComparison(
            root=root.id,
            article=None,
            nearest_bits=int(distances_bits(mine[:, None], theirs[None, :], self._relation).min()),
            whole_texts=None if rules is None else compare_whole_texts(other, one, rules),
            may_join=bool(self._relation.may_join(one, other)[0]),
        )

    def _first_neighbour(self, node: StoredNode | None) -> Neighbour | None:
        """Find the earliest neighbour of a leaf in its tree, one that is older than the leaf if possible."""
        if self._forest is None or node is None or node.is_root:
            return None
        signature = signatures_of([node], self._relation)
        found = self._forest.run(self._forest.search.candidates(signature, live_since_ms=NO_TIME))
        tree = NodeCache(self._relation)
        tree.put(each for each in found if each.root == node.root and each.id != node.id)
        neighbours = tree.find_pairs(signature)[1]
        if not neighbours:
            return None
        first = min(neighbours, key=lambda each: (each.seq > node.seq, each.seq))
        holder = self._with_fingerprint(first.id)
        return Neighbour(fingerprint=first.id, article=None if holder is None else holder.id)

    def _find_text(self, fingerprint: str) -> StoredText | None:
        try:
            return self._texts.by_fingerprint([fingerprint])
        except ArticleRejected:
            return None
