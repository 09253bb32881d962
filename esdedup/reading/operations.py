"""Everything that a reader can do, each operation once.

An operation is a generator: it yields requests, is sent their answers, and returns its result. `Reader`
and `AsyncReader` have these methods under the same names; there they return the result itself.
"""

from collections.abc import Mapping, Sequence

from esdedup.elastic.requests import Query, Requests
from esdedup.fields import Fields
from esdedup.reading import articles, sources
from esdedup.reading.choices import Values
from esdedup.reading.cluster_operations import ClusterOperations
from esdedup.reading.included import including, including_in_article
from esdedup.reading.list_request import Counting, Head, ListRequest, Only, Sort, default_sort
from esdedup.reading.lists import list_rows
from esdedup.reading.overview import overview
from esdedup.reading.overview_results import Overview
from esdedup.reading.paging import Paging
from esdedup.reading.queries import moment_ms
from esdedup.reading.results import FullArticle, Page
from esdedup.reading.search_form import SearchForm, search_query


class Operations(ClusterOperations):
    """The operations on the articles of one scope, and on texts that need not be indexed."""

    def article(
        self, index: str, article_id: str, *, in_index: str | None = None, source_includes: Sequence[str] = ()
    ) -> Requests[FullArticle]:
        """Return one article with its text.

        Args:
            index: An index, alias or pattern.
            article_id: The article's id. If several indices have it, the article that arrived last.
            in_index: The index to take it from, if several have that id.
            source_includes: Names of its further fields, which it then has in `included`; at most 20.

        Raises:
            ArticleNotFound: No article has that id, or it has no root.
            SettingError: The id or the index is empty, no index can have the name `in_index`, or no field one
                of `source_includes`.
            IndexNotReady: The index is missing, or lacks the fields.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        found = articles.article(self._scope, index, article_id, in_index=in_index)
        return including_in_article(found, index, source_includes)

    def fields(self, index: str) -> Requests[Fields]:
        """Return the names of the fields of an index's articles: those given, else those that it keeps.

        `setup` makes an index keep them. One that keeps none has the usual names, those of ``Fields()``.

        Args:
            index: An index, alias or pattern.

        Raises:
            IndexNotReady: The index is missing, or there are several that keep different names.
            SettingError: The name of the index is empty.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        return self._scope.fields_of(index)

    def list(
        self,
        index: str,
        *,
        query: Query | None = None,
        sort: Sort | None = None,
        head: Head | None = None,
        counting: Counting = "similar",
        only: Only | None = None,
        dedup: bool = True,
        details: bool = False,
        arrived_since: str | None = None,
        source_includes: Sequence[str] = (),
        page: int = 1,
        size: int = 20,
        after: str | None = None,
    ) -> Requests[Page]:
        """Return a page of the list with dedup: one row for each cluster with a matching article.

        The counts of a row are exact on any number of shards and indices. The order by count is exact on
        one shard, and on several shards of one index with articles routed by root. An alias of several
        indices loses that guarantee, since a cluster may lie in more than one of them. Otherwise the
        order is exact if the shards' answers prove it; `Page.order_exact` says whether it is.

        Args:
            index: An index, alias or pattern.
            query: Any query of Elasticsearch; None for all articles.
            sort: What decides a row's position: its best match (``relevance``), its newest or oldest match,
                or a count. None: ``relevance`` if the query ranks articles (has words, not only
                filters) and `only` is not given, else ``newest``.
            head: Which match a row shows: the ``best``, the ``newest``, the ``earliest`` (the
                original) or the ``longest``. None: the one that decides the row's position; for
                counts, the newest.
            counting: What the sorts by count compare: all articles of a cluster (``similar``), or those
                that match the query (``matching``); with other sorts, only ``similar`` is accepted.
            only: Show only rows with ``similar`` articles, or only rows of ``single`` articles; needs a sort
                by time.
            dedup: False gives each article a row of its own, with the same counts.
            details: Also return what a row unfolds to: some lines of its text, with the searched words
                marked, and of its cluster the earliest, the latest and the most different article, the
                largest sources, and its spread over time. That takes two more requests, whatever the number
                of rows.
            arrived_since: Also count the articles that arrived after this moment, ISO 8601: those of each
                row's cluster, and all that match. With `backfill` an article arrived when it was published.
            source_includes: Names of further fields of the articles, which each row then has in `included`;
                at most 20.
            page: From 1; `page` times `size` is at most 10,000.
            size: Rows on a page, at most 1,000.
            after: The cursor `next` of the previous page, in place of `page`. With sorts by
                time, cursors reach any depth.

        Raises:
            SettingError: A value is invalid, two contradict each other, or the page lies too deep.
            IndexNotReady: The index is missing, or lacks the fields.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        request = ListRequest(
            index=index,
            query=query,
            sort=default_sort(query, only=only) if sort is None else sort,
            head=head,
            counting=counting,
            only=only,
            dedup=dedup,
            details=details,
            arrived_since_ms=moment_ms(arrived_since),
            paging=Paging(page=page, size=size, after=after),
        )
        return including(list_rows(self._scope, request), index, source_includes)

    def search_query(
        self,
        index: str,
        words: str | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        source: Values | None = None,
        where: Mapping[str, Values] | None = None,
    ) -> Requests[Query | None]:
        """Return the query that a search form describes, for `list`; None if the form is empty.

        Args:
            index: An index, alias or pattern.
            words: All of them must be in the title or in the text; ``"a phrase"``, ``a | b``, ``-without``,
                ``begin*`` and ``(group)`` mean what they do in most search boxes. Nothing typed is an error.
            since: The first moment, inclusive, ISO 8601.
            until: The last moment, inclusive, ISO 8601; a day without a time lasts to its end.
            source: The exact name of a source, or of several: an article must have one of them.
            where: Values of further keyword fields, as for `source`, such as ``{"language": ["en", "zh"]}``;
                an article must have one in each of the fields. `overview` says which fields there are.

        Raises:
            SettingError: `since` or `until` is not a time; the source field is text, which cannot be matched
                exactly; or the index has no such keyword field.
            IndexNotReady: The index is missing, or lacks the fields that are searched.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        form = SearchForm(words=words, since=since, until=until, source=source, where=where)
        return search_query(self._scope, index, form)

    def overview(
        self,
        index: str,
        words: str | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        source: Values | None = None,
        where: Mapping[str, Values] | None = None,
        size: int = 10,
    ) -> Requests[Overview]:
        """Return what a search finds as a whole: articles over time, by source, by language and the like.

        Articles are counted, not rows. Those without a root are not. The counts of a field ignore what is
        chosen in that field, so that they say what another choice would find.

        Args:
            index: An index, alias or pattern.
            words: As for `search_query`, like all parameters but `size`.
            since: The first moment, inclusive, ISO 8601.
            until: The last moment, inclusive, ISO 8601; a day without a time lasts to its end.
            source: The exact names of chosen sources.
            where: Chosen values of further keyword fields.
            size: How many values of each field, those with the most articles, 1 to 1,000; chosen ones are
                returned in any case.

        Raises:
            SettingError: As for `search_query`; or the size is out of range.
            IndexNotReady: The index is missing, or lacks the fields that are searched.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        form = SearchForm(words=words, since=since, until=until, source=source, where=where)
        return overview(self._scope, index, form, size=size)

    def source_field(self, index: str) -> Requests[str | None]:
        """Return the field to match and count sources by, None if no such field can be aggregated.

        It is the source field, or its keyword subfield if the source field is mapped as text.

        Args:
            index: An index, alias or pattern.

        Raises:
            IndexNotReady: The index is missing, or lacks the fields.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        return sources.source_field(self._scope, index)

    def source_names(self, index: str, *, size: int = 200) -> Requests[tuple[str, ...]]:
        """Return the names of the sources with the most articles, in alphabetical order.

        Args:
            index: An index, alias or pattern.
            size: How many names at most, 1 to 65,536.

        Raises:
            SettingError: The size is out of range, or the name of the index is empty.
            IndexNotReady: The index is missing, or lacks the fields.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        return sources.source_names(self._scope, index, size=size)
