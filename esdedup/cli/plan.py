"""`esdedup plan`: what a stream of articles needs."""

import contextlib
import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.extras import MODULES, is_installed
from esdedup.cli.messages import say
from esdedup.cli.plan_tables import plan_for_programs, print_plan
from esdedup.errors import SettingError
from esdedup.fingerprint.profile import Profile
from esdedup.plan.costs import CostsFile
from esdedup.plan.model import Workload, plan
from esdedup.plan.shipped import NAME, shipped

if TYPE_CHECKING:
    from esdedup.plan.measure_server import Connect

_WORKLOAD = "Workload"
_COSTS = "Unit costs"
_GB = 1e9
_LIFETIME_S = 1_800


@command("plan", example="esdedup plan --articles-a-day 1e6 --retention-days 30")
def plan_command(
    context: typer.Context,
    *,
    articles_a_day: Annotated[
        float,
        typer.Option("--articles-a-day", min=1, help="How many articles come.", rich_help_panel=_WORKLOAD),
    ] = Workload.articles_a_day,
    reprints: Annotated[
        float,
        typer.Option(
            "--reprints",
            help="The share of them that reprint an earlier one within the retention, 0 to 1.",
            rich_help_panel=_WORKLOAD,
        ),
    ] = Workload.reprints,
    edited: Annotated[
        float,
        typer.Option(
            "--edited",
            help="The share of the reprints that change the text, 0 to 1: each makes a node.",
            rich_help_panel=_WORKLOAD,
        ),
    ] = Workload.edited,
    retention_days: Annotated[
        float,
        typer.Option(
            "--retention-days",
            help="How many days a cluster accepts articles after its last one.",
            rich_help_panel=_WORKLOAD,
        ),
    ] = Workload.retention_days,
    mean_length: Annotated[
        float,
        typer.Option(
            "--mean-length", help="Characters of an article, on average.", rich_help_panel=_WORKLOAD
        ),
    ] = Workload.mean_length,
    peak: Annotated[
        float,
        typer.Option(
            "--peak", help="Articles a second at the peak over those on average.", rich_help_panel=_WORKLOAD
        ),
    ] = Workload.peak,
    owner_memory_gb: Annotated[
        float,
        typer.Option(
            "--owner-memory-gb",
            min=0.001,
            help="The memory that the owner of one forest may take.",
            rich_help_panel=_WORKLOAD,
        ),
    ] = Workload.owner_bytes / _GB,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Measure unit costs on this machine, in a minute or two: with --url in indices of its own "
            "there, which are deleted; else with an embedded Elasticsearch.",
            rich_help_panel=_COSTS,
        ),
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option("--save", help="With --measure: write them to this file.", rich_help_panel=_COSTS),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            "--costs",
            help="Plan with the unit costs in this file. Default: those of the package.",
            rich_help_panel=_COSTS,
        ),
    ] = None,
    json: options.Json = False,
    fingerprinting: options.Fingerprinting,
    server: options.Server,
) -> None:
    """Calculate nodes, memory, disk, cores and requests, and how many forests a stream of articles needs.

    All figures are calculated from unit costs, which were measured: on the machine that is named with them.
    """
    profile = fingerprinting.profile()
    workload = Workload(
        articles_a_day=articles_a_day,
        reprints=reprints,
        edited=edited,
        retention_days=retention_days,
        mean_length=mean_length,
        peak=peak,
        owner_bytes=owner_memory_gb * _GB,
    )
    if measure and costs is not None:
        raise SettingError("--measure and --costs contradict each other: give one of them")
    if save is not None and not measure:
        raise SettingError("--save goes with --measure: nothing else is there to save")
    if measure:
        source = context.get_parameter_source("server_url")
        is_given = source is not None and source.name != "DEFAULT"
        found, name = _measured(profile, server if is_given else None), "this measurement"
        if save is not None:
            _save(found, save)
    elif costs is not None:
        found, name = _read(costs), str(costs)
    else:
        found, name = shipped(), NAME
    planned = plan(workload, profile, found.of(profile, name=name), found.learned)
    if json:
        output.print_json(plan_for_programs(planned, found))
    else:
        print_plan(planned, found, name=name)


def _measured(profile: Profile, server: options.Server | None) -> CostsFile:
    """Measure with the given server, or an embedded one."""
    from esdedup.plan.measure import measure, measured_here
    from esdedup.plan.measure_server import measure_server, version_of

    with _connecting(server) as connect:
        with connect() as client:
            version = version_of(client)
        say("measuring fingerprints, decisions and memory")
        costs = measure(profile)
        say("measuring disk and requests in Elasticsearch")
        stored = measure_server(profile, costs.deciding, connect)
    costs = costs.model_copy(update={"server": stored})
    return shipped().with_costs(measured_here(version), [costs])


@contextlib.contextmanager
def _connecting(server: options.Server | None) -> Iterator["Connect"]:
    """Yield what connects to the server, or to an embedded one if none is given."""
    if server is not None:
        yield server.connect
        return
    if not is_installed("node"):
        raise SettingError(
            f"measuring disk needs a server: give --url, or install the packages of an embedded one "
            f"({', '.join(MODULES['node'])}): pip install 'esdedup[node]'"
        )
    from esdedup import node
    from esdedup.elastic.client import connect

    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        say("starting an embedded Elasticsearch")
        progress = stack.enter_context(output.download_progress())
        url = node.start(
            data, port=0, heap="1g", lifetime_s=_LIFETIME_S, with_parent=True, progress=progress
        ).url
        stack.callback(node.stop, data)
        yield functools.partial(connect, url)


def _read(path: Path) -> CostsFile:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingError(f"cannot read the unit costs in {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingError(f"cannot read the unit costs in {path}: it is not UTF-8") from error
    return CostsFile.read(text, name=str(path))


def _save(costs: CostsFile, path: Path) -> None:
    try:
        path.write_text(costs.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SettingError(f"cannot write the unit costs to {path}: {error.strerror}") from error
