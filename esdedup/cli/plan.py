"""`esdedup plan`: calculates the resources that a stream of articles needs."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.errors import SettingError
from esdedup.ingest.settings import Naming, SettingGroup
from esdedup.plan.costs import SHIPPED, CostsFile, Measured, shipped
from esdedup.plan.figures import Figure, figures
from esdedup.plan.model import CapacityPlan, Workload, plan

_GB = 1e9


class WorkloadOptions(SettingGroup):
    """The fields of `Workload` as options."""

    articles_a_day: Annotated[float, Naming(heading="Workload")] = Field(Workload.articles_a_day, ge=1)
    """Number of articles that arrive per day."""
    reprints: float = Workload.reprints
    """Share of articles that reprint an earlier one within the retention, 0 to 1."""
    edited: float = Workload.edited
    """Share of reprints that change the text, 0 to 1; each such reprint creates a node."""
    retention_days: float = Workload.retention_days
    """For how many days after its last article a cluster accepts more articles."""
    mean_length: float = Workload.mean_length
    """Average length of an article in characters."""
    peak: float = Workload.peak
    """Ratio of the peak rate of articles to the average rate."""
    owner_memory_gb: float = Field(Workload.owner_bytes / _GB, ge=0.001)
    """Memory that the owner of one forest may use."""

    def workload(self) -> Workload:
        """Return the options as a `Workload`."""
        values = vars(self) | {"owner_bytes": self.owner_memory_gb * _GB}
        return Workload(**{each.name: values[each.name] for each in dataclasses.fields(Workload)})


@command("plan", example="esdedup plan --articles-a-day 1e6 --retention-days 30")
def plan_command(
    *,
    stream: WorkloadOptions,
    costs: Path | None = None,
    json: options.Json = False,
    fingerprinting: options.Fingerprinting,
) -> None:
    """Calculate nodes, memory, disk, cores and requests, and how many forests a stream of articles needs.

    All figures are calculated from unit costs, which were measured on the machine named below the figures.

    Options:
        costs: File with unit costs, as written by `python -m benchmarks unit-costs --costs FILE` in a
            checkout of esdedup. Default: the unit costs in the package.
    """
    profile, workload = fingerprinting.read_profile(), stream.workload()
    found, name = (shipped(), SHIPPED) if costs is None else (_read(costs), str(costs))
    planned = plan(workload, profile, found.of(profile, name=name), found.learned)
    if json:
        output.print_json(_as_json(planned, found))
    else:
        _print_plan(planned, found, name=name)


def _read(path: Path) -> CostsFile:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingError(f"cannot read the unit costs in {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingError(f"cannot read the unit costs in {path}: it is not UTF-8") from error
    return CostsFile.read(text, name=str(path))


def _as_json(plan: CapacityPlan, costs: CostsFile) -> dict[str, Any]:
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


def _print_plan(plan: CapacityPlan, costs: CostsFile, *, name: str) -> None:
    workload = plan.workload
    output.show(
        f"{workload.articles_a_day:,.0f} articles a day, {workload.reprints:.0%} reprints "
        f"({workload.edited:.0%} of these edited), "
        f"{workload.mean_length:,.0f} characters, kept {workload.retention_days:g} days; "
        f"{plan.profile.label}, {plan.costs.layout}\n"
    )
    output.print_table(
        "calculated", ("", "", "from"), [(each.title, _shown(each), each.basis) for each in figures(plan)]
    )
    output.show(f"from unit costs measured on {_measurement(costs.measured)} ({name})", markup=False)
    if not plan.profile.keep_boilerplate:
        output.show(f"costs of boilerplate measured on {_measurement(costs.learned.measured)}", markup=False)


def _measurement(measured: Measured) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in measured.versions.items())
    return f"{measured.on}: {measured.machine}; {versions}"


def _shown(figure: Figure) -> str:
    """Format a figure with three significant digits."""
    value = figure.value
    decimals = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    number = f"{round(value, 3 - len(str(int(value)))) if value >= 1_000 else value:,.{decimals}f}"
    return f"{number}{'' if figure.unit in ('', '/s') else ' '}{figure.unit}"
