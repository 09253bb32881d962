"""What a reader can ask about a text that need not be indexed: the forest decides as for an arrival."""

import dataclasses
from collections.abc import Sequence

from esdedup.boilerplate.pins import NO_PINS, Pins, refuse_useless
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.forest.lookup import look_up, what_is_left_out
from esdedup.elastic.names import DEFAULT_FOREST, check_index_name
from esdedup.elastic.requests import Requests
from esdedup.errors import SettingError
from esdedup.fields import refuse_surrogates
from esdedup.fingerprint.profile import DEFAULT, Profile
from esdedup.forest import Kind
from esdedup.reading.articles import check_names
from esdedup.reading.clusters import SimilarArticles, others
from esdedup.reading.paging import Paging
from esdedup.reading.results import SimilarPage
from esdedup.reading.scope import Scope
from esdedup.reading.similarity import Similarity
from esdedup.sites import site_name
from esdedup.text.left_out import LeftOut, left_out


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestScope(Scope):
    """A reader's configuration, with what assigns a text that is not indexed: forest, profile and pins.

    Raises:
        SettingError: The forest's name cannot name one index; or the pins would have no effect.
    """

    forest: str = DEFAULT_FOREST
    profile: Profile = DEFAULT
    pins: Pins = NO_PINS
    # A copy of what the forest has learned, read when first needed.
    learned: LearnedCopy = dataclasses.field(default_factory=LearnedCopy, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_index_name(self.forest)
        refuse_useless(self.pins, keep_boilerplate=self.profile.keep_boilerplate)


def similar_to_text(
    scope: ForestScope,
    index: str,
    text: str,
    *,
    site: str | None = None,
    source_includes: Sequence[str] = (),
    page: int = 1,
    size: int = 20,
    after: str | None = None,
) -> Requests[SimilarPage]:
    """Return the articles of the cluster that a text would join if it arrived now, newest first.

    The forest decides as it does for an article that is fed without `backfill`. Nothing is written.

    Args:
        index: An index, alias or pattern.
        text: Any text, indexed or not.
        site: The site that it comes from, a name or an address, for the pins of that site.
        source_includes: Names of further fields of the articles, which each row then has in `included`;
            at most 20.
        page: From 1; `page` times `size` is at most 10,000.
        size: Articles on a page, at most 1,000.
        after: The cursor `next` of the previous page, in place of `page`; cursors reach any depth.

    Returns:
        A page whose root is None if the text would start a cluster of its own, or would get no
        fingerprint.

    Raises:
        SettingError: A value is invalid, or the page lies too deep.
        ArticleRejected: The text contains a lone surrogate (half a character).
        ForestError: There is no forest, or it has another profile.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses the request.
    """
    _check_text(text)
    paging = Paging(page=page, size=size, after=after)
    check_names(source_includes)
    fields = (yield from scope.ready(index)).fields
    profile, name = scope.profile, None if site is None else site_name(site)
    assignment, is_exact = yield from look_up(
        text,
        index=index,
        fields=fields,
        forest=scope.forest,
        profile=profile,
        learned=scope.learned,
        pins=scope.pins,
        site=name,
    )
    omitted = None
    if not profile.keep_boilerplate:
        omitted = left_out(text, scope.learned.omit_on(scope.pins)(name), max_length=profile.max_text_length)
    if assignment.root is None or assignment.kind is Kind.NEW_ROOT:
        return SimilarPage(
            root=None, root_exact=is_exact, total=0, rows=(), page=page, size=size, left_out=omitted
        )
    members = SimilarArticles(
        index=index,
        fields=fields,
        root=assignment.root,
        query=others(assignment.root, fields=fields),
        similarity=Similarity(profile, assignment.signature),
        identity=[index, assignment.root],
    )
    found = yield from members.page(paging, source_includes)
    return found.model_copy(update={"left_out": omitted, "root_exact": is_exact})


def left_out_of_text(
    scope: ForestScope, text: str, *, site: str | None = None, is_fresh: bool = True
) -> Requests[LeftOut]:
    """Return what the forest leaves out of a text as boilerplate.

    Nothing is left out if the profile keeps boilerplate. A copy of what the forest has learned stays in
    memory (``python -m benchmarks boilerplate`` measures it); each call then asks by one short request
    whether there is more.

    Args:
        text: Any text, indexed or not, with or without markup.
        site: The site that it comes from, a name or an address, for the pins of that site.
        is_fresh: Read what the forest has learned since the last time; if not, what was read counts.

    Raises:
        SettingError: The text is not a string.
        ArticleRejected: The text contains a lone surrogate (half a character).
        ForestError: There is no forest, or it has another profile.
        ServerError: Elasticsearch does not answer, or refuses the request.
    """
    _check_text(text)
    return what_is_left_out(
        text,
        forest=scope.forest,
        profile=scope.profile,
        learned=scope.learned,
        pins=scope.pins,
        site=None if site is None else site_name(site),
        is_fresh=is_fresh,
    )


def _check_text(text: str) -> None:
    """Refuse what cannot be looked up."""
    if not isinstance(text, str):
        raise SettingError(f"the text is a {type(text).__name__}, not a string")
    refuse_surrogates(text, name="the text")
