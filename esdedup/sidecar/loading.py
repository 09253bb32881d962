"""Reads the settings, says what is wrong with them, and writes them as a file that can be read again."""

import difflib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from esdedup.errors import SettingError
from esdedup.sidecar.setting_names import PREFIX, Setting, groups_of, refusal, settings_of
from esdedup.sidecar.settings import Settings

_MASK = "**********"


def load(options: Mapping[str, Any]) -> Settings:
    """Return the settings from options, the environment, and the file that one of these names.

    Args:
        options: What was given on the command line, by the names of the settings.

    Raises:
        SettingError: A value is out of its range, settings contradict each other, there is none of a name, or
            a file cannot be read.
    """
    _refuse_unknown_variables()
    try:
        settings = Settings(**options)
    except ValidationError as error:
        raise SettingError("\n".join(_messages(error, options))) from None
    except tomllib.TOMLDecodeError as error:
        raise SettingError(
            f"the file that {refusal(Settings, 'config')} names is not TOML: {error}"
        ) from error
    _check_files(settings)
    return settings


def as_toml(settings: Settings) -> str:
    """Return settings as TOML that `load` reads: what has no value, or is secret, is a comment."""
    lines: list[str] = []
    for group, members in groups_of(Settings):
        lines += [f"# {group}", ""]
        for setting in members:
            if setting.name != "config":
                lines += [
                    f"# {setting.description}",
                    _assignment(setting, getattr(settings, setting.name)),
                    "",
                ]
    return "\n".join(lines)


def _assignment(setting: Setting, value: object) -> str:
    match value:
        case None:
            return f"# {setting.name} ="
        case SecretStr():
            return f'# {setting.name} = "{_MASK}"'
        case Path():
            value = str(value)
    # JSON's strings, numbers, lists and booleans are TOML's, but for one control character.
    return f"{setting.name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")


def _refuse_unknown_variables() -> None:
    known = {variable for setting in settings_of(Settings) for variable in setting.variables}
    for variable, value in os.environ.items():
        if variable.upper().startswith(PREFIX) and value.startswith("tcp://"):
            raise SettingError(
                f"{variable} is set by Kubernetes for a service named esdedup-sidecar: name it otherwise, or "
                "set enableServiceLinks: false"
            )
        if variable.upper().startswith(PREFIX) and variable.upper() not in known:
            raise SettingError(f"there is no setting {variable}{_nearest(variable.upper(), known)}")


def _nearest(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]}?" if near else "; `esdedup sidecar --help` names all settings"


def _messages(error: ValidationError, options: Mapping[str, Any]) -> Iterator[str]:
    fields = Settings.model_fields
    for each in error.errors(include_url=False):
        name = str(each["loc"][0]) if each["loc"] else None
        reason = str(each.get("ctx", {}).get("error", "")) if each["type"] == "value_error" else ""
        if name is None:
            yield reason
        elif name not in fields:
            # Options are made from the fields, so that only the file can have others.
            yield f"the file of settings has {name!r}, which is no setting{_nearest(name, set(fields))}"
        else:
            setting = Setting(name, fields[name])
            value = "" if setting.is_secret else f" is {each['input']!r}"
            reason = reason or f"it must be {setting.allowed}"
            yield f"{refusal(Settings, name)}{_origin(setting, options)}{value}: {reason}"


def _origin(setting: Setting, options: Mapping[str, Any]) -> str:
    if setting.name in options or any(os.environ.get(variable) for variable in setting.variables):
        return ""
    return f", {setting.name!r} in the file of settings,"


def _check_files(settings: Settings) -> None:
    for read in (settings.read_token, settings.read_password, settings.read_api_key):
        read()
    for name in ("ca_certs", "tls_cert_file", "tls_key_file", "pins_file"):
        path: Path | None = getattr(settings, name)
        if path is not None and not path.exists():
            raise SettingError(f"there is no file {path}, which {refusal(Settings, name)} names")
