"""What each setting is called and may be: its option, its variables, its range. Read from the fields.

Options, messages, the file of settings, and the table in the documents are all made from this.
"""

import dataclasses
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ByteSize, SecretStr
from pydantic.fields import FieldInfo

PREFIX = "ESDEDUP_SIDECAR_"
"""What the names of all our variables begin with."""
_AS_NAMED = "as the name"
_MB = 1024 * 1024
# What a value of each type must be, and what stands for it in the help.
_KINDS: dict[Any, tuple[str, str | None]] = {
    bool: ("true or false", None),
    ByteSize: ("a number of bytes, or such as 64MiB", "BYTES"),
    int: ("a whole number", "INTEGER"),
    float: ("a number", "NUMBER"),
    Path: ("a file", "FILE"),
    tuple: ("names, separated by commas", "NAME"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Naming:
    """How a setting is called, as far as its name does not say it."""

    # The heading that it and the following ones are shown under; None: that of the one before.
    heading: str | None = None
    # None: it has no option, since everybody on a machine can read command lines.
    flag: str | None = _AS_NAMED
    # Variables of other commands that count too, if ours is not set; the first one that is set counts.
    others: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting, as it is described."""

    name: str
    field: FieldInfo
    named: Naming
    # The heading that it is shown under.
    group: str

    @property
    def flag(self) -> str | None:
        """Its option, if it has one."""
        flag = self.named.flag
        return f"--{self.name.replace('_', '-')}" if flag == _AS_NAMED else flag

    @property
    def variables(self) -> tuple[str, ...]:
        """Its environment variables; the first one counts most."""
        return (f"{PREFIX}{self.name.upper()}", *self.named.others)

    @property
    def description(self) -> str:
        """What it is for."""
        return " ".join((self.field.description or "").split())

    @property
    def type(self) -> Any:
        """The type of its value, if it has one."""
        annotation, parts = self.field.annotation, get_args(self.field.annotation)
        return (
            next((each for each in parts if each is not NoneType), None) if NoneType in parts else annotation
        )

    @property
    def kind(self) -> Any:
        """That type, without what is in it, such as ``tuple``."""
        return get_origin(self.type) or self.type

    @property
    def is_secret(self) -> bool:
        """Whether its value is never shown."""
        return self.kind is SecretStr

    @property
    def default(self) -> str:
        """Its default as text, empty if it has none."""
        match self.field.default:
            case None | ():
                return ""
            case ByteSize() as value:
                return f"{value // _MB}MiB"
            case bool() as value:
                return str(value).lower()
            case float() as value:
                return f"{value:g}"
            case value:
                return str(value)

    @property
    def allowed(self) -> str:
        """What its value must be."""
        if self.kind is Literal:
            return f"one of {', '.join(get_args(self.type))}"
        text, _ = _KINDS.get(self.kind, ("a text", None))
        least = [each.ge for each in self.field.metadata if isinstance(each, annotated_types.Ge)]
        most = [each.le for each in self.field.metadata if isinstance(each, annotated_types.Le)]
        if not least:
            return text
        return f"{text}, {least[0]:,} to {most[0]:,}" if most else f"{text}, {least[0]:,} or more"

    @property
    def metavar(self) -> str | None:
        """What stands for its value in the help."""
        return _KINDS.get(self.kind, ("", None))[1]


def settings_of(model: type[BaseModel]) -> list[Setting]:
    """Return all settings, in their order; those with the same heading follow each other."""
    found: list[Setting] = []
    group = ""
    for name, field in model.model_fields.items():
        named = next((each for each in field.metadata if isinstance(each, Naming)), Naming())
        group = named.heading or group
        found.append(Setting(name, field, named, group))
    return found


def refusal(model: type[BaseModel], *names: str) -> str:
    """Return how settings are called by those who give them, for a message."""
    settings = [each for name in names for each in settings_of(model) if each.name == name]
    called = [f"{each.flag} ({each.variables[0]})" if each.flag else each.variables[0] for each in settings]
    return " and ".join(filter(None, (", ".join(called[:-1]), called[-1])))
