"""The near-duplicate layer for Elasticsearch.

from elasticsearch import Elasticsearch, helpers
from esdedup import Dedup

es = Elasticsearch("http://localhost:9200")
with Dedup(es) as dedup:
    dedup.setup("news")
    helpers.bulk(es, dedup.enrich(actions))
    page = dedup.list("news", sort="similar-desc")

This module also exports the types in the signatures of these names. The parts of larger results are in
`esdedup.maintenance` (for `Stats`, `BoilerplateBySite`, `Violation` and `IndexedExplanation`) and
`esdedup.neighbours.explanation` (for `Explanation`). `esdedup.web` has `create_app`. Everything else is
internal.

A name is imported when it is first used, so `import esdedup` alone costs nothing.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from esdedup.boilerplate.pins import Pin, Pins
    from esdedup.elastic.requests import Query
    from esdedup.errors import (
        ArticleNotFound,
        ArticleRejected,
        ClientForked,
        ClockMismatch,
        EsdedupError,
        FieldsNotFound,
        ForestAhead,
        ForestBusy,
        ForestDamaged,
        ForestError,
        ForestExists,
        ForestIncomplete,
        ForestLost,
        ForestMismatch,
        ForestMissing,
        ForestOwner,
        IndexBlocked,
        IndexNotReady,
        NodeError,
        ServerError,
        ServerUnavailable,
        SettingError,
        SidecarError,
        SidecarUnavailable,
    )
    from esdedup.fields import Fields
    from esdedup.fingerprint.agreement import Agreement
    from esdedup.fingerprint.bands import LAYOUTS, Layout
    from esdedup.fingerprint.profile import CLASSIC, KEYWORDS, PROFILES, VERIFIED, Profile, get_profile
    from esdedup.forest.model import Assignment, Kind
    from esdedup.ingest.actions import ArticleAction, BulkAction
    from esdedup.ingest.async_dedup import AsyncDedup
    from esdedup.ingest.dedup import Dedup
    from esdedup.maintenance import (
        BoilerplateBySite,
        Expired,
        ForestNode,
        IndexedExplanation,
        Maintenance,
        Stats,
        Violation,
        ViolationKind,
    )
    from esdedup.neighbours.explanation import Explanation
    from esdedup.reading.explanation import explain
    from esdedup.reading.list_request import Counting, Head, Only, Sort
    from esdedup.reading.overview import Facet, FacetValue, Overview
    from esdedup.reading.reader import AsyncReader, Reader
    from esdedup.reading.results import (
        Article,
        FullArticle,
        Page,
        Row,
        RowDetails,
        SimilarArticle,
        SimilarPage,
        Snippet,
        Source,
        SourceCount,
        SourcesPage,
        TextPart,
        Timeline,
        TimelineStep,
    )
    from esdedup.reading.versions import TimeOrder, Version, VersionsPage
    from esdedup.sites import RawPage
    from esdedup.text.dictionary import Dictionary
    from esdedup.text.hashing import TOKEN_HASHES, TokenHash
    from esdedup.text.left_out import LeftOut, Span
    from esdedup.text.segmenters import CustomSegmenter, Jieba, NGrams, Segmenter, UnicodeWords
    from esdedup.text.weights import StopWords, Tf, TfIdf, Weighting, WordTable

    __version__: str

__all__ = [
    "CLASSIC",
    "KEYWORDS",
    "LAYOUTS",
    "PROFILES",
    "TOKEN_HASHES",
    "VERIFIED",
    "Agreement",
    "Article",
    "ArticleAction",
    "ArticleNotFound",
    "ArticleRejected",
    "Assignment",
    "AsyncDedup",
    "AsyncReader",
    "BoilerplateBySite",
    "BulkAction",
    "ClientForked",
    "ClockMismatch",
    "Counting",
    "CustomSegmenter",
    "Dedup",
    "Dictionary",
    "EsdedupError",
    "Expired",
    "Explanation",
    "Facet",
    "FacetValue",
    "Fields",
    "FieldsNotFound",
    "ForestAhead",
    "ForestBusy",
    "ForestDamaged",
    "ForestError",
    "ForestExists",
    "ForestIncomplete",
    "ForestLost",
    "ForestMismatch",
    "ForestMissing",
    "ForestNode",
    "ForestOwner",
    "FullArticle",
    "Head",
    "IndexBlocked",
    "IndexNotReady",
    "IndexedExplanation",
    "Jieba",
    "Kind",
    "Layout",
    "LeftOut",
    "Maintenance",
    "NGrams",
    "NodeError",
    "Only",
    "Overview",
    "Page",
    "Pin",
    "Pins",
    "Profile",
    "Query",
    "RawPage",
    "Reader",
    "Row",
    "RowDetails",
    "Segmenter",
    "ServerError",
    "ServerUnavailable",
    "SettingError",
    "SidecarError",
    "SidecarUnavailable",
    "SimilarArticle",
    "SimilarPage",
    "Snippet",
    "Sort",
    "Source",
    "SourceCount",
    "SourcesPage",
    "Span",
    "Stats",
    "StopWords",
    "TextPart",
    "Tf",
    "TfIdf",
    "TimeOrder",
    "Timeline",
    "TimelineStep",
    "TokenHash",
    "UnicodeWords",
    "Version",
    "VersionsPage",
    "Violation",
    "ViolationKind",
    "Weighting",
    "WordTable",
    "explain",
    "get_profile",
]

# Where the names are defined. The first modules need neither numpy nor a client.
_MODULES = (
    "esdedup.errors",
    "esdedup.fields",
    "esdedup.sites",
    "esdedup.elastic.requests",
    "esdedup.text.weights",
    "esdedup.text.hashing",
    "esdedup.text.segmenters",
    "esdedup.text.dictionary",
    "esdedup.fingerprint.profile",
    "esdedup.fingerprint.agreement",
    "esdedup.fingerprint.bands",
    "esdedup.boilerplate.pins",
    "esdedup.text.left_out",
    "esdedup.forest.model",
    "esdedup.neighbours.explanation",
    "esdedup.reading.results",
    "esdedup.reading.versions",
    "esdedup.reading.overview",
    "esdedup.reading.list_request",
    "esdedup.ingest.actions",
    "esdedup.reading.reader",
    "esdedup.ingest.dedup",
    "esdedup.ingest.async_dedup",
    "esdedup.reading.explanation",
    "esdedup.maintenance",
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("esdedup")
        if name in __all__:
            for module in map(importlib.import_module, _MODULES):
                if hasattr(module, name):
                    globals()[name] = getattr(module, name)
                    return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, "__version__"})
