"""The unit costs in the package, which `python -m benchmarks unit-costs --keep` writes."""

from importlib import resources

from esdedup.plan.costs import CostsFile

NAME = "unit_costs.json"


def shipped() -> CostsFile:
    """Return them."""
    text = resources.files("esdedup.plan").joinpath(NAME).read_text(encoding="utf-8")
    return CostsFile.read(text, name=NAME)
