"""`esdedup sidecar`: runs a proxy for Elasticsearch that gives roots to the articles of many feeders."""

import importlib.util
from typing import TYPE_CHECKING, Annotated, Any

import pydantic
import typer

from esdedup.cli.background_sidecar import end_with
from esdedup.cli.command import command, require_extra
from esdedup.cli.messages import log_as
from esdedup.errors import SettingError
from esdedup.ingest.settings import Naming, Setting, SettingGroup, settings_of


def _options() -> type[SettingGroup]:
    """Return an option for each setting that has one; no options without the extra `sidecar`."""
    options: dict[str, Any] = {}
    if importlib.util.find_spec("pydantic_settings") is not None:
        from esdedup.sidecar.settings import Settings

        options = {each.name: _option(each) for each in settings_of(Settings) if each.flag is not None}
    created: type[SettingGroup] = pydantic.create_model("SettingOptions", __base__=SettingGroup, **options)
    return created


def _option(setting: Setting) -> tuple[Any, Any]:
    is_switch = setting.kind is bool
    # Accept any string, since the settings validate the values from all sources.
    kind: Any = bool if is_switch else list[str] if setting.kind is tuple else str
    naming = Naming(
        heading=setting.group,
        flag=f"{setting.flag}/--no-{setting.name.replace('_', '-')}" if is_switch else setting.flag,
        others=setting.variables,
        metavar=setting.metavar,
    )
    default = setting.default == "true" if is_switch else setting.default or None
    about = pydantic.Field(default=default, description=setting.description)
    return Annotated[kind | None, naming], about


if TYPE_CHECKING:
    SettingOptions = SettingGroup
else:
    SettingOptions = _options()


@command("sidecar", example="esdedup sidecar --url https://elasticsearch:9200 --token-file token")
def sidecar(
    ctx: typer.Context,
    *,
    settings: SettingOptions,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print all settings as a file for --config, and exit.")
    ] = False,
    with_pid: Annotated[
        int | None, typer.Option("--with-pid", hidden=True, help="Exit when this process has exited.")
    ] = None,
) -> None:
    """Run a proxy for Elasticsearch that gives roots to the articles of many feeders.

    Point clients at the proxy instead of at Elasticsearch. Settings are read from options, from the
    environment, and from a file (--config), in this order. On SIGTERM, it first finishes accepted requests.
    """
    # Errors in the settings are logged in the right format, too, unless only their file names it.
    log_as(vars(settings).get("log_format", "text"))
    require_extra("sidecar")
    from esdedup.ingest.settings import as_toml
    from esdedup.sidecar.settings import load

    # The settings read the environment themselves; typer only shows the names of the variables.
    sources = {name: ctx.get_parameter_source(f"settings_{name}") for name in vars(settings)}
    given = {
        name: getattr(settings, name)
        for name, source in sources.items()
        if source and source.name == "COMMANDLINE"
    }
    if "@" in (given.get("url") or ""):
        raise SettingError(
            "--url contains a user or a password, and everybody on this machine can read command lines: give "
            "the address in ESDEDUP_SIDECAR_URL, or use --user and --password-file"
        )
    loaded = load(given)
    if print_config:
        typer.echo(as_toml(loaded))
        return
    if loaded.pages:
        require_extra("serve")
    log_as(loaded.log_format)
    from esdedup.sidecar.server import serve

    if with_pid is not None:
        end_with(with_pid)
    serve(loaded)
