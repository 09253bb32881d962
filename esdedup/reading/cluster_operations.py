"""What a reader can ask about a cluster, or about a fingerprint, as generators: see `operations`."""

from collections.abc import Sequence
from typing import get_args

from esdedup.elastic.requests import Requests
from esdedup.errors import SettingError
from esdedup.reading import articles, sources, versions
from esdedup.reading.cluster_members import (
    articles_of_cluster,
    articles_with_fingerprint,
    similar_to_article,
)
from esdedup.reading.explanation import explain_articles
from esdedup.reading.included import including
from esdedup.reading.paging import Paging
from esdedup.reading.results import SimilarPage, SourcesPage, Timeline
from esdedup.reading.text_operations import TextOperations
from esdedup.reading.verdict import IndexedExplanation
from esdedup.reading.version_results import TimeOrder, VersionsPage


class ClusterOperations(TextOperations):
    """The operations on the articles of one cluster."""

    def cluster(
        self,
        index: str,
        root: str,
        *,
        source_includes: Sequence[str] = (),
        page: int = 1,
        size: int = 20,
        after: str | None = None,
    ) -> Requests[SimilarPage]:
        """Return the articles of a cluster, newest first.

        Args:
            index: An index, alias or pattern.
            root: The cluster's root.
            source_includes: Names of further fields of the articles, which each row then has in `included`;
                at most 20.
            page: From 1; `page` times `size` is at most 10,000.
            size: Articles on a page, at most 1,000.
            after: The cursor `next` of the previous page, in place of `page`; cursors reach any depth.

        Returns:
            A page without articles if none has this root; how similar they are is not computed.

        Raises:
            SettingError: A value is invalid, or the page lies too deep.
            IndexNotReady: The index is missing, or lacks the fields.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        paging = Paging(page=page, size=size, after=after)
        found = articles_of_cluster(self._scope, index, root, paging=paging)
        return including(found, index, source_includes)

    def explain(
        self,
        index: str,
        one_id: str,
        other_id: str,
        *,
        in_index: str | None = None,
        other_in_index: str | None = None,
    ) -> Requests[IndexedExplanation]:
        """Explain why two articles are in one cluster or not.

        Each is compared by the profile that it was indexed with, and by the signature with which it was
        decided, while its text is the same. If the forest is missing, the explanation uses the index alone.
        `Maintenance.explain` also makes sure that the forest is that of the index.

        Args:
            index: An index, alias or pattern; if several articles have one id, the last to arrive counts.
            one_id: The id of the first article.
            other_id: The id of the second article; may be the same.
            in_index: The index to take the first from, if several have that id.
            other_in_index: The same for the second.

        Raises:
            ArticleNotFound: No article has that id.
            ArticleRejected: An article has no text.
            IndexNotReady: The index is missing, or lacks the fields.
            SettingError: The articles' profile is unknown, or the name of the index or an id is empty.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        return explain_articles(
            self._scope,
            index,
            one_id,
            other_id,
            in_index=in_index,
            other_in_index=other_in_index,
            learned=self._learned,
        )

    def similar(
        self,
        index: str,
        article_id: str,
        *,
        in_index: str | None = None,
        other_sources: bool = False,
        source_includes: Sequence[str] = (),
        page: int = 1,
        size: int = 20,
        after: str | None = None,
    ) -> Requests[SimilarPage]:
        """Return the other articles of an article's cluster, newest first.

        Args:
            index: An index, alias or pattern.
            article_id: The article's id. If several indices have it, the article that arrived last.
            in_index: The index to take it from, if several have that id.
            other_sources: Leave out articles from the article's own source.
            source_includes: Names of further fields of the articles, which each row then has in `included`;
                at most 20.
            page: From 1; `page` times `size` is at most 10,000.
            size: Articles on a page, at most 1,000.
            after: The cursor `next` of the previous page, in place of `page`; cursors reach any depth.

        Raises:
            ArticleNotFound: No article has that id, or it has no root.
            SettingError: A value is invalid, or the page lies too deep.
            IndexNotReady: The index is missing, or lacks the fields.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        found = similar_to_article(
            self._scope,
            index,
            article_id,
            in_index=in_index,
            other_sources=other_sources,
            paging=Paging(page=page, size=size, after=after),
        )
        return including(found, index, source_includes)

    def sources(
        self,
        index: str,
        article_id: str,
        *,
        in_index: str | None = None,
        other_sources: bool = False,
        page: int = 1,
        size: int = 20,
    ) -> Requests[SourcesPage]:
        """Return the sources in an article's cluster, those with the most articles first.

        The article itself is not counted.

        Args:
            index: An index, alias or pattern.
            article_id: The article's id. If several indices have it, the article that arrived last.
            in_index: The index to take it from, if several have that id.
            other_sources: Leave out the article's own source.
            page: From 1; `page` times `size` is at most 10,000.
            size: Sources on a page, at most 1,000.

        Raises:
            ArticleNotFound: No article has that id, or it has no root.
            SettingError: A value is invalid, or the source field is text, which cannot be grouped by.
            IndexNotReady: The index is missing, or lacks the fields.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        return sources.sources(
            self._scope,
            index,
            article_id,
            in_index=in_index,
            other_sources=other_sources,
            paging=Paging(page=page, size=size),
        )

    def versions(
        self,
        index: str,
        article_id: str,
        *,
        in_index: str | None = None,
        other_sources: bool = False,
        sort: TimeOrder = "oldest",
        page: int = 1,
        size: int = 20,
    ) -> Requests[VersionsPage]:
        """Return the distinct texts of an article's cluster: who was first with each, and who copied it.

        The article itself is among them. Articles with the same fingerprint are one version.

        Args:
            index: An index, alias or pattern.
            article_id: The article's id. If several indices have it, the article that arrived last.
            in_index: The index to take it from, if several have that id.
            other_sources: Leave out articles from the article's own source, and so the article itself.
            sort: ``oldest``: in the order in which the texts appeared, each shown by its first article;
                ``newest``: the text with the latest article first, each shown by that article.
            page: From 1; `page` times `size` is at most 10,000.
            size: Versions on a page, at most 1,000.

        Raises:
            ArticleNotFound: No article has that id, or it has no root.
            SettingError: A value is invalid, or the page lies too deep.
            IndexNotReady: The index is missing, or lacks the fields.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        if sort not in get_args(TimeOrder):
            raise SettingError(f"there is no sort {sort!r} of versions: oldest or newest")
        return versions.versions(
            self._scope,
            index,
            article_id,
            in_index=in_index,
            other_sources=other_sources,
            sort=sort,
            paging=Paging(page=page, size=size),
        )

    def timeline(self, index: str, root: str) -> Requests[Timeline]:
        """Return how many articles of a cluster were published when, in at most 48 steps of equal length.

        Also who published it first, and who most often.

        Args:
            index: An index, alias or pattern.
            root: The cluster's root.

        Raises:
            SettingError: The root or the name of the index is empty.
            IndexNotReady: The index is missing, or lacks the fields.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        return articles.timeline(self._scope, index, root)

    def with_fingerprint(
        self,
        index: str,
        fingerprint: str,
        *,
        source_includes: Sequence[str] = (),
        page: int = 1,
        size: int = 20,
        after: str | None = None,
    ) -> Requests[SimilarPage]:
        """Return the articles with a fingerprint, newest first: the same text, as far as it is compared.

        They are in one cluster, unless the forest had forgotten the text before it came again, or they
        belong to several forests.

        Args:
            index: An index, alias or pattern.
            fingerprint: As the articles have it; it is also the id of their node.
            source_includes: Names of further fields of the articles, which each row then has in `included`;
                at most 20.
            page: From 1; `page` times `size` is at most 10,000.
            size: Articles on a page, at most 1,000.
            after: The cursor `next` of the previous page, in place of `page`; cursors reach any depth.

        Returns:
            A page without articles if none has this fingerprint; how similar they are is not computed.

        Raises:
            SettingError: A value is invalid, or the page lies too deep.
            IndexNotReady: The index is missing, or lacks the fields.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        paging = Paging(page=page, size=size, after=after)
        found = articles_with_fingerprint(self._scope, index, fingerprint, paging=paging)
        return including(found, index, source_includes)
