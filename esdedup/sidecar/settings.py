"""`Settings`: everything that an operator can set, in one object.

A setting comes from an option, else an environment variable, else the file of ``--config``, else its default.
Options, help and the table in docs/sidecar.md are made from the fields (`ingest/settings.py`).
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
from esdedup.elastic.limits import DEFAULT_LIMITS
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
"""Each may stand in a file of its own, which a setting of its name with ``_file`` names."""
_CREDENTIALS = frozenset(("user", "password", "password_file", "api_key", "api_key_file"))
# Shorter ones can be guessed.
_MIN_TOKEN_LENGTH = 16


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


class Settings(FieldNames, Threads, Fingerprinting, BaseSettings):
    """The settings of one sidecar. Made by `load`, which turns what pydantic raises into `SettingError`."""

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
        # Compose files and the like set what they do not know to nothing.
        env_ignore_empty=True,
        # A field named `validate`, `copy` or the like there will never be.
        protected_namespaces=(),
    )

    config: Annotated[Path | None, Naming(heading="Settings")] = None
    """A TOML file with settings, named as in the output of --print-config."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important messages that are logged, to standard error."""

    url: Annotated[str, Naming(heading="Elasticsearch", others=("ELASTICSEARCH_URL", "ES_URL"))] = (
        "http://localhost:9200"
    )
    """Address of Elasticsearch; may contain user and password. Separate several by commas."""
    user: str | None = None
    """The user that writes the forest. Feeders use their own credentials."""
    password: Annotated[SecretStr | None, Naming(flag=None)] = None
    """The user's password."""
    password_file: Path | None = None
    """A file with the user's password."""
    api_key: Annotated[SecretStr | None, Naming(others=("ES_API_KEY", "ELASTICSEARCH_API_KEY"))] = None
    """API key instead of a user, in the base64 form that Elasticsearch returns."""
    api_key_file: Path | None = None
    """A file with the API key."""
    ca_certs: Annotated[Path | None, Naming(others=("ES_CA_CERTS", "ELASTICSEARCH_CA_CERTS"))] = None
    """Certificate of the authority that signed Elasticsearch's certificate."""
    connect_timeout_s: float = Field(default=5.0, ge=0.1, le=60)
    """Seconds to wait for a connection before the next address is tried."""

    host: Annotated[str, Naming(heading="Listening")] = Field(default="127.0.0.1", min_length=1)
    """Address to listen on."""
    port: int = Field(default=9500, ge=0, le=65_535)
    """Port to listen on; 0 takes a free one."""
    allow_hosts: Annotated[Names, Naming(flag="--allow-host")] = ()
    """A name under which feeders reach the sidecar; may be repeated. Addresses, localhost and --host need
    none. Requests for other names are refused."""
    tls_cert_file: Path | None = None
    """Certificate of the sidecar, with those between it and its authority (PEM)."""
    tls_key_file: Path | None = None
    """The certificate's private key (PEM)."""
    token: Annotated[SecretStr | None, AfterValidator(checked_token), Naming(flag=None)] = None
    """What feeders must send in the header X-Esdedup-Token."""
    token_file: Path | None = None
    """A file with the token."""
    insecure: bool = False
    """Listen beyond this machine without a token."""

    forest: Annotated[str, AfterValidator(check_index_name), Naming(heading="Forest")] = DEFAULT_FOREST
    """Name of the forest's index."""
    retention_days: float | None = Field(default=None, ge=0.001, le=1_000_000)
    """How many days a cluster accepts articles after its last one. Default: the forest's retention, 30 in a
    new forest."""
    change_retention: bool = False
    """Let the retention become shorter than the forest's, so that nodes expire at once."""
    expire_every_s: float = Field(default=3_600.0, ge=1, le=31_536_000)
    """Seconds between deletions of expired nodes."""
    lease_ttl_s: float = Field(default=DEFAULT_TTL_S, ge=1, le=3_600)
    """Seconds after which a standby takes over from an owner that died."""
    lookup: Lookup | None = None
    """How a new forest finds nodes: memory, in that of its owner, or search, in Elasticsearch, for more than
    memory holds. Default: memory; a forest that is there keeps its own."""
    memory_bytes: ByteSize | None = Field(default=None, ge=64 * _MB)
    """Memory for nodes, in bytes or like 4GiB. Beyond it articles are refused, or with the lookup search,
    nodes searched for. Default: half of the machine's, or of the container's."""
    most_plausible_leaves: int = Field(default=1_024, ge=1)
    """A warning is logged when a cluster grows beyond this many texts; a power of two."""

    advertise: Annotated[str | None, AfterValidator(address_of), Naming(heading="Several sidecars")] = None
    """Address of this sidecar, which a standby names to callers. Default: the one that it listens at; none if
    that is a wildcard such as 0.0.0.0."""

    batch_size: Annotated[int, Naming(heading="Batches and limits")] = Field(
        default=1_000, ge=1, le=DEFAULT_LIMITS.bulk_documents
    )
    """Articles that are decided together at most."""
    queue_articles: int = Field(default=20_000, ge=1, le=1_000_000)
    """Articles that may wait; further requests get 429."""
    # As Elasticsearch's own http.max_content_length.
    max_body_bytes: ByteSize = Field(default=ByteSize(100 * _MB), ge=1_000, le=2**31 - 1)
    """Largest body of one request, packed or unpacked; a larger one gets 413."""
    max_bodies_bytes: ByteSize = Field(default=ByteSize(512 * _MB), ge=1_000)
    """Of all requests in progress together; beyond, requests get 429."""
    max_requests: int = Field(default=128, ge=1, le=100_000)
    """Requests in progress; further ones get 429."""
    # With the connections to Elasticsearch, below the usual limit of 1,024 open files.
    max_connections: int = Field(default=500, ge=1, le=100_000)
    """Connections of feeders; further ones are closed."""
    header_timeout_s: float = Field(default=20.0, ge=0.1, le=600)
    """Seconds within which the headers of a request must arrive."""
    request_timeout_s: float = Field(default=300.0, ge=1, le=86_400)
    """Seconds within which the body must then arrive."""
    # Feeders wait for less, but a merge or a reindex through the sidecar may take very long.
    answer_timeout_s: float = Field(default=3_600.0, ge=1, le=86_400)
    """Seconds that the answer may take from then on."""
    # Clients keep connections, and one that is closed while they send costs them a retry.
    keep_alive_s: float = Field(default=600.0, ge=0, le=86_400)
    """Seconds that an idle connection is kept."""
    # With the ten that an end may take without Elasticsearch, what Kubernetes gives by default.
    shutdown_timeout_s: float = Field(default=20.0, ge=0, le=3_600)
    """Seconds that accepted requests have left after SIGTERM."""

    rejected: Literal["refuse", "pass"] = "refuse"
    """What becomes of articles that can get no root, such as those without a text: they are refused, or pass
    without one. Both are logged, by their ids, and counted."""

    unknown_index: Literal["pass", "warn", "refuse"] = "warn"
    """What becomes of what is sent to an index that was not set up: it is refused, or passes without roots,
    with a warning for each index or without one. It is counted."""

    pages: Annotated[bool, Naming(heading="Pages")] = False
    """Serve the pages of `esdedup serve` as well, under /pages."""
    pages_index: Annotated[str | None, Naming(flag="--index")] = None
    """Index, alias or pattern that the pages show, and that is read if a request names none."""
    time_zone: Annotated[str, AfterValidator(lambda name: zone_named(name).key)] = "UTC"
    """Where days are meant that are asked for, and in which times are shown, unless the browser says another
    zone: an IANA name."""
    allow_origins: Annotated[Origins, Naming(flag="--allow-origin")] = ()
    """The origin of another site, such as https://desk.example, whose pages may read what the pages show
    (CORS); may be repeated; * for all."""

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
            raise SettingError(f"there is no file {config}, which {_called('config')} names")
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
        """Move user and password from the addresses to their own fields, so that no address is secret."""
        if not isinstance(given.get("url"), str):
            return given
        try:
            addresses = [urlsplit(each) for each in BETWEEN_ADDRESSES.split(given["url"].strip())]
        except ValueError:
            addresses = [urlsplit("")]
        if not all(each.scheme.lower() in {"http", "https"} and each.hostname for each in addresses):
            # Neither it nor that error is quoted: a password may be in it.
            raise ValueError(f"{_called('url')}: an address must be like https://localhost:9200")
        users = {(each.username, each.password or "") for each in addresses if each.username is not None}
        if len(users) > 1:
            raise ValueError(f"{_called('url')}: the addresses name several users; give one")
        plain = [urlunsplit(each._replace(netloc=each.netloc.rpartition("@")[2])) for each in addresses]
        found = {**given, "url": ",".join(plain)}
        # What is set for the sidecar counts more than the user in an address, which is often that of feeders.
        if users and not given.keys() & _CREDENTIALS:
            found["user"], found["password"] = map(unquote, users.pop())
        return found

    @model_validator(mode="before")
    @classmethod
    def _read_secrets(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Take secrets from the files that are named; a value that does not name a file is refused later."""
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
                raise ValueError(f"cannot read {path}, which {called} names: {reason}") from None
            if not text:
                raise ValueError(f"{path}, which {called} names, is empty")
            read[name] = SecretStr(text)
        return read

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
        """Return the address at which the sidecar, listening on a port, is reached; None if unknown."""
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
            f"the file that {_called('config')} names cannot be read, or is not TOML: {error}"
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
        yield f"{_called('tls_cert_file', 'tls_key_file')} go together: give both, or none"
    if not (settings.is_loopback or settings.insecure or settings.token):
        yield (
            f"{_called('host')} is {settings.host!r}, which other machines reach, and there is no token: "
            f"anyone there could write articles. Name one by {_called('token_file')}, or allow that with "
            f"{_called('insecure')}"
        )
    if settings.most_plausible_leaves.bit_count() != 1:
        yield (
            f"{_called('most_plausible_leaves')} is {settings.most_plausible_leaves}: it must be a power of "
            "two, such as 1024"
        )
    if settings.max_bodies_bytes < settings.max_body_bytes:
        yield (
            f"{_called('max_bodies_bytes')} is {settings.max_bodies_bytes}: it must be at least what one "
            f"body may have, {settings.max_body_bytes} by {_called('max_body_bytes')}"
        )
    if settings.pages and settings.pages_index is None:
        yield f"{_called('pages', 'pages_index')} go together: name the index that the pages show"
    if settings.allow_origins and not settings.pages:
        yield f"{_called('allow_origins')} concerns the pages: give {_called('pages')} too, or leave it out"
    for name in ("ca_certs", "tls_cert_file", "tls_key_file", "overrides_file"):
        path = getattr(settings, name)
        if path is not None and not path.exists():
            yield f"there is no file {path}, which {_called(name)} names"
    for read in (lambda: settings.fingerprint_profile, lambda: fields_given(settings)):
        try:
            read()
        except SettingError as error:
            yield str(error)


def _refuse_unknown_variables() -> None:
    """Raise `SettingError` if the environment has a variable of ours that is not a setting."""
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
    """Yield messages about invalid settings, by the names under which these were given."""
    settings = {each.name: each for each in settings_of(Settings)}
    for each in error.errors(include_url=False):
        name = str(each["loc"][0]) if each["loc"] else None
        reason = str(each.get("ctx", {}).get("error", "")) if each["type"] == "value_error" else ""
        if name is None:
            yield reason
        elif name not in settings:
            # Options are made from the fields, so that only the file can have others.
            yield f"the file of settings has {name!r}, which is not a setting{_nearest(name, set(settings))}"
        else:
            setting = settings[name]
            given = f" is {each['input']!r}"
            if setting.is_secret:
                given = " or what is in its file cannot be used"
            elif name not in options and not any(map(os.environ.get, setting.variables)):
                given = f", {name!r} in the file of settings,{given}"
            yield f"{_called(name)}{given}: {reason or f'it must be {setting.allowed}'}"
