"""One article with its text."""

from collections.abc import Sequence

from esdedup.elastic.names import check_index_name
from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import ArticleNotFound, SettingError
from esdedup.fields import Fields, as_text, term_of, terms_of, value_of
from esdedup.reading.hits import Hit, fields_read, values_of, with_signature
from esdedup.reading.included import check_names, including_in_article
from esdedup.reading.queries import by_id, with_text
from esdedup.reading.results import FullArticle
from esdedup.reading.scope import Scope
from esdedup.sites import site_fields, site_of


def article(
    scope: Scope,
    index: str,
    article_id: str,
    *,
    in_index: str | None = None,
    source_includes: Sequence[str] = (),
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
    check_names(source_includes)
    fields = (yield from scope.ready(index)).fields
    hit = yield from find_article(fields, index, article_id, in_index=in_index, has_text=True)
    source = hit["_source"]
    text, seq = value_of(source, fields.text), value_of(source, fields.seq)
    found = FullArticle(
        **values_of(hit, fields),
        text=as_text(text) or "",
        site=site_of(source, fields),
        fingerprint=term_of(source, fields.fingerprint),
        bands=terms_of(source, f"{fields.dedup}.bands"),
        profile=term_of(source, f"{fields.dedup}.profile"),
        seq=seq if isinstance(seq, int) else None,
    )
    return (yield from including_in_article(found, index, source_includes))


def find_article(
    fields: Fields, index: str, article_id: str, *, in_index: str | None = None, has_text: bool = False
) -> Requests[Hit]:
    """Find an article with a root, in an index that is ready, with its signature and on demand its text.

    Raises:
        ArticleNotFound: No article has that id, or it has no root.
        SettingError: The id is empty, or no index can have the name of its index.
    """
    if not article_id:
        raise SettingError("the id of the article is empty")
    if in_index is not None:
        # A remote cluster's name stands before a colon.
        check_index_name(in_index.rpartition(":")[2])
    body = one_article(article_id, fields=fields, in_index=in_index, has_text=has_text)
    (answer,) = yield from search(index, body)
    hits: list[Hit] = answer["hits"]["hits"]
    if not hits:
        raise ArticleNotFound(
            f"there is no article {article_id!r} in {index!r}", article=article_id, index=index
        )
    if not term_of(hits[0]["_source"], fields.root):
        raise ArticleNotFound(
            f"the article {article_id!r} in {index!r} has no root: it was not indexed through esdedup; "
            "index it again",
            article=article_id,
            index=index,
        )
    return hits[0]


def one_article(
    article_id: str, *, fields: Fields, in_index: str | None = None, has_text: bool = False
) -> Query:
    """Return the search for one article; the last to arrive if several have the id.

    Its text may be long, and is read only with `has_text`.
    """
    whole = dict.fromkeys((*fields_read(fields), *with_text(fields), *site_fields(fields)))
    read = list(whole) if has_text else with_signature(fields)
    body = by_id(article_id, fields=fields) | {"_source": read}
    if in_index is not None:
        body["query"] = {"bool": {"filter": [body["query"], {"term": {"_index": in_index}}]}}
    return body
