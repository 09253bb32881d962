"""`Settings`: everything that an operator can set, in one object.

A setting comes from, in this order: an option of the command, an environment variable, the file that
``--config`` names, its default. The options, their help, and the table in docs/sidecar.md are made from the
fields (`setting_names.py`); `load` (`loading.py`) reads them and says what is wrong.
"""

import functools
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import SecretStr, model_validator
from pydantic_settings import BaseSettings, InitSettingsSource, SettingsConfigDict
from pydantic_settings.sources import PydanticBaseSettingsSource, TomlConfigSettingsSource

from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.bands import get_layout
from esdedup.fingerprint.profile import Profile, get_profile
from esdedup.ingest.word_files import with_words
from esdedup.origins import is_loopback, is_wildcard
from esdedup.sidecar.setting_fields import SettingFields, checked_token, read_addresses
from esdedup.sidecar.setting_names import other_variables, refusal

log = logging.getLogger("esdedup")

_WORDS = ("segmenter", "dictionary", "weights", "stop_words", "token_hash")
_GONE = frozenset(("batch_wait_ms", "forest_by", "forest_values", "peer_ca_certs", "standby_refuses"))
_CREDENTIALS = {"user", "password", "password_file", "api_key", "api_key_file"}


class _File(TomlConfigSettingsSource):
    """A file of settings, without those of earlier versions that are gone."""

    def __call__(self) -> dict[str, Any]:
        given = super().__call__()
        if given.get("forest_by") is not None:
            raise SettingError(
                "the file of settings has 'forest_by', but a sidecar has one forest now: take it out, and "
                "start a sidecar for each of the forests, which 'forest' names"
            )
        if gone := sorted(_GONE & given.keys()):
            log.warning("the file of settings names settings that are gone: %s", ", ".join(gone))
        return {name: value for name, value in given.items() if name not in _GONE}


class Settings(SettingFields):
    """The settings of one sidecar. Made by `load`, which turns what pydantic raises into `SettingError`."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        hide_input_in_errors=True,
        env_prefix="ESDEDUP_SIDECAR_",
        # Compose files and the like set what they do not know to nothing.
        env_ignore_empty=True,
        # A field named `validate`, `copy` or the like there will never be.
        protected_namespaces=(),
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return where settings come from, the first ones first: options, environment, file."""
        config = {**env_settings(), **init_settings()}.get("config")
        if config is not None and not Path(config).is_file():
            raise SettingError(f"there is no file {config}, which {refusal(cls, 'config')} names")
        return (
            init_settings,
            env_settings,
            InitSettingsSource(settings_cls, other_variables(settings_cls)),
            _File(settings_cls, config),
        )

    @model_validator(mode="before")
    @classmethod
    def _take_credentials_from_addresses(cls, given: Any) -> Any:
        """Move user and password from the addresses to their own fields, so that no address is secret."""
        if not isinstance(given, Mapping) or not isinstance(given.get("url"), str):
            return given
        try:
            addresses = read_addresses(given["url"])
        except ValueError as error:
            raise ValueError(f"{refusal(cls, 'url')}: {error}") from None
        # What is set for the sidecar counts more than the user in an address, which is often that of feeders.
        use = addresses.credentials is not None and not given.keys() & _CREDENTIALS
        credentials = zip(("user", "password"), addresses.credentials or (), strict=False) if use else ()
        return {**given, "url": ",".join(addresses.urls), **dict(credentials)}

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """Refuse settings that contradict each other."""
        found = list(contradictions(self))
        if found:
            raise ValueError("\n".join(found))
        return self

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine reach the sidecar."""
        return is_loopback(self.host)

    @property
    def hosts(self) -> frozenset[str]:
        """The names under which the sidecar is reached, besides localhost and addresses."""
        advertised = urlsplit(self.advertise or "").hostname or self.host
        return frozenset(name.lower() for name in (self.host, advertised, *self.allow_hosts))

    def reached_at(self, port: int) -> str | None:
        """Return the address at which this sidecar is reached; None if none is known.

        Args:
            port: On which it listens.
        """
        if self.advertise is not None or is_wildcard(self.host):
            return self.advertise
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert_file else 'http'}://{host}:{port}"

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of Elasticsearch, without credentials."""
        return read_addresses(self.url).urls

    def read_token(self) -> str | None:
        """Return what feeders must send, None if nothing.

        Raises:
            SettingError: The token's file cannot be read, or has no token in it.
        """
        text = self._secret("token")
        if text is not None:
            try:
                checked_token(SecretStr(text))
            except ValueError as error:
                raise SettingError(f"{refusal(type(self), 'token_file')} holds no token: {error}") from error
        return text

    def read_password(self) -> str | None:
        """Return the password for Elasticsearch, None if there is none.

        Raises:
            SettingError: Its file cannot be read, or is empty.
        """
        return self._secret("password")

    def read_api_key(self) -> str | None:
        """Return the API key for Elasticsearch, None if there is none.

        Raises:
            SettingError: Its file cannot be read, or is empty.
        """
        return self._secret("api_key")

    def fingerprint_profile(self) -> Profile:
        """Return the profile that texts are fingerprinted with.

        Raises:
            SettingError: There is none of that name, or no layout; or what is said about words is wrong, or
                does not go with it.
        """
        return self._fingerprint_profile

    # Read once: the files might change, and a compiled dictionary is large.
    @functools.cached_property
    def _fingerprint_profile(self) -> Profile:
        profile = get_profile(self.profile)
        words = {name: getattr(self, name) for name in _WORDS if getattr(self, name) is not None}
        if words and profile.agreement is not None:
            raise SettingError(
                f"{refusal(type(self), next(iter(words)))} goes with the profiles classic and keywords, "
                f"not with {profile.name}"
            )
        return with_words(profile, **words).with_changes(
            layout=get_layout(self.layout),
            max_text_length=self.max_text_length,
            keep_boilerplate=self.keep_boilerplate,
        )

    def fields(self) -> Fields | None:
        """Return the names of the articles' fields; None: those that each index keeps.

        Raises:
            SettingError: The names contradict each other.
        """
        roles = ("text", "title", "time", "source", "link", "site", "dedup")
        names = {role: getattr(self, f"{role}_field") for role in roles}
        given = {role: name for role, name in names.items() if name is not None}
        return Fields(**given) if given else None

    def _secret(self, name: str) -> str | None:
        path: Path | None = getattr(self, f"{name}_file")
        if path is None:
            given: SecretStr | None = getattr(self, name)
            return None if given is None else given.get_secret_value()
        try:
            text = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SettingError(
                f"cannot read {path}, which {refusal(type(self), f'{name}_file')} names: {reason}"
            ) from error
        if not text:
            raise SettingError(f"{path}, which {refusal(type(self), f'{name}_file')} names, is empty")
        return text


def contradictions(settings: "Settings") -> Iterator[str]:
    """Yield what settings contradict each other, and what to do."""

    def called(*names: str) -> str:
        return refusal(type(settings), *names)

    yield from _of_credentials(settings)
    if (settings.tls_cert_file is None) != (settings.tls_key_file is None):
        yield f"{called('tls_cert_file', 'tls_key_file')} go together: give both, or none"
    has_token = settings.token is not None or settings.token_file is not None
    if not (settings.is_loopback or settings.insecure or has_token):
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
    for checked in (settings.fingerprint_profile, settings.fields):
        try:
            checked()
        except SettingError as error:
            yield str(error)


def _of_credentials(settings: "Settings") -> Iterator[str]:
    def called(*names: str) -> str:
        return refusal(type(settings), *names)

    given = {
        name: getattr(settings, name) is not None or getattr(settings, f"{name}_file") is not None
        for name in ("token", "password", "api_key")
    }
    for name in given:
        if getattr(settings, name) is not None and getattr(settings, f"{name}_file") is not None:
            yield f"{called(name, f'{name}_file')} are both given: give one of them"
    if given["password"] != (settings.user is not None):
        yield f"{called('user', 'password_file')} go together: give a user and a password"
    if given["password"] and given["api_key"]:
        yield f"{called('user', 'api_key')} are both given: give a user or a key"
