"""The near-duplicate layer for Elasticsearch.

from elasticsearch import Elasticsearch, helpers
from esdedup import Dedup

es = Elasticsearch("http://localhost:9200")
with Dedup(es) as dedup:
    dedup.setup("news")
    helpers.bulk(es, dedup.enrich(actions))
    page = dedup.list("news", sort="similar-desc")
"""

from esdedup.errors import (
    ArticleNotFound,
    ArticleRejected,
    EsdedupError,
    ForestBusy,
    ForestError,
    ForestExists,
    ForestIncomplete,
    ForestLost,
    ForestMismatch,
    ForestMissing,
    ForestOwner,
    IndexNotReady,
    NodeError,
    ServerError,
    ServerUnavailable,
    SettingError,
)
from esdedup.fields import Fields
from esdedup.fingerprint.profile import CLASSIC, KEYWORDS, PROFILES, VERIFIED, Profile, get_profile
from esdedup.ingest.dedup import Dedup
from esdedup.maintenance import Expired, IndexedExplanation, Maintenance, Stats, Violation, ViolationKind
from esdedup.neighbours.explainer import explain
from esdedup.neighbours.explanation import Explanation
from esdedup.reading.reader import AsyncReader, Reader
from esdedup.reading.results import Article, Page, Row, SimilarArticle, SimilarPage, Source, SourcesPage
from esdedup.text.words import Tf, TfIdf, WordTable

__all__ = [
    "CLASSIC",
    "KEYWORDS",
    "PROFILES",
    "VERIFIED",
    "Article",
    "ArticleNotFound",
    "ArticleRejected",
    "AsyncReader",
    "Dedup",
    "EsdedupError",
    "Expired",
    "Explanation",
    "Fields",
    "ForestBusy",
    "ForestError",
    "ForestExists",
    "ForestIncomplete",
    "ForestLost",
    "ForestMismatch",
    "ForestMissing",
    "ForestOwner",
    "IndexNotReady",
    "IndexedExplanation",
    "Maintenance",
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
    "Violation",
    "ViolationKind",
    "WordTable",
    "explain",
    "get_profile",
]
