"""The near-duplicate layer for Elasticsearch.

from elasticsearch import Elasticsearch, helpers
from esdedup import Dedup

es = Elasticsearch("http://localhost:9200")
with Dedup(es) as dedup:
    dedup.setup("news")
    helpers.bulk(es, dedup.enrich(actions))
    page = dedup.list("news", sort="similar-desc")
"""

import importlib
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
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

# Imported when first used: the client of Elasticsearch alone takes a second of a slow machine.
_MODULES = {
    "CLASSIC": "esdedup.fingerprint.profile",
    "KEYWORDS": "esdedup.fingerprint.profile",
    "PROFILES": "esdedup.fingerprint.profile",
    "VERIFIED": "esdedup.fingerprint.profile",
    "Article": "esdedup.reading.results",
    "AsyncReader": "esdedup.reading.reader",
    "Dedup": "esdedup.ingest.dedup",
    "Expired": "esdedup.maintenance",
    "Explanation": "esdedup.neighbours.explanation",
    "Fields": "esdedup.fields",
    "IndexedExplanation": "esdedup.maintenance",
    "Maintenance": "esdedup.maintenance",
    "Page": "esdedup.reading.results",
    "Profile": "esdedup.fingerprint.profile",
    "Reader": "esdedup.reading.reader",
    "Row": "esdedup.reading.results",
    "SimilarArticle": "esdedup.reading.results",
    "SimilarPage": "esdedup.reading.results",
    "Source": "esdedup.reading.results",
    "SourcesPage": "esdedup.reading.results",
    "Stats": "esdedup.maintenance",
    "Tf": "esdedup.text.words",
    "TfIdf": "esdedup.text.words",
    "Violation": "esdedup.maintenance",
    "ViolationKind": "esdedup.maintenance",
    "WordTable": "esdedup.text.words",
    "explain": "esdedup.neighbours.explainer",
    "get_profile": "esdedup.fingerprint.profile",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
