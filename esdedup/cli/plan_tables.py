"""A plan as a table and as JSON."""

import dataclasses
from typing import Any

from esdedup.cli import output
from esdedup.plan.costs import CostsFile, Measured
from esdedup.plan.figures import Figure, figures
from esdedup.plan.model import Plan


def plan_for_programs(plan: Plan, costs: CostsFile) -> dict[str, Any]:
    """Return a plan as JSON values."""
    return {
        "workload": dataclasses.asdict(plan.workload),
        "profile": plan.profile.label,
        "layout": plan.costs.layout,
        "calculated": {each.name: each.value for each in figures(plan)},
        "limited_by": plan.why,
        "unit_costs": {
            **plan.costs.model_dump(),
            "measured": costs.measured.model_dump(),
            "learned": costs.learned.model_dump(),
        },
    }


def print_plan(plan: Plan, costs: CostsFile, *, name: str) -> None:
    """Print a plan, and the costs of that name that it was calculated from."""
    screen, workload = output.console(), plan.workload
    screen.print(
        f"{workload.articles_a_day:,.0f} articles a day, {workload.reprints:.0%} reprints "
        f"({workload.edited:.0%} of these edited), "
        f"{workload.mean_length:,.0f} characters, kept {workload.retention_days:g} days; "
        f"{plan.profile.label}, {plan.costs.layout}\n"
    )
    output.print_table(
        screen,
        "calculated",
        ("", "", "from"),
        [(each.title, _shown(each), each.basis) for each in figures(plan)],
    )
    output.print_table(screen, "measured unit costs", ("", ""), _costs(plan))
    screen.print(f"measured on {_where(costs.measured)} ({name})", highlight=False, markup=False)
    if not plan.profile.keep_boilerplate:
        screen.print(
            f"what boilerplate takes, on {_where(costs.learned.measured)}", highlight=False, markup=False
        )


def _costs(plan: Plan) -> list[tuple[str, ...]]:
    costs, server, learned = plan.costs, plan.server, plan.learned
    by_length = costs.whole if plan.profile.keep_boilerplate else costs.without_boilerplate
    rows: list[tuple[str, ...]] = [
        (
            "fingerprint of an article",
            f"{by_length.us_a_text:,.1f} µs + {by_length.us_a_character * 1e3:,.1f} µs/1,000 characters",
        ),
        (
            "deciding an arrival",
            f"{costs.deciding.us_at_first:,.1f} µs at {costs.deciding.first_nodes:,} nodes + "
            f"{costs.deciding.us_a_doubling:,.1f} µs/doubling, up to {costs.deciding.measured_nodes:,}",
        ),
        ("committing an arrival", f"{server.us_a_commit:,.1f} µs"),
        ("memory of a node", f"{costs.node_bytes:,.0f} bytes"),
        ("memory of a process", f"{costs.process_bytes / 1e6:,.0f} MB"),
        (
            "memory while opening a forest",
            f"{costs.opening_bytes / 1e6:,.0f} MB + {costs.opening_bytes_a_node:,.0f} bytes/node",
        ),
        (
            "disk of a node, a page, an article's dedup",
            f"{server.node_bytes:,.0f}, {server.page_bytes:,.0f}, {server.article_bytes:,.0f} bytes",
        ),
        ("requests a batch", f"{server.requests_a_batch:,.1f}"),
    ]
    if not plan.profile.keep_boilerplate:
        omitting = costs.omitting
        rows[1:1] = [
            (
                "looking for boilerplate",
                f"{omitting.us_a_text:,.1f} µs + {omitting.us_a_character * 1e3:,.1f} µs/1,000 characters",
            ),
            (
                "boilerplate at most",
                f"{learned.memory_bytes / 1e6:,.0f} MB of memory, {learned.disk_bytes / 1e6:,.0f} MB of disk",
            ),
        ]
    return rows


def _where(measured: Measured) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in measured.versions.items())
    return f"{measured.on}: {measured.machine}; {versions}"


def _shown(figure: Figure) -> str:
    """Return a number with three digits that count."""
    value = figure.value
    decimals = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    number = f"{round(value, 3 - len(str(int(value)))) if value >= 1_000 else value:,.{decimals}f}"
    return f"{number}{'' if figure.unit in ('', '/s') else ' '}{figure.unit}"
