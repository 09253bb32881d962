"""What each setting is called and may be: its option, its variables, its range. Read from the fields.

Options, messages, the file of settings, and the table in the documents are all made from this.
"""

import dataclasses
import difflib
import functools
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

import annotated_types
from pydantic import AfterValidator, BaseModel, BeforeValidator, ByteSize, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import NoDecode

from esdedup.errors import SettingError
from esdedup.origins import origin_of

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting, as it is described."""

    name: str
    # The heading that it is shown under.
    group: str
    description: str
    # Its option, if it has one.
    flag: str | None
    # Its environment variables: ours, and those of other commands; the first one counts most.
    variables: tuple[str, ...]
    # The type of its value, if it has one, without what is in it, such as `tuple`.
    kind: Any
    # As text; empty if it has none.
    default: str
    allowed: str
    metavar: str | None

    @property
    def is_secret(self) -> bool:
        """Whether its value is never shown."""
        return self.kind is SecretStr


@functools.cache
def settings_of(model: type[BaseModel]) -> list[Setting]:
    """Return all settings, in their order; those with the same heading follow each other."""
    found: list[Setting] = []
    for name, field in model.model_fields.items():
        named = next((each for each in field.metadata if isinstance(each, Naming)), Naming())
        given = [each for each in get_args(field.annotation) if each is not NoneType]
        value_type = given[0] if NoneType in get_args(field.annotation) else field.annotation
        kind = get_origin(value_type) or value_type
        found.append(
            Setting(
                name=name,
                group=named.heading or found[-1].group,
                description=" ".join((field.description or "").split()),
                flag=f"--{name.replace('_', '-')}" if named.flag == _AS_NAMED else named.flag,
                variables=(f"{PREFIX}{name.upper()}", *named.others),
                kind=kind,
                default=_default(field.default),
                allowed=_allowed(field, kind, value_type),
                metavar=_KINDS.get(kind, ("", None))[1],
            )
        )
    return found


def _default(value: object) -> str:
    match value:
        case None | ():
            return ""
        case ByteSize():
            return f"{value // _MB}MiB"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _allowed(field: FieldInfo, kind: Any, value_type: Any) -> str:
    if kind is Literal:
        return f"one of {', '.join(get_args(value_type))}"
    text, _ = _KINDS.get(kind, ("a text", None))
    least = [each.ge for each in field.metadata if isinstance(each, annotated_types.Ge)]
    most = [each.le for each in field.metadata if isinstance(each, annotated_types.Le)]
    if not least:
        return text
    return f"{text}, {least[0]:,} to {most[0]:,}" if most else f"{text}, {least[0]:,} or more"


def names_of(model: type[BaseModel], *names: str) -> str:
    """Return how settings are called by those who give them, for a message."""
    settings = [each for name in names for each in settings_of(model) if each.name == name]
    called = [f"{each.flag} ({each.variables[0]})" if each.flag else each.variables[0] for each in settings]
    return " and ".join(filter(None, (", ".join(called[:-1]), called[-1])))


def as_toml(settings: BaseModel) -> str:
    """Return settings as TOML that can be read again: what has no value, or is secret, is a comment."""
    lines: list[str] = []
    # Secrets are masked.
    values = settings.model_dump(mode="json", exclude={"config"})
    for group, members in itertools.groupby(settings_of(type(settings)), lambda each: each.group):
        lines += [f"# {group}", ""]
        for setting in members:
            if setting.name in values:
                value = values[setting.name]
                # JSON's strings, numbers, lists and booleans are TOML's, but for one control character.
                text = "" if value is None else json.dumps(value, ensure_ascii=False)
                mark = "# " if value is None or setting.is_secret else ""
                lines += [f"# {setting.description}", f"{mark}{setting.name} = {text}".rstrip(), ""]
    return "\n".join(lines).replace("\x7f", "\\u007f")


def refuse_unknown_variables(model: type[BaseModel]) -> None:
    """Raise `SettingError` if the environment has a variable of ours that is no setting."""
    known = {variable for setting in settings_of(model) for variable in setting.variables}
    for variable, value in os.environ.items():
        if not variable.upper().startswith(PREFIX):
            continue
        if value.startswith("tcp://"):
            raise SettingError(
                f"{variable} is set by Kubernetes for a service named esdedup-sidecar: name it otherwise, or "
                "set enableServiceLinks: false"
            )
        if variable.upper() not in known:
            raise SettingError(f"there is no setting {variable}{_nearest(variable.upper(), known)}")


def _nearest(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]}?" if near else "; `esdedup sidecar --help` names all settings"


def messages(model: type[BaseModel], error: ValidationError, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong, in the names that a setting has where it was given."""
    settings = {each.name: each for each in settings_of(model)}
    for each in error.errors(include_url=False):
        name = str(each["loc"][0]) if each["loc"] else None
        reason = str(each.get("ctx", {}).get("error", "")) if each["type"] == "value_error" else ""
        if name is None:
            yield reason
        elif name not in settings:
            # Options are made from the fields, so that only the file can have others.
            yield f"the file of settings has {name!r}, which is no setting{_nearest(name, set(settings))}"
        else:
            setting = settings[name]
            given = f" is {each['input']!r}"
            if setting.is_secret:
                given = " or what is in its file cannot be used"
            elif name not in options and not any(map(os.environ.get, setting.variables)):
                given = f", {name!r} in the file of settings,{given}"
            yield f"{names_of(model, name)}{given}: {reason or f'it must be {setting.allowed}'}"


# Shorter ones can be guessed.
_MIN_TOKEN_LENGTH = 16


def checked_address(address: str | None) -> str | None:
    """Return an address without a slash at its end; raises `ValueError`."""
    if address is None:
        return None
    parts = urlsplit(address)
    is_one = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    if not is_one or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("it must be like https://sidecar-1:9500")
    return address.rstrip("/")


def checked_token(token: SecretStr | None) -> SecretStr | None:
    """Return a token that cannot be guessed; raises `ValueError`."""
    text = "-" * _MIN_TOKEN_LENGTH if token is None else token.get_secret_value()
    if len(text) < _MIN_TOKEN_LENGTH or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            f"it must be {_MIN_TOKEN_LENGTH} or more visible ASCII characters, such as the output of "
            "`openssl rand -hex 32`"
        )
    return token


def _split(given: object) -> object:
    return [name.strip() for name in given.split(",") if name.strip()] if isinstance(given, str) else given


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(origin_of)], ...], NoDecode, BeforeValidator(_split)]
