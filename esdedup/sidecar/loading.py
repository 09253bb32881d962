"""Reads the settings, says what is wrong with them, and writes them as a file that can be read again."""

import difflib
import functools
import itertools
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from esdedup.errors import SettingError
from esdedup.fields import fields_given
from esdedup.sidecar.setting_names import PREFIX, refusal, settings_of
from esdedup.sidecar.settings import Settings


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
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingError(
            f"the file that {refusal(Settings, 'config')} names cannot be read, or is not TOML: {error}"
        ) from error
    if found := list(_contradictions(settings)):
        raise SettingError("\n".join(found))
    return settings


def as_toml(settings: Settings) -> str:
    """Return settings as TOML that `load` reads: what has no value, or is secret, is a comment."""
    lines: list[str] = []
    # Secrets are masked.
    values = settings.model_dump(mode="json", exclude={"config"})
    for group, members in itertools.groupby(settings_of(Settings), lambda each: each.group):
        lines += [f"# {group}", ""]
        for setting in members:
            if setting.name in values:
                value = values[setting.name]
                # JSON's strings, numbers, lists and booleans are TOML's, but for one control character.
                text = "" if value is None else json.dumps(value, ensure_ascii=False)
                mark = "# " if value is None or setting.is_secret else ""
                lines += [f"# {setting.description}", f"{mark}{setting.name} = {text}".rstrip(), ""]
    return "\n".join(lines).replace("\x7f", "\\u007f")


def _refuse_unknown_variables() -> None:
    known = {variable for setting in settings_of(Settings) for variable in setting.variables}
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


def _messages(error: ValidationError, options: Mapping[str, Any]) -> Iterator[str]:
    settings = {each.name: each for each in settings_of(Settings)}
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
            yield f"{refusal(Settings, name)}{given}: {reason or f'it must be {setting.allowed}'}"


def _contradictions(settings: Settings) -> Iterator[str]:
    """Yield what settings contradict each other or what there is, and what to do."""
    called = functools.partial(refusal, Settings)
    if (settings.password is None) != (settings.user is None):
        yield f"{called('user', 'password_file')} go together: give a user and a password"
    if settings.password is not None and settings.api_key is not None:
        yield f"{called('user', 'api_key')} are both given: give a user or a key"
    if (settings.tls_cert_file is None) != (settings.tls_key_file is None):
        yield f"{called('tls_cert_file', 'tls_key_file')} go together: give both, or none"
    if not (settings.is_loopback or settings.insecure or settings.token):
        yield (
            f"{called('host')} is {settings.host!r}, which other machines reach, and there is no token: "
            f"anyone there could write articles. Name one by {called('token_file')}, or allow that with "
            f"{called('insecure')}"
        )
    if settings.most_plausible_leaves.bit_count() != 1:
        yield (
            f"{called('most_plausible_leaves')} is {settings.most_plausible_leaves}: it must be a power of "
            "two, such as 1024"
        )
    if settings.max_bodies_bytes < settings.max_body_bytes:
        yield (
            f"{called('max_bodies_bytes')} is {settings.max_bodies_bytes}: it must be at least what one body "
            f"may have, {settings.max_body_bytes} by {called('max_body_bytes')}"
        )
    if settings.pages and settings.pages_index is None:
        yield f"{called('pages', 'pages_index')} go together: name the index that the pages show"
    if settings.allow_origins and not settings.pages:
        yield f"{called('allow_origins')} concerns the pages: give {called('pages')} too, or leave it out"
    for name in ("ca_certs", "tls_cert_file", "tls_key_file", "overrides_file"):
        path = getattr(settings, name)
        if path is not None and not path.exists():
            yield f"there is no file {path}, which {called(name)} names"
    for read in (lambda: settings.fingerprint_profile, lambda: fields_given(settings)):
        try:
            read()
        except SettingError as error:
            yield str(error)
