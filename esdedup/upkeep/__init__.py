"""What keeps a forest well over the years: expiry, verification and repair, rebuilding, figures."""

from esdedup.elastic.expiry import Expired
from esdedup.upkeep.breaches import Breach, BreachKind
from esdedup.upkeep.stats import Stats
from esdedup.upkeep.upkeep import Upkeep
from esdedup.upkeep.verdict import IndexedExplanation, Outcome, Standing

__all__ = ["Breach", "BreachKind", "Expired", "IndexedExplanation", "Outcome", "Standing", "Stats", "Upkeep"]
