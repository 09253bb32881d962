"""`Settings`: everything that an operator can set, in one object.

A setting comes from, in this order: an option of the command, an environment variable, the file that
``--config`` names, its default. The options, their help, and the table in docs/sidecar.md are made from the
fields (`setting_names.py`); `load` (`loading.py`) reads them and says what is wrong.
"""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, InitSettingsSource, NoDecode, SettingsConfigDict
from pydantic_settings.sources import PydanticBaseSettingsSource, TomlConfigSettingsSource

from esdedup.elastic.limits import DEFAULT_LIMITS
from esdedup.elastic.names import DEFAULT_FOREST, check_index_name
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, LONGEST_TEXT_LENGTH, MAX_TEXT_LENGTH, Profile, get_profile
from esdedup.sidecar.addresses import read_addresses
from esdedup.sidecar.setting_names import Named, other_variables, refusal
from esdedup.sidecar.setting_rules import contradictions

_MB = 1024 * 1024
# Shorter ones can be guessed.
_MIN_TOKEN_LENGTH = 16
_CREDENTIALS = {"user", "password", "password_file", "api_key", "api_key_file"}


def _split(value: object) -> object:
    """Take the names in an environment variable apart."""
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


def _checked_index(name: str) -> str:
    check_index_name(name)
    return name


def _checked_token(token: SecretStr | None) -> SecretStr | None:
    if token is None:
        return None
    text = token.get_secret_value()
    if len(text) < _MIN_TOKEN_LENGTH or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            f"it must be {_MIN_TOKEN_LENGTH} or more visible ASCII characters, such as the output of "
            "`openssl rand -hex 32`"
        )
    return token


class Settings(BaseSettings):
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

    config: Annotated[Path | None, Named(group="Settings")] = Field(
        default=None, description="A TOML file with settings, named as in the output of --print-config."
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Named(group="Settings")] = Field(
        default="info", description="The least important messages that are logged, to standard error."
    )

    url: Annotated[str, Named(group="Elasticsearch", others=("ELASTICSEARCH_URL", "ES_URL"))] = Field(
        default="http://localhost:9200",
        description="Address of Elasticsearch; may contain user and password. Separate several by commas.",
    )
    user: Annotated[str | None, Named(group="Elasticsearch")] = Field(
        default=None, description="The user that writes the forest. Feeders use their own credentials."
    )
    password: Annotated[SecretStr | None, Named(group="Elasticsearch", flag=None)] = Field(
        default=None, description="The user's password."
    )
    password_file: Annotated[Path | None, Named(group="Elasticsearch")] = Field(
        default=None, description="A file with the user's password."
    )
    api_key: Annotated[
        SecretStr | None, Named(group="Elasticsearch", others=("ES_API_KEY", "ELASTICSEARCH_API_KEY"))
    ] = Field(
        default=None, description="API key instead of a user, in the base64 form that Elasticsearch returns."
    )
    api_key_file: Annotated[Path | None, Named(group="Elasticsearch")] = Field(
        default=None, description="A file with the API key."
    )
    ca_certs: Annotated[
        Path | None, Named(group="Elasticsearch", others=("ES_CA_CERTS", "ELASTICSEARCH_CA_CERTS"))
    ] = Field(
        default=None, description="Certificate of the authority that signed Elasticsearch's certificate."
    )
    connect_timeout_s: Annotated[float, Named(group="Elasticsearch")] = Field(
        default=5.0,
        ge=0.1,
        le=60,
        description="Seconds to wait for a connection before the next address is tried.",
    )

    host: Annotated[str, Named(group="Listening")] = Field(
        default="127.0.0.1", min_length=1, description="Address to listen on."
    )
    port: Annotated[int, Named(group="Listening")] = Field(
        default=9500, ge=0, le=65_535, description="Port to listen on; 0 takes a free one."
    )
    allow_hosts: Annotated[
        tuple[str, ...],
        NoDecode,
        BeforeValidator(_split),
        Named(group="Listening", flag="--allow-host", metavar="NAME"),
    ] = Field(
        default=(),
        description="A name under which feeders reach the sidecar; may be repeated. Addresses, localhost and "
        "--host need none. Requests for other names are refused.",
    )
    tls_cert_file: Annotated[Path | None, Named(group="Listening")] = Field(
        default=None, description="Certificate of the sidecar, with those between it and its authority (PEM)."
    )
    tls_key_file: Annotated[Path | None, Named(group="Listening")] = Field(
        default=None, description="The certificate's private key (PEM)."
    )
    token: Annotated[
        SecretStr | None, AfterValidator(_checked_token), Named(group="Listening", flag=None)
    ] = Field(default=None, description="What feeders must send in the header X-Esdedup-Token.")
    token_file: Annotated[Path | None, Named(group="Listening")] = Field(
        default=None, description="A file with the token."
    )
    insecure: Annotated[bool, Named(group="Listening")] = Field(
        default=False, description="Listen beyond this machine without a token."
    )

    forest: Annotated[str, AfterValidator(_checked_index), Named(group="Forest")] = Field(
        default=DEFAULT_FOREST, description="Name of the forest's index."
    )
    retention_days: Annotated[float | None, Named(group="Forest")] = Field(
        default=None,
        ge=0.001,
        le=1_000_000,
        description="How many days a cluster accepts articles after its last one. Default: the forest's "
        "retention, 30 in a new forest.",
    )
    expire_every_s: Annotated[float, Named(group="Forest")] = Field(
        default=3_600, ge=1, le=31_536_000, description="Seconds between deletions of expired nodes."
    )
    lease_ttl_s: Annotated[float, Named(group="Forest")] = Field(
        default=30.0,
        ge=1,
        le=3_600,
        description="Seconds after which a standby takes over from an owner that died.",
    )
    memory_bytes: Annotated[ByteSize, Named(group="Forest")] = Field(
        default=ByteSize(2 * 1024 * _MB),
        ge=64 * _MB,
        description="Memory for nodes; a forest beyond it is searched in Elasticsearch. Or as 4GiB.",
    )
    most_plausible_leaves: Annotated[int, Named(group="Forest")] = Field(
        default=1_024,
        ge=1,
        description="A warning is logged when a cluster grows beyond this many texts; a power of two.",
    )

    profile: Annotated[str, Named(group="Fingerprint")] = Field(
        default=DEFAULT.name, description="How texts are fingerprinted: verified, classic or keywords."
    )
    max_text_length: Annotated[int, Named(group="Fingerprint")] = Field(
        default=MAX_TEXT_LENGTH,
        ge=1,
        le=LONGEST_TEXT_LENGTH,
        description="How many characters of a text are fingerprinted; what lies beyond is not compared.",
    )
    keep_boilerplate: Annotated[bool, Named(group="Fingerprint")] = Field(
        default=False, description="Fingerprint pages whole, with their menus and disclaimers."
    )
    pins_file: Annotated[Path | None, Named(group="Fingerprint", flag="--pins")] = Field(
        default=None, description="Passages that are boilerplate or text, whatever was learned (JSON Lines)."
    )
    workers: Annotated[int, Named(group="Fingerprint")] = Field(
        default=1, ge=1, le=256, description="Processes that fingerprint texts."
    )

    text_field: Annotated[str | None, Named(group="Field names")] = Field(
        default=None,
        description="The text. This and the following: default is what each index keeps from `setup`.",
    )
    title_field: Annotated[str | None, Named(group="Field names")] = Field(
        default=None, description="The title."
    )
    time_field: Annotated[str | None, Named(group="Field names")] = Field(
        default=None, description="The publication time."
    )
    source_field: Annotated[str | None, Named(group="Field names")] = Field(
        default=None, description="The publisher."
    )
    link_field: Annotated[str | None, Named(group="Field names")] = Field(
        default=None, description="The web address."
    )
    site_field: Annotated[str | None, Named(group="Field names")] = Field(
        default=None, description="The site."
    )
    dedup_field: Annotated[str | None, Named(group="Field names")] = Field(
        default=None, description="The object that esdedup writes."
    )

    batch_size: Annotated[int, Named(group="Batches and limits")] = Field(
        default=1_000,
        ge=1,
        le=DEFAULT_LIMITS.bulk_documents,
        description="Articles that are decided together at most.",
    )
    batch_wait_ms: Annotated[float, Named(group="Batches and limits")] = Field(
        default=5.0, ge=0, le=1_000, description="Milliseconds that a batch waits for more articles."
    )
    queue_articles: Annotated[int, Named(group="Batches and limits")] = Field(
        default=20_000, ge=1, le=1_000_000, description="Articles that may wait; further requests get 429."
    )
    max_body_bytes: Annotated[ByteSize, Named(group="Batches and limits")] = Field(
        # As Elasticsearch's own http.max_content_length.
        default=ByteSize(100 * _MB),
        ge=1_000,
        le=2**31 - 1,
        description="Of one request, also when unpacked; a larger one gets 413.",
    )
    max_bodies_bytes: Annotated[ByteSize, Named(group="Batches and limits")] = Field(
        default=ByteSize(512 * _MB),
        ge=1_000,
        description="Of all requests in progress together; beyond, requests get 429.",
    )
    max_requests: Annotated[int, Named(group="Batches and limits")] = Field(
        default=128, ge=1, le=100_000, description="Requests in progress; further ones get 429."
    )
    max_connections: Annotated[int, Named(group="Batches and limits")] = Field(
        # With as many requests, and the connections to Elasticsearch that these need, below the 1,024 files
        # that a process may usually open.
        default=500,
        ge=1,
        le=100_000,
        description="Connections of feeders; further ones are closed.",
    )
    header_timeout_s: Annotated[float, Named(group="Batches and limits")] = Field(
        default=20.0, ge=0.1, le=600, description="Seconds within which the headers of a request must arrive."
    )
    request_timeout_s: Annotated[float, Named(group="Batches and limits")] = Field(
        default=300.0, ge=1, le=86_400, description="Seconds within which the body must then arrive."
    )
    answer_timeout_s: Annotated[float, Named(group="Batches and limits")] = Field(
        # Feeders wait for less; but whoever merges or reindexes through the sidecar may wait for very long.
        default=3_600.0,
        ge=1,
        le=86_400,
        description="Seconds that the answer may take from then on.",
    )
    keep_alive_s: Annotated[float, Named(group="Batches and limits")] = Field(
        # Clients keep connections, and one that is closed while they send costs them a retry.
        default=600.0,
        ge=0,
        le=86_400,
        description="Seconds that an idle connection is kept.",
    )
    shutdown_timeout_s: Annotated[float, Named(group="Batches and limits")] = Field(
        default=30.0, ge=0, le=3_600, description="Seconds that accepted requests have left after SIGTERM."
    )

    pages: Annotated[bool, Named(group="Pages")] = Field(
        default=False, description="Serve the pages of `esdedup serve` as well, under /pages."
    )
    pages_index: Annotated[str | None, Named(group="Pages", flag="--index")] = Field(
        default=None,
        description="Index, alias or pattern that the pages show, and that is read if a request names none.",
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
            TomlConfigSettingsSource(settings_cls, config),
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
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"

    @property
    def hosts(self) -> frozenset[str]:
        """The names under which the sidecar is reached, besides localhost and addresses."""
        return frozenset(name.lower() for name in (self.host, *self.allow_hosts))

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
                _checked_token(SecretStr(text))
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
            SettingError: There is none of that name.
        """
        return get_profile(self.profile).with_changes(
            max_text_length=self.max_text_length, keep_boilerplate=self.keep_boilerplate
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
