"""The near-duplicate layer for Elasticsearch.

from elasticsearch import Elasticsearch, helpers
from esdedup import Dedup

es = Elasticsearch("http://localhost:9200")
with Dedup(es) as dedup:
    dedup.setup("news")
    helpers.bulk(es, dedup.enrich(actions))
    page = dedup.list("news", sort="similar-desc")
"""

from esdedup.dedup import Dedup
from esdedup.errors import (
    ArticleNotFound,
    ArticleRejected,
    EsdedupError,
    ForestBusy,
    ForestError,
    ForestLost,
    ForestMismatch,
    IndexNotReady,
    NodeError,
    ServerError,
    ServerUnavailable,
    SettingError,
)
from esdedup.explanation import Explanation, explain
from esdedup.fields import Fields
from esdedup.profile import CLASSIC, KEYWORDS, PROFILES, VERIFIED, Profile, get_profile
from esdedup.reader import AsyncReader, Reader
from esdedup.results import Article, Page, Row, SimilarArticle, SimilarPage, Source, SourcesPage
from esdedup.upkeep import Breach, BreachKind, Expired, IndexedExplanation, Stats, Upkeep
from esdedup.words import Tf, TfIdf, WordTable

__all__ = [
    "CLASSIC",
    "KEYWORDS",
    "PROFILES",
    "VERIFIED",
    "Article",
    "ArticleNotFound",
    "ArticleRejected",
    "AsyncReader",
    "Breach",
    "BreachKind",
    "Dedup",
    "EsdedupError",
    "Expired",
    "Explanation",
    "Fields",
    "ForestBusy",
    "ForestError",
    "ForestLost",
    "ForestMismatch",
    "IndexNotReady",
    "IndexedExplanation",
    "NodeError",
    "Page",
    "Profile",
    "Reader",
    "Row",
    "ServerError",
    "ServerUnavailable",
    "SettingError",
    "SimilarArticle",
    "SimilarPage",
    "Source",
    "SourcesPage",
    "Stats",
    "Tf",
    "TfIdf",
    "Upkeep",
    "WordTable",
    "explain",
    "get_profile",
]
