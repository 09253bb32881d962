"""The user's article indices: their fields, and the answers read from them."""

import dataclasses
from typing import Any

from elasticsearch import ApiError, Elasticsearch, NotFoundError

from esdedup import queries
from esdedup.elastic.errors import reason, translated
from esdedup.errors import ArticleNotFound, IndexNotReady, SettingError
from esdedup.fields import Fields, value_of
from esdedup.queries import Query, Sort
from esdedup.results import Article, Page, Row, SimilarPage
from esdedup.templates import article_index, dedup_properties


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Found:
    """The rows of a page, before their counts are known."""

    # The article that stands for each row.
    hits: list[dict[str, Any]]
    total_articles: int
    # About how many rows there are on all pages.
    estimated_rows: int
    order_exact: bool


class Articles:
    """Reads and prepares article indices. Needs no forest."""

    def __init__(self, client: Elasticsearch, *, fields: Fields) -> None:
        self._client = client
        self._fields = fields
        self._readable: set[str] = set()

    def setup(self, index: str) -> bool:
        """Give `index` the fields that esdedup writes; make it if there is none.

        Returns:
            Whether the index was made.

        Raises:
            IndexNotReady: It has a field of that name with another mapping.
            SettingError: No index can have that name.
        """
        queries.check_index_name(index)
        with translated(f"set up the index {index!r}"):
            if not self._client.indices.exists(index=index):
                self._client.indices.create(index=index, **article_index(self._fields))
                return True
            try:
                self._client.indices.put_mapping(index=index, properties=dedup_properties(self._fields.dedup))
            except ApiError as error:
                if error.meta.status != 400:
                    raise
                raise IndexNotReady(
                    f"cannot add the field {self._fields.dedup!r} to the index {index!r}: {reason(error)}. "
                    "If articles were indexed before the set-up, index them anew into a new index."
                ) from error
        return False

    def check(self, index: str) -> None:
        """Make sure that what is written to `index` will have the right mapping.

        An index that does not exist yet is judged by the templates that will make it.

        Raises:
            IndexNotReady: The fields are missing, or of another type; or it is an alias of several
                indices and none of them is the one to write to.
            SettingError: No index can have that name.
        """
        queries.check_index_name(index)
        with translated(f"read the mapping of the index {index!r}"):
            mappings = self._mappings(index)
            if not mappings:
                template = self._client.indices.simulate_index_template(name=index).get("template")
                if template is None:
                    raise IndexNotReady(f"there is no index {index!r}: make it with `esdedup setup {index}`")
                mappings = {index: template["mappings"]}
            if len(mappings) > 1:
                aliases = self._client.indices.get_alias(name=index)
                if not any(each["aliases"][index].get("is_write_index") for each in aliases.values()):
                    raise IndexNotReady(
                        f"{index!r} is an alias of {', '.join(sorted(mappings))}, "
                        "and none of them is the one to write to"
                    )
        self._check_mappings(mappings)

    def check_readable(self, index: str) -> None:
        """Make sure that every index behind the name has the fields: a list without it would be wrong.

        Raises:
            IndexNotReady: One lacks them, or there is none.
            SettingError: The name is empty.
        """
        if not index:
            raise SettingError("the name of the index is empty")
        if index not in self._readable:
            with translated(f"read the mapping of the index {index!r}"):
                mappings = self._mappings(index)
            if not mappings:
                raise IndexNotReady(f"there is no index {index!r}")
            self._check_mappings(mappings)
            self._readable.add(index)

    def _mappings(self, index: str) -> dict[str, dict[str, Any]]:
        """Return the mapping of each index behind a name; none where there is none."""
        try:
            answer = self._client.indices.get_mapping(index=index)
        except NotFoundError:
            return {}
        return {name: each["mappings"] for name, each in answer.items()}

    def _check_mappings(self, mappings: dict[str, dict[str, Any]]) -> None:
        name = self._fields.dedup
        wanted = dedup_properties(name)[name]["properties"]
        for index, mapping in mappings.items():
            found = mapping.get("properties", {}).get(name, {}).get("properties", {})
            wrong = [
                f"{name}.{field}"
                for field, how in wanted.items()
                if found.get(field, {}).get("type") != how["type"]
                or found[field].get("index") is False
                or (found[field].get("doc_values") is False and how.get("doc_values") is not False)
            ]
            if wrong:
                raise IndexNotReady(
                    f"the index {index!r} lacks fields of esdedup, or has them with another mapping: "
                    f"{', '.join(wrong)}. Run `esdedup setup {index}` before anything is indexed."
                )

    def list_rows(self, index: str, *, query: Query | None, sort: Sort, page: int, size: int) -> Page:
        """Answer a page of the list with dedup."""
        if sort not in queries.SORTS:
            raise SettingError(f"there is no sort {sort!r}; there are {', '.join(queries.SORTS)}")
        queries.check_page(page, size)
        self.check_readable(index)
        find = self._rows_by_count if sort.startswith("similar-") else self._rows_in_order
        found = find(index, query, sort, page, size)
        total_rows, exact = self._count_rows(index, query, found.estimated_rows)
        return Page(
            rows=self._rows(index, query, found.hits),
            total_rows=total_rows,
            total_rows_exact=exact,
            total_articles=found.total_articles,
            order_exact=found.order_exact,
            page=page,
            size=size,
            sort=sort,
        )

    def similar(self, index: str, article_id: str, *, page: int, size: int) -> SimilarPage:
        """Answer the other articles of an article's cluster.

        Raises:
            ArticleNotFound: No article has that id, or it has no root.
        """
        queries.check_page(page, size)
        if not article_id:
            raise SettingError("the id of the article is empty")
        self.check_readable(index)
        hits = self._search(index, queries.by_id(article_id, fields=self._fields))["hits"]["hits"]
        if not hits:
            raise ArticleNotFound(f"there is no article {article_id!r} in {index!r}")
        itself = hits[0]
        root = value_of(itself["_source"], self._fields.root)
        if root is None:
            raise ArticleNotFound(
                f"the article {article_id!r} in {index!r} has no root: it was indexed without esdedup; "
                "index it anew"
            )
        body = queries.similar(
            root, index=itself["_index"], article_id=article_id, page=page, size=size, fields=self._fields
        )
        found = self._search(index, body)["hits"]
        return SimilarPage(
            root=root,
            total=found["total"]["value"],
            articles=[Article(**self._article(hit)) for hit in found["hits"]],
            page=page,
            size=size,
        )

    def _rows_in_order(self, index: str, query: Query | None, sort: Sort, page: int, size: int) -> _Found:
        body = queries.list_rows(query, sort=sort, page=page, size=size, fields=self._fields)
        answer = self._search(index, body)
        return _Found(
            hits=answer["hits"]["hits"],
            total_articles=answer["hits"]["total"]["value"],
            estimated_rows=answer["aggregations"]["rows"]["value"],
            order_exact=True,
        )

    def _rows_by_count(self, index: str, query: Query | None, sort: Sort, page: int, size: int) -> _Found:
        matching = None if query is None else self._matching_roots(index, query)
        answer, order_exact = self._largest_clusters(index, matching, sort == "similar-desc", page * size)
        roots = [bucket["key"] for bucket in answer["aggregations"]["roots"]["buckets"]]
        on_page = roots[(page - 1) * size :]
        hits: list[dict[str, Any]] = []
        if on_page:
            heads = self._search(index, queries.heads(on_page, query=query, fields=self._fields))
            by_root = {self._root(hit): hit for hit in heads["hits"]["hits"]}
            hits = [by_root[root] for root in on_page if root in by_root]
        total = self._search(index, queries.count_articles(query, fields=self._fields))
        return _Found(
            hits=hits,
            total_articles=total["hits"]["total"]["value"],
            estimated_rows=answer["aggregations"]["rows"]["value"],
            order_exact=order_exact,
        )

    def _matching_roots(self, index: str, query: Query) -> list[str]:
        answer = self._search(index, queries.matching_roots(query, fields=self._fields))
        found = answer["aggregations"]["roots"]
        if found["sum_other_doc_count"]:
            raise SettingError(
                f"the query matches more than {queries.MAX_ROOTS:,} clusters, too many to sort by size: "
                "narrow the query, or sort by time or relevance"
            )
        return [bucket["key"] for bucket in found["buckets"]]

    def _largest_clusters(
        self, index: str, roots: list[str] | None, descending: bool, depth: int
    ) -> tuple[Any, bool]:
        """Answer the first roots by size, and whether their order is exact."""
        answer: Any = None
        # Several shards each know a part of every count: their own best ones do not tell the best.
        for from_shard in (None, queries.MAX_ROOTS):
            body = queries.largest_clusters(
                roots, descending=descending, depth=depth, fields=self._fields, from_shard=from_shard
            )
            answer = self._search(index, body)
            one_shard = answer["_shards"]["total"] == 1
            if one_shard or not answer["aggregations"]["roots"]["doc_count_error_upper_bound"]:
                return answer, True
        return answer, False

    def _count_rows(self, index: str, query: Query | None, estimate: int) -> tuple[int, bool]:
        # The estimate is off by a few in a hundred at the most here.
        if estimate > 1.1 * queries.EXACT_ROWS:
            return estimate, False
        answer = self._search(
            index, queries.count_rows(query, fields=self._fields), filter_path="aggregations.rows"
        )
        counted = int(answer["aggregations"]["rows"]["count"])
        return (counted, True) if counted <= queries.EXACT_ROWS else (estimate, False)

    def _rows(self, index: str, query: Query | None, hits: list[dict[str, Any]]) -> list[Row]:
        if not hits:
            return []
        roots = [self._root(hit) for hit in hits]
        body = queries.count_clusters(roots, query=query, fields=self._fields)
        buckets = self._search(index, body)["aggregations"]["roots"]["buckets"]
        counts = {
            bucket["key"]: (bucket["doc_count"] - 1, bucket["matching"]["doc_count"]) for bucket in buckets
        }
        return [
            Row(**self._article(hit), similar=counts[root][0], matching=counts[root][1])
            for hit, root in zip(hits, roots, strict=True)
        ]

    def _root(self, hit: dict[str, Any]) -> str:
        """Return the root of a hit of a collapsed search."""
        root: str = hit["fields"][self._fields.root][0]
        return root

    def _article(self, hit: dict[str, Any]) -> dict[str, Any]:
        source, fields = hit["_source"], self._fields
        title, link = value_of(source, fields.title), value_of(source, fields.link)
        return {
            "id": hit["_id"],
            "index": hit["_index"],
            "root": value_of(source, fields.root),
            "title": None if title is None else str(title),
            "published_at": value_of(source, fields.time),
            "source": value_of(source, fields.source),
            "url": None if link is None else str(link),
        }

    def _search(self, index: str, body: dict[str, Any], *, filter_path: str | None = None) -> Any:
        with translated(f"search the index {index!r}"):
            return self._client.options(request_timeout=60).search(
                index=index, body=body, filter_path=filter_path, allow_partial_search_results=False
            )
