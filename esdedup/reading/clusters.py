"""Pages of similar articles: in a cluster, with a given fingerprint, or similar to a given text.

The given text need not be indexed: it is assigned to a cluster like an arriving article.
"""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides, refuse_useless
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.forest.lookup import look_up, what_is_left_out
from esdedup.elastic.meta import forest_of
from esdedup.elastic.names import DEFAULT_FOREST, check_index_name
from esdedup.elastic.requests import Query, Requests, aggregate
from esdedup.errors import SettingError
from esdedup.fields import Fields, refuse_surrogates, signature_of, value_of
from esdedup.fingerprint.agreement import Comparison
from esdedup.fingerprint.profile import DEFAULT, Profile, profile_labelled
from esdedup.forest import Kind
from esdedup.reading import queries
from esdedup.reading.articles import ArticleId, InIndex, find_article, including
from esdedup.reading.excerpts import linked_roots, search_with_excerpts
from esdedup.reading.paging import After, PageNumber, PageSize, Paging, SourceIncludes
from esdedup.reading.queries import Hit
from esdedup.reading.results import SimilarArticle, SimilarPage
from esdedup.reading.scope import CheckedIndex, IndexName, Scope, mappings_of
from esdedup.sites import site_name
from esdedup.text.left_out import LeftOut
from esdedup.text.parsed import left_out

OtherSources = Annotated[bool, "Leave out articles from the article's own source."]


@dataclasses.dataclass(frozen=True)
class Similarity:
    """Compares articles with a text by its profile and signature; None or an empty one compares nothing."""

    _profile: Profile | None
    _signature: bytes

    @classmethod
    def to(cls, hit: Hit, fields: Fields) -> "Similarity":
        """Compare with the article of a hit, unless this version of esdedup does not know its profile."""
        label = value_of(hit["_source"], f"{fields.dedup}.profile")
        profile = profile_labelled(label) if isinstance(label, str) else None
        return cls(profile, signature_of(hit["_source"], fields))

    def articles(self, hits: list[Hit], fields: Fields) -> tuple[SimilarArticle, ...]:
        """Return the articles of hits, each with its similarity if that can be computed."""
        return tuple(
            SimilarArticle(**queries.values_of(hit, fields), **measure)
            for hit, measure in zip(hits, self.measures(hits, fields), strict=True)
        )

    def most_different(self, hits: list[Hit], fields: Fields) -> tuple[Hit, dict[str, Any]] | None:
        """Return the hit whose text differs most, and its similarity; None if no hit can be compared."""
        measured = [pair for pair in zip(hits, self.measures(hits, fields), strict=True) if pair[1]]
        # All measures use the same profile, so they are all resemblances or all distances.
        return min(
            measured,
            key=lambda pair: pair[1].get("resemblance", 0.0) - pair[1].get("distance_bits", 0),
            default=None,
        )

    def measures(self, hits: list[Hit], fields: Fields) -> list[dict[str, Any]]:
        """Return how similar each hit is, as values of `SimilarArticle`; empty if that cannot be computed."""
        measures: list[dict[str, Any]] = [{} for _ in hits]
        if self._profile is None or len(self._signature) != self._profile.signature_dtype.itemsize:
            return measures
        dtype, rules, label = self._profile.signature_dtype, self._profile.agreement, self._profile.label
        signatures = {
            at: signature
            for at, hit in enumerate(hits)
            if len(signature := signature_of(hit["_source"], fields)) == len(self._signature)
            and value_of(hit["_source"], f"{fields.dedup}.profile") == label
        }
        if signatures:
            one = np.frombuffer(self._signature * len(signatures), dtype)
            other = np.frombuffer(b"".join(signatures.values()), dtype)
            if rules is None:
                name, values = "distance_bits", np.bitwise_count(one ^ other).tolist()
            else:
                name, values = "resemblance", Comparison.of(one, other, rules).resemblance.round(4).tolist()
            for at, value in zip(signatures, values, strict=True):
                measures[at] = {name: value}
        return measures


_NOTHING = Similarity(None, b"")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestScope(Scope):
    """A reader's configuration, with the forest, profile and overrides that decide where a text belongs.

    Raises:
        SettingError: The forest's name is not a valid index name; or the overrides would have no effect.
    """

    # None means the forest named by the index, see `of_index`.
    given_forest: str | None = None
    profile: Profile = DEFAULT
    overrides: Overrides = NO_OVERRIDES
    # A copy of the learned boilerplate, read when first needed.
    learned: LearnedCopy = dataclasses.field(default_factory=LearnedCopy, compare=False, repr=False)
    _others: dict[str, "ForestScope"] = dataclasses.field(default_factory=dict, init=False, compare=False)

    def __post_init__(self) -> None:
        check_index_name(self.forest)
        refuse_useless(self.overrides, keep_boilerplate=self.profile.keep_boilerplate)

    @property
    def forest(self) -> str:
        """The name of the forest that is read."""
        return DEFAULT_FOREST if self.given_forest is None else self.given_forest

    def of_index(self, index: str) -> Requests["ForestScope"]:
        """Return this scope with the forest of an index; raises the same errors as `forest_of`."""
        mappings = self._set_up((yield from mappings_of(index)))
        name = forest_of(mappings, given=self.given_forest)
        other = dataclasses.replace(self, given_forest=name, learned=LearnedCopy())
        return self if name == self.forest else self._others.setdefault(name, other)


def cluster(
    scope: Scope,
    index: IndexName,
    root: str,
    *,
    source_includes: SourceIncludes = (),
    page: PageNumber = 1,
    size: PageSize = 20,
    after: After = None,
) -> Requests[SimilarPage]:
    """Return the articles of a cluster, newest first.

    Args:
        root: The cluster's root, or a root from before a migration or an edit; such a root stands for the
            cluster that now has most of its articles.

    Returns:
        A page without articles if no article has this root. Similarity is not computed.
    """
    paging = Paging(page=page, size=size, after=after, source_includes=source_includes)
    queries.check_term("root", root)
    ready = yield from scope.check(index)
    identity = [index, root]
    if ready.former_objects or ready.fields.cluster != ready.fields.root:
        root = yield from _current_root(ready, root)
    query = queries.articles_of_root(root, fields=ready.fields)
    return (yield from _similar_page(ready, query, paging, root=root, identity=identity))


def _current_root(ready: CheckedIndex, root: str) -> Requests[str]:
    """Return the root that most articles of a previous or current root have now."""
    for field in (
        ready.fields.cluster,
        ready.fields.root,
        *(f"{each}.root" for each in ready.former_objects),
    ):
        most = {"terms": {"field": ready.fields.cluster, "size": 1}}
        found = yield from aggregate(ready.index, {"term": {field: root}}, {"most": most})
        if buckets := found["most"]["buckets"]:
            return str(buckets[0]["key"])
    return root


def similar(
    scope: Scope,
    index: IndexName,
    article_id: ArticleId,
    *,
    in_index: InIndex = None,
    other_sources: OtherSources = False,
    source_includes: SourceIncludes = (),
    page: PageNumber = 1,
    size: PageSize = 20,
    after: After = None,
) -> Requests[SimilarPage]:
    """Return the other articles of an article's cluster, newest first."""
    paging = Paging(page=page, size=size, after=after, source_includes=source_includes)
    ready = yield from scope.check(index)
    hit = yield from find_article(ready, article_id, in_index=in_index)
    return (
        yield from _similar_page(
            ready,
            other_articles(ready, hit, other_sources=other_sources),
            paging,
            **linked_roots(hit, ready.fields),
            identity=[index, article_id, in_index, other_sources],
            similarity=Similarity.to(hit, ready.fields),
        )
    )


def with_fingerprint(
    scope: Scope,
    index: IndexName,
    fingerprint: str,
    *,
    source_includes: SourceIncludes = (),
    page: PageNumber = 1,
    size: PageSize = 20,
    after: After = None,
) -> Requests[SimilarPage]:
    """Return the articles with the given fingerprint, that is, with the same text, newest first.

    These articles are in one cluster, unless they belong to several forests, or the node of the text had
    expired before the text arrived again.

    Args:
        fingerprint: The fingerprint as stored in the articles, which is also the id of their node.

    Returns:
        A page without articles if no article has this fingerprint. Similarity is not computed.
    """
    paging = Paging(page=page, size=size, after=after, source_includes=source_includes)
    queries.check_term("fingerprint", fingerprint)
    ready = yield from scope.check(index)
    query = queries.articles_with_fingerprint(fingerprint, fields=ready.fields)
    identity = [index, "fingerprint", fingerprint]
    return (yield from _similar_page(ready, query, paging, root=None, identity=identity))


def _similar_page(
    ready: CheckedIndex,
    query: Query,
    paging: Paging,
    *,
    root: str | None,
    identity: Sequence[Any],
    part_of: str | None = None,
    has_part: str | None = None,
    similarity: Similarity = _NOTHING,
) -> Requests[SimilarPage]:
    """Read a page of the matching articles, newest first; its cursors are valid for `identity` only."""
    fields, start = ready.fields, paging.start(identity, is_endless=True)
    body = queries.newest_first(query, start, size=paging.size, fields=fields)
    links = {"part_of": part_of, "has_part": has_part}
    (answer,), story = yield from search_with_excerpts(ready, body, root=root, **links)
    hits, total = answer["hits"]["hits"], answer["hits"]["total"]["value"]
    linked = linked_roots(hits[0], fields) if root is not None and hits else {}
    if not any(links.values()) and (linked.get("part_of") or linked.get("has_part")):
        _, story = yield from search_with_excerpts(ready, **linked | {"root": root})
    following = None
    if hits and start.offset + len(hits) < total:
        following = start.next(rows=len(hits), place=hits[-1]["sort"]).write(identity)
    found = SimilarPage(
        **story,
        total=total,
        rows=similarity.articles(hits, fields),
        page=start.page,
        size=paging.size,
        next=following,
    )
    return (yield from including(found, ready.index, paging.source_includes))


def similar_to_text(
    scope: ForestScope,
    index: IndexName,
    text: str,
    *,
    site: str | None = None,
    source_includes: SourceIncludes = (),
    page: PageNumber = 1,
    size: PageSize = 20,
    after: After = None,
) -> Requests[SimilarPage]:
    """Return the articles of the cluster that a text would join if it arrived now, newest first.

    The text is assigned like an article that is fed without `backfill`. Nothing is written.

    Args:
        text: Any text, indexed or not.
        site: The text's site, as a name or an address; the site's boilerplate is left out.

    Returns:
        A page of that cluster. Its root is None if the text would start a new cluster, or would get no
        fingerprint.

    Raises:
        ArticleRejected: The text contains a lone surrogate.
        ForestError: There is no forest, or it has another profile.
    """
    _check_text(text)
    paging = Paging(page=page, size=size, after=after, source_includes=source_includes)
    ready = yield from scope.check(index)
    scope = yield from scope.of_index(index)
    profile, name = scope.profile, None if site is None else site_name(site)
    assignment, is_exact = yield from look_up(
        text,
        index=ready.index,
        fields=ready.fields,
        forest=scope.forest,
        profile=profile,
        learned=scope.learned,
        overrides=scope.overrides,
        site=name,
    )
    root = None if assignment.kind is Kind.NEW_ROOT else assignment.root
    links = {"part_of": assignment.part_of, "has_part": assignment.has_part}
    found = SimilarPage(root=None, total=0, rows=(), page=page, size=size, not_set_up=ready.not_set_up)
    if root is not None:
        found = yield from _similar_page(
            ready,
            queries.articles_of_root(root, fields=ready.fields),
            paging,
            root=root,
            identity=[index, root],
            similarity=Similarity(profile, assignment.signature),
            **links,
        )
    elif any(links.values()):
        _, story = yield from search_with_excerpts(ready, root=assignment.root, **links)
        found = found.model_copy(update=story | {"root": None})
    text_left_out = None
    if not profile.keep_boilerplate:
        with scope.learned.filter_on(name, scope.overrides) as passage_filter:
            text_left_out = left_out(text, passage_filter, max_length=profile.max_text_length)
    return found.model_copy(update={"left_out": text_left_out, "root_exact": is_exact})


def left_out_of_text(
    scope: ForestScope, text: str, *, site: str | None = None, is_fresh: bool = True
) -> Requests[LeftOut]:
    """Return the passages that the forest leaves out of a text as boilerplate.

    Nothing is left out if the profile keeps boilerplate. A copy of the learned boilerplate stays in memory
    (``python -m benchmarks boilerplate`` measures it); by default, each call updates it with a request.

    Args:
        text: Any text, indexed or not, with or without markup.
        site: The text's site, as a name or an address; the site's boilerplate is left out.
        is_fresh: Update the copy first; if False, use it as it is.

    Raises:
        SettingError: The text is not a string.
        ArticleRejected: The text contains a lone surrogate.
        ForestError: There is no forest, or it has another profile.
    """
    _check_text(text)
    return (
        yield from what_is_left_out(
            text,
            forest=scope.forest,
            profile=scope.profile,
            learned=scope.learned,
            overrides=scope.overrides,
            site=None if site is None else site_name(site),
            is_fresh=is_fresh,
        )
    )


def _check_text(text: str) -> None:
    if not isinstance(text, str):
        raise SettingError(f"the text is a {type(text).__name__}, not a string")
    refuse_surrogates(text, name="the text")


def other_articles(ready: CheckedIndex, hit: Hit, *, other_sources: bool, with_itself: bool = False) -> Query:
    """Return the query for the other articles of an article's cluster; `with_itself` includes the article."""
    excluded: list[Query] = []
    source = value_of(hit["_source"], ready.fields.source) if other_sources else None
    if source is not None:
        field = ready.required_source_field()
        excluded.append({"terms": {field: source if isinstance(source, list) else [source]}})
    return queries.articles_of_root(
        queries.root_of(hit, ready.fields),
        fields=ready.fields,
        without=None if with_itself else queries.place_of(hit),
        excluded=excluded,
    )
