"""Maintains a forest: expiry, verification, repair, rebuilding, statistics, explanations, edits."""

from esdedup.elastic.forest.expiry import Expired as Expired
from esdedup.forest.stories import Edit as Edit
from esdedup.maintenance.editor import EditHistory as EditHistory
from esdedup.maintenance.editor import EditResult as EditResult
from esdedup.maintenance.maintenance import Maintenance as Maintenance
from esdedup.maintenance.stats import Cluster as Cluster
from esdedup.maintenance.stats import Day as Day
from esdedup.maintenance.stats import ForestNode as ForestNode
from esdedup.maintenance.stats import ImplausibleCluster as ImplausibleCluster
from esdedup.maintenance.stats import LearnedStats as LearnedStats
from esdedup.maintenance.stats import Placeholder as Placeholder
from esdedup.maintenance.stats import SharedRepresentative as SharedRepresentative
from esdedup.maintenance.stats import Stats as Stats
from esdedup.maintenance.stored_texts import BoilerplateBySite as BoilerplateBySite
from esdedup.maintenance.stored_texts import LearnedPassage as LearnedPassage
from esdedup.maintenance.stored_texts import SiteBoilerplate as SiteBoilerplate
from esdedup.maintenance.violations import Violation as Violation
from esdedup.maintenance.violations import ViolationKind as ViolationKind
from esdedup.reading.verdict import ArticleState as ArticleState
from esdedup.reading.verdict import IndexedExplanation as IndexedExplanation
from esdedup.reading.verdict import Neighbour as Neighbour
from esdedup.reading.verdict import Outcome as Outcome
from esdedup.reading.verdict import RootComparison as RootComparison
