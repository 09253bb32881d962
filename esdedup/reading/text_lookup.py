"""The similar articles of a text that is not indexed."""

from esdedup.elastic.forest.lookup import look_up
from esdedup.elastic.requests import Requests
from esdedup.errors import SettingError
from esdedup.fields import refuse_surrogates
from esdedup.forest import Kind
from esdedup.reading import cluster_bodies
from esdedup.reading.cluster_members import page_of
from esdedup.reading.list_request import check_paging
from esdedup.reading.results import SimilarPage
from esdedup.reading.scope import Scope
from esdedup.reading.similarity import Similarity


def similar_to_text(
    scope: Scope,
    index: str,
    text: str,
    *,
    page: int = 1,
    size: int = 20,
    after: str | None = None,
) -> Requests[SimilarPage]:
    """Return the articles of the cluster that a text would join, newest first.

    The forest decides as for an article that is fed now, without `backfill`, and changes nothing.

    Args:
        scope: Whose articles, of which forest.
        index: An index, alias or pattern.
        text: Need not be indexed.
        page: From 1; `page` times `size` is at most 10,000.
        size: Articles on a page, at most 1,000.
        after: The cursor `next` of the page before, in place of `page`.

    Returns:
        A page without a root where the text would begin a cluster of its own, or tells nothing.

    Raises:
        SettingError: A value makes no sense, or the page lies too deep.
        ArticleRejected: The text has half a character.
        ForestError: There is no forest, or of another profile.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses.
    """
    check_paging(page, size, after=after)
    if not isinstance(text, str):
        raise SettingError(f"the text is a {type(text).__name__}, not a string")
    refuse_surrogates(text, name="the text")
    yield from scope.ready(index)
    assignment = yield from look_up(text, forest=scope.forest, profile=scope.profile)
    if assignment.root is None or assignment.kind is Kind.NEW_ROOT:
        return SimilarPage(root=None, total=0, articles=[], page=page, size=size)
    query = cluster_bodies.others(assignment.root, fields=scope.fields)
    alike = Similarity(scope.profile, assignment.signature)
    of = [index, assignment.root]
    return (yield from page_of(scope, index, assignment.root, query, alike, of, page, size, after))
