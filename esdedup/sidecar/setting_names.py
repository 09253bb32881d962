"""What each setting is called and may be: its option, its variables, its range. Read from the fields.

Options, messages, the file of settings, and the table in the documents are all made from this.
"""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ByteSize, SecretStr
from pydantic.fields import FieldInfo

PREFIX = "ESDEDUP_SIDECAR_"
"""What the names of all our variables begin with."""
_DERIVED = "as the name"
_MB = 1024 * 1024


@dataclasses.dataclass(frozen=True, kw_only=True)
class Named:
    """How a setting is called, as far as its name does not say it."""

    # Under which heading it is shown.
    group: str
    # None: it has no option, since everybody on a machine can read command lines.
    flag: str | None = _DERIVED
    # Variables of other commands that count too, if ours is not set; the first one that is set counts.
    others: tuple[str, ...] = ()
    # What stands for its value in the help; None: its kind.
    metavar: str | None = None


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting, as it is described."""

    name: str
    field: FieldInfo

    @property
    def named(self) -> Named:
        """How it is called."""
        return next(each for each in self.field.metadata if isinstance(each, Named))

    @property
    def flag(self) -> str | None:
        """Its option, if it has one."""
        flag = self.named.flag
        return f"--{self.name.replace('_', '-')}" if flag == _DERIVED else flag

    @property
    def variables(self) -> tuple[str, ...]:
        """Its environment variables; the first one counts most."""
        return (f"{PREFIX}{self.name.upper()}", *self.named.others)

    @property
    def description(self) -> str:
        """What it is for."""
        return self.field.description or ""

    @property
    def type(self) -> Any:
        """The type of its value, when it has one."""
        kinds = get_args(self.field.annotation)
        if type(None) not in kinds:
            return self.field.annotation
        return next(kind for kind in kinds if kind is not type(None))

    @property
    def is_secret(self) -> bool:
        """Whether its value is never shown."""
        return SecretStr in _parts(self.field.annotation)

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off."""
        return self.field.annotation is bool

    @property
    def is_list(self) -> bool:
        """Whether it has any number of values."""
        return get_origin(self.field.annotation) is tuple

    @property
    def default(self) -> str:
        """Its default as text, empty if it has none."""
        value = self.field.default
        if value is None or value == ():
            return ""
        if isinstance(value, ByteSize):
            return f"{value // _MB}MiB"
        if isinstance(value, bool):
            return str(value).lower()
        return f"{value:g}" if isinstance(value, float) else str(value)

    @property
    def allowed(self) -> str:
        """What its value must be."""
        kinds = _parts(self.field.annotation)
        if self.is_switch:
            return "true or false"
        if get_origin(self.type) is Literal:
            return f"one of {', '.join(get_args(self.type))}"
        if self.is_list:
            return "names, separated by commas"
        for kind, text in _KINDS:
            if kind in kinds:
                return f"{text}{self._range}"
        return "a text"

    @property
    def metavar(self) -> str | None:
        """What stands for its value in the help."""
        for kind, name in ((ByteSize, "BYTES"), (int, "INTEGER"), (float, "NUMBER"), (Path, "FILE")):
            if kind in _parts(self.field.annotation) and not self.is_switch:
                return name
        return self.named.metavar

    @property
    def _range(self) -> str:
        least = next((each.ge for each in self.field.metadata if isinstance(each, annotated_types.Ge)), None)
        most = next((each.le for each in self.field.metadata if isinstance(each, annotated_types.Le)), None)
        if least is None:
            return ""
        return f", {_figure(least)} or more" if most is None else f", {_figure(least)} to {_figure(most)}"


_KINDS: list[tuple[type, str]] = [
    (ByteSize, "a number of bytes, or such as 64MiB"),
    (int, "a whole number"),
    (float, "a number"),
    (Path, "a file"),
]


def settings_of(model: type[BaseModel]) -> list[Setting]:
    """Return all settings, in their order."""
    return [Setting(name, field) for name, field in model.model_fields.items()]


def groups_of(model: type[BaseModel]) -> Iterator[tuple[str, list[Setting]]]:
    """Yield the settings under their headings."""
    settings = settings_of(model)
    for group in dict.fromkeys(each.named.group for each in settings):
        yield group, [each for each in settings if each.named.group == group]


def other_variables(model: type[BaseModel]) -> dict[str, str]:
    """Return the values that variables of other commands give."""
    return {
        setting.name: given[0]
        for setting in settings_of(model)
        if (given := [os.environ[name] for name in setting.named.others if os.environ.get(name)])
    }


def refusal(model: type[BaseModel], *names: str) -> str:
    """Return how settings are called by those who give them, for a message."""
    called = []
    for name in names:
        setting = Setting(name, model.model_fields[name])
        variable = setting.variables[0]
        called.append(f"{setting.flag} ({variable})" if setting.flag else variable)
    return " and ".join(filter(None, (", ".join(called[:-1]), called[-1])))


def _parts(annotation: object) -> set[object]:
    return {annotation, *get_args(annotation)}


def _figure(number: object) -> str:
    return f"{number:,}"
