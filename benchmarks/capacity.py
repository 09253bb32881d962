"""The tables of docs/capacity.md: what `esdedup plan` calculates from the unit costs in the package."""

import itertools
from collections.abc import Iterator

from esdedup.fingerprint.profile import VERIFIED
from esdedup.plan.costs import SHIPPED, shipped
from esdedup.plan.model import Plan, Workload, plan

_ARTICLES_A_DAY = (1e6, 1e7, 1e8)
_DAYS = (30, 365)
_GB = 1e9


def capacity() -> Iterator[str]:
    """Yield the lines of the tables, as Markdown."""
    held = shipped()
    costs = held.of(VERIFIED, name=SHIPPED)
    plans = [
        plan(Workload(articles_a_day=articles, retention_days=days), VERIFIED, costs, held.learned)
        for articles, days in itertools.product(_ARTICLES_A_DAY, _DAYS)
    ]
    usual = Workload()
    yield (
        f"Calculated for `{VERIFIED.name}`, a share of {usual.reprints} of "
        f"reprints of which {usual.edited} are edited, {usual.mean_length:,.0f} characters each, a peak "
        f"of {usual.peak:g} times the mean, and {usual.owner_bytes / _GB:,.0f} GB for an owner; without "
        f"replicas. From unit costs that were measured on {held.measured.machine} ({held.measured.on})."
    )
    yield ""
    yield "| articles a day | days | nodes | forests | what asks for them |"
    yield "|---|---|---|---|---|"
    for each in plans:
        yield _row(each, f"{_short(each.load.nodes)}", f"{each.forests:,}", each.why)
    yield ""
    yield "| articles a day | days | GB of each owner | GB at most | cores of owners | cores to fingerprint |"
    yield "|---|---|---|---|---|---|"
    for each in plans:
        memory = each.memory_each
        yield _row(
            each,
            _short(memory.held / _GB),
            _short(memory.peak / _GB),
            _short(each.peak_a_second * each.owner_us / 1e6),
            _short(each.peak_a_second * each.fingerprint_us / 1e6),
        )
    yield ""
    yield (
        "| articles a day | days | GB of forests | GB that articles gain | shards of that | "
        "articles a second | requests a second |"
    )
    yield "|---|---|---|---|---|---|---|"
    for each in plans:
        yield _row(
            each,
            _short(each.forest_bytes / _GB),
            _short(each.articles_bytes / _GB),
            f"{each.article_shards:,}",
            _short(each.peak_a_second),
            _short(each.requests_a_second),
        )


def _row(each: Plan, *cells: str) -> str:
    workload = each.workload
    named = (_short(workload.articles_a_day), f"{workload.retention_days:g}", *cells)
    return f"| {' | '.join(named)} |"


def _short(value: float) -> str:
    """Return a number with three digits that count."""
    for limit, name in ((1e9, " billion"), (1e6, " million")):
        if value >= limit:
            return f"{value / limit:.3g}{name}"
    return f"{value:.2g}" if value < 10 else f"{round(value, 3 - len(str(int(value)))):,.0f}"
