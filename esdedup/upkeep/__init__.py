"""What keeps a forest well over the years: expiry, verification and repair, rebuilding, figures."""

from esdedup.elastic.expiry import Expired
from esdedup.upkeep.breaches import Breach, BreachKind
from esdedup.upkeep.stats import Stats
from esdedup.upkeep.upkeep import Upkeep

__all__ = ["Breach", "BreachKind", "Expired", "Stats", "Upkeep"]
