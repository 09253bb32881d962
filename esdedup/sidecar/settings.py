"""`Settings`: all settings of a sidecar, in one object.

In order of precedence, settings come from options, environment variables, the file of ``--config`` and the
defaults. Options, help and the table in docs/sidecar.md are generated from the fields (`ingest/settings.py`).
"""

import difflib
import functools
import logging
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ByteSize,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, InitSettingsSource, NoDecode, SettingsConfigDict
from pydantic_settings.sources import PydanticBaseSettingsSource, TomlConfigSettingsSource

from esdedup.elastic.client import BETWEEN_ADDRESSES
from esdedup.elastic.forest.lease import DEFAULT_TTL_S
from esdedup.elastic.forest.meta import Lookup
from esdedup.elastic.limits import DEFAULT_LIMITS, MAX_SHARDS
from esdedup.elastic.names import DEFAULT_FOREST, check_index_name
from esdedup.errors import SettingError
from esdedup.fields import fields_given
from esdedup.ingest.settings import FieldNames, Fingerprinting, Naming, Threads, names_of, settings_of
from esdedup.origins import address_of, is_loopback, is_wildcard, origin_of
from esdedup.times import zone_named

log = logging.getLogger("esdedup")

PREFIX = "ESDEDUP_SIDECAR_"
"""Prefix of our environment variables."""
_MB = 1024 * 1024
SECRETS = ("token", "password", "api_key")
"""Secrets that may be read from the file given by the setting with the suffix ``_file``."""
_CREDENTIALS = frozenset(("user", "password", "password_file", "api_key", "api_key_file"))
# Shorter tokens are too easy to guess.
_MIN_TOKEN_LENGTH = 16


def checked_token(token: SecretStr | None) -> SecretStr | None:
    """Return the token; raise `ValueError` if it is too short or cannot be sent in a header."""
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


class Settings(FieldNames, Threads, Fingerprinting, BaseSettings):
    """The settings of one sidecar, created by `load`, which raises pydantic's errors as `SettingError`."""

    headings: ClassVar[tuple[str, ...]] = (
        *("Settings", "Elasticsearch", "Listening", "Forest", "Several sidecars", "Fingerprint"),
        *("Field names", "Batches and limits", "Pages"),
    )

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        env_prefix=PREFIX,
        # Compose files and the like set missing values to the empty string.
        env_ignore_empty=True,
        # No field will ever be named `validate`, `copy` or the like.
        protected_namespaces=(),
    )

    config: Annotated[Path | None, Naming(heading="Settings")] = None
    """A TOML file with settings, named as in the output of --print-config."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level of the messages logged to standard error."""
    log_format: Literal["text", "json"] = "text"
    """Format of the log: lines of text, or a JSON object for each message."""

    url: Annotated[str, Naming(heading="Elasticsearch", others=("ELASTICSEARCH_URL", "ES_URL"))] = (
        "http://localhost:9200"
    )
    """Address of Elasticsearch; may contain user and password. Separate several addresses by commas."""
    user: str | None = None
    """The user that writes the forest. Feeders use their own credentials."""
    password: Annotated[SecretStr | None, Naming(flag=None)] = None
    """The user's password."""
    password_file: Path | None = None
    """A file with the user's password."""
    api_key: Annotated[SecretStr | None, Naming(others=("ES_API_KEY", "ELASTICSEARCH_API_KEY"))] = None
    """API key to use instead of a user, in the base64 form that Elasticsearch returns."""
    api_key_file: Path | None = None
    """A file with the API key."""
    ca_certs: Annotated[Path | None, Naming(others=("ES_CA_CERTS", "ELASTICSEARCH_CA_CERTS"))] = None
    """Certificate of the authority that signed Elasticsearch's certificate."""
    connect_timeout_s: float = Field(default=5.0, ge=0.1, le=60)
    """Seconds to wait for a connection before the next address is tried."""

    host: Annotated[str, Naming(heading="Listening")] = Field(default="127.0.0.1", min_length=1)
    """Address to listen on."""
    port: int = Field(default=9500, ge=0, le=65_535)
    """Port to listen on; 0 picks a free port."""
    allow_hosts: Annotated[Names, Naming(flag="--allow-host")] = ()
    """A host name that feeders use for the sidecar; may be repeated. IP addresses, localhost and --host
    are always allowed. Requests for other hosts are refused."""
    tls_cert_file: Path | None = None
    """The sidecar's certificate and any intermediate certificates (PEM)."""
    tls_key_file: Path | None = None
    """The certificate's private key (PEM)."""
    token: Annotated[SecretStr | None, AfterValidator(checked_token), Naming(flag=None)] = None
    """Token that feeders must send in the header X-Esdedup-Token."""
    token_file: Path | None = None
    """A file with the token."""
    insecure: bool = False
    """Allow other machines to send requests without a token."""

    forest: Annotated[str, AfterValidator(check_index_name), Naming(heading="Forest")] = DEFAULT_FOREST
    """Name of the forest's index."""
    retention_days: float | None = Field(default=None, ge=0.001, le=1_000_000)
    """For how many days after its last article a cluster accepts more articles. Default: the forest's
    retention; 30 for a new forest."""
    change_retention: bool = False
    """Allow a retention shorter than the forest's; older nodes then expire immediately."""
    expire_every_s: float = Field(default=3_600.0, ge=1, le=31_536_000)
    """Seconds between deletions of expired nodes."""
    lease_ttl_s: float = Field(default=DEFAULT_TTL_S, ge=1, le=3_600)
    """Seconds after which a standby takes over from an owner that died."""
    lookup: Lookup | None = None
    """Where a new forest looks for nodes: in the owner's memory, or by search in Elasticsearch, for forests
    too large for memory. Default: memory; an existing forest keeps its own setting."""
    forest_shards: int | None = Field(default=None, ge=1, le=MAX_SHARDS)
    """Number of primary shards of a new forest; more than 1 needs the lookup `search`. Default: 1."""
    memory_bytes: ByteSize | None = Field(default=None, ge=64 * _MB)
    """Memory limit for nodes, such as 4GiB, or in bytes. Above it, articles are refused; with the lookup
    `search`, nodes are searched for in Elasticsearch. Default: half of the host's or container's memory."""
    most_plausible_leaves: int = Field(default=1_024, ge=1)
    """Log a warning when a cluster grows beyond this many texts; must be a power of two."""

    advertise: Annotated[str | None, AfterValidator(address_of), Naming(heading="Several sidecars")] = None
    """Address of this sidecar that standbys report to callers. Default: the address that it listens on; none
    for a wildcard such as 0.0.0.0."""

    batch_size: Annotated[int, Naming(heading="Batches and limits")] = Field(
        default=1_000, ge=1, le=DEFAULT_LIMITS.bulk_documents
    )
    """Maximum number of articles that are assigned together."""
    queue_articles: int = Field(default=20_000, ge=1, le=1_000_000)
    """Maximum number of articles in the queue; further requests get 429."""
    # The default of Elasticsearch's http.max_content_length.
    max_body_bytes: ByteSize = Field(default=ByteSize(100 * _MB), ge=1_000, le=2**31 - 1)
    """Maximum size of a request's body, compressed or decompressed; larger requests get 413."""
    max_bodies_bytes: ByteSize = Field(default=ByteSize(512 * _MB), ge=1_000)
    """Maximum total size of the bodies of all requests in progress; further requests get 429."""
    max_requests: int = Field(default=128, ge=1, le=100_000)
    """Maximum number of requests in progress; further requests get 429."""
    # With the connections to Elasticsearch, the total is below the usual limit of 1,024 open files.
    max_connections: int = Field(default=500, ge=1, le=100_000)
    """Maximum number of connections from feeders; further connections are closed."""
    header_timeout_s: float = Field(default=20.0, ge=0.1, le=600)
    """Seconds within which the headers of a request must arrive."""
    request_timeout_s: float = Field(default=300.0, ge=1, le=86_400)
    """Seconds within which the body must arrive after the headers."""
    # Feeders usually time out earlier, but a merge or reindex through the sidecar may take a very long time.
    answer_timeout_s: float = Field(default=3_600.0, ge=1, le=86_400)
    """Seconds that the response may take after the whole request has arrived."""
    # Clients reuse connections, and must retry if one is closed while they send.
    keep_alive_s: float = Field(default=600.0, ge=0, le=86_400)
    """Seconds after which an idle connection is closed."""
    # Shutdown takes up to ten more seconds if Elasticsearch is down; Kubernetes allows 30 seconds by default.
    shutdown_timeout_s: float = Field(default=20.0, ge=0, le=3_600)
    """Seconds after SIGTERM within which accepted requests must be answered."""

    rejected: Literal["refuse", "pass"] = "refuse"
    """Whether articles that cannot get a root, such as articles without a text, are refused or passed on
    without a root. In both cases, they are counted, and logged with their ids."""

    unknown_index: Literal["pass", "warn", "refuse"] = "warn"
    """Whether articles for an index that was not set up are refused, or passed on without roots: `warn` logs
    a warning for each index, `pass` logs nothing. Such articles are always counted."""

    pages: Annotated[bool, Naming(heading="Pages")] = False
    """Also serve the pages of `esdedup serve`, under /pages."""
    pages_index: Annotated[str | None, Naming(flag="--index")] = None
    """Index, alias or pattern that the pages show, and that the API reads if a request names no index."""
    time_zone: Annotated[str, AfterValidator(lambda name: zone_named(name).key)] = "UTC"
    """IANA name of the zone in which dates are read and times are shown, unless the browser reports another
    zone."""
    allow_origins: Annotated[Origins, Naming(flag="--allow-origin")] = ()
    """The origin of another site, such as https://desk.example, whose pages may read the data under /pages
    (CORS); may be repeated; * allows all sites."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources of settings in order of precedence: options, environment, file."""
        config = {**env_settings(), **init_settings()}.get("config")
        if config is not None and not Path(config).is_file():
            raise SettingError(f"{_called('config')}: there is no file {config}")
        others = {
            setting.name: given[0]
            for setting in settings_of(Settings)
            if (given := [os.environ[name] for name in setting.variables[1:] if os.environ.get(name)])
        }
        return (
            init_settings,
            env_settings,
            InitSettingsSource(settings_cls, others),
            TomlConfigSettingsSource(cls, config),
        )

    @model_validator(mode="before")
    @classmethod
    def _take_credentials_from_addresses(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Move user and password from the addresses to their own fields, so that addresses may be logged."""
        if not isinstance(given.get("url"), str):
            return given
        try:
            addresses = [urlsplit(each) for each in BETWEEN_ADDRESSES.split(given["url"].strip())]
        except ValueError:
            addresses = [urlsplit("")]
        if not all(each.scheme.lower() in {"http", "https"} and each.hostname for each in addresses):
            # Do not quote the address or the error: they may contain a password.
            raise ValueError(f"{_called('url')}: an address must look like https://localhost:9200")
        users = {(each.username, each.password or "") for each in addresses if each.username is not None}
        if len(users) > 1:
            raise ValueError(f"{_called('url')}: the addresses name several users; give one")
        plain = [urlunsplit(each._replace(netloc=each.netloc.rpartition("@")[2])) for each in addresses]
        found = {**given, "url": ",".join(plain)}
        # The sidecar's own credentials take precedence: feeders often share the address and its user.
        if users and not given.keys() & _CREDENTIALS:
            found["user"], found["password"] = map(unquote, users.pop())
        return found

    @model_validator(mode="before")
    @classmethod
    def _read_secrets(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Read secrets from their files; a value that is not a path is rejected by later validation."""
        read = dict(given)
        for name in SECRETS:
            path = given.get(f"{name}_file")
            if not isinstance(path, str | Path):
                continue
            called = _called(f"{name}_file")
            if given.get(name) is not None:
                raise ValueError(f"{_called(name)} and {called} are both given: give one of them")
            try:
                text = Path(path).read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                raise ValueError(f"{called}: cannot read {path}: {reason}") from None
            if not text:
                raise ValueError(f"{called}: the file {path} is empty")
            read[name] = SecretStr(text)
        return read

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can reach the sidecar."""
        return is_loopback(self.host)

    @property
    def hosts(self) -> frozenset[str]:
        """The host names that callers may use for the sidecar, besides localhost and IP addresses."""
        advertised = urlsplit(self.advertise or "").hostname or self.host
        return frozenset(name.lower() for name in (self.host, advertised, *self.allow_hosts))

    def reached_at(self, port: int) -> str | None:
        """Return the address at which callers reach the sidecar on this port; None if unknown."""
        if self.advertise is not None or is_wildcard(self.host):
            return self.advertise
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert_file else 'http'}://{host}:{port}"

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of Elasticsearch, without credentials."""
        return tuple(BETWEEN_ADDRESSES.split(self.url))


_called = functools.partial(names_of, Settings)


def load(options: Mapping[str, Any]) -> Settings:
    """Return the settings from options, the environment and the file; raises `SettingError`."""
    _refuse_unknown_variables()
    try:
        settings = Settings(**options)
    except ValidationError as error:
        raise SettingError("\n".join(_messages(error, options))) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingError(
            f"{_called('config')}: the file cannot be read, or is not TOML: {error}"
        ) from error
    if found := list(_contradictions(settings)):
        raise SettingError("\n".join(found))
    return settings


def _contradictions(settings: Settings) -> Iterator[str]:
    if (settings.password is None) != (settings.user is None):
        yield f"{_called('user', 'password_file')} go together: give a user and a password"
    if settings.password is not None and settings.api_key is not None:
        yield f"{_called('user', 'api_key')} are both given: give a user or a key"
    if (settings.tls_cert_file is None) != (settings.tls_key_file is None):
        yield f"{_called('tls_cert_file', 'tls_key_file')} go together: give both or neither"
    if not (settings.is_loopback or settings.insecure or settings.token):
        yield (
            f"{_called('host')} is {settings.host!r}, which other machines can reach, and there is no token: "
            f"anyone there could write articles. Set a token with {_called('token_file')}, or allow this "
            f"with {_called('insecure')}"
        )
    if settings.most_plausible_leaves.bit_count() != 1:
        yield (
            f"{_called('most_plausible_leaves')} is {settings.most_plausible_leaves}: it must be a power of "
            "two, such as 1024"
        )
    if settings.max_bodies_bytes < settings.max_body_bytes:
        yield (
            f"{_called('max_bodies_bytes')} is {settings.max_bodies_bytes}: it must be at least "
            f"{_called('max_body_bytes')}, which is {settings.max_body_bytes}"
        )
    if settings.pages and settings.pages_index is None:
        yield f"{_called('pages', 'pages_index')} go together: name the index that the pages show"
    if settings.allow_origins and not settings.pages:
        yield f"{_called('allow_origins')} applies to the pages only: give {_called('pages')} too, or omit it"
    for name in ("ca_certs", "tls_cert_file", "tls_key_file", "overrides_file"):
        path = getattr(settings, name)
        if path is not None and not path.exists():
            yield f"{_called(name)}: there is no file {path}"
    for read in (lambda: settings.fingerprint_profile, lambda: fields_given(settings)):
        try:
            read()
        except SettingError as error:
            yield str(error)


def _refuse_unknown_variables() -> None:
    """Raise `SettingError` if an environment variable with our prefix is not a setting."""
    known = {variable for setting in settings_of(Settings) for variable in setting.variables}
    for variable, value in os.environ.items():
        if not variable.upper().startswith(PREFIX):
            continue
        if value.startswith("tcp://"):
            raise SettingError(
                f"{variable} is set by Kubernetes for a service named esdedup-sidecar: rename the service, "
                "or set enableServiceLinks: false"
            )
        if variable.upper() not in known:
            raise SettingError(f"there is no setting {variable}{_nearest(variable.upper(), known)}")


def _nearest(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]}?" if near else "; `esdedup sidecar --help` names all settings"


def _messages(error: ValidationError, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each invalid setting, with the name under which it was given."""
    settings = {each.name: each for each in settings_of(Settings)}
    for each in error.errors(include_url=False):
        name = str(each["loc"][0]) if each["loc"] else None
        reason = str(each.get("ctx", {}).get("error", "")) if each["type"] == "value_error" else ""
        if name is None:
            yield reason
        elif name not in settings:
            # Options are generated from the fields, so only the file can contain unknown names.
            yield f"the settings file has {name!r}, which is not a setting{_nearest(name, set(settings))}"
        else:
            setting = settings[name]
            given = f" is {each['input']!r}"
            if setting.is_secret:
                given = " or the content of its file is invalid"
            elif name not in options and not any(map(os.environ.get, setting.variables)):
                given = f", {name!r} in the settings file,{given}"
            yield f"{_called(name)}{given}: {reason or f'it must be {setting.allowed}'}"
