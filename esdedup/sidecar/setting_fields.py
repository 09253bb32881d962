"""All settings as fields, in the order in which they are documented: defaults, ranges and descriptions."""

import dataclasses
import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode

from esdedup.elastic.limits import DEFAULT_LIMITS
from esdedup.elastic.names import DEFAULT_FOREST, check_index_name
from esdedup.fingerprint.bands import LAYOUTS
from esdedup.fingerprint.profile import DEFAULT, LONGEST_TEXT_LENGTH, MAX_TEXT_LENGTH
from esdedup.sidecar.setting_names import Named
from esdedup.text.hashing import TOKEN_HASHES
from esdedup.web.cors import origin_of

_BETWEEN = re.compile(r"\s*,\s*(?=https?://)", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Addresses:
    """The servers of one cluster."""

    # Without credentials.
    urls: tuple[str, ...]
    # User and password; None if no address has any.
    credentials: tuple[str, str] | None


def checked_address(address: str) -> str:
    """Return the address of one server, without a slash at its end.

    Raises:
        ValueError: It is no address, or has more in it.
    """
    parts = urlsplit(address)
    is_one = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    if not is_one or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("it must be like https://sidecar-1:9500")
    return address.rstrip("/")


def read_addresses(text: str) -> Addresses:
    """Read addresses that are separated by commas.

    Raises:
        ValueError: One is no address, or they name several users. The message quotes nothing.
    """
    urls: list[str] = []
    found: set[tuple[str, str]] = set()
    for address in _BETWEEN.split(text.strip()):
        parts = urlsplit(address)
        if parts.scheme.lower() not in {"http", "https"} or not parts.hostname:
            raise ValueError("an address must be like https://localhost:9200")
        if parts.username is not None:
            found.add((unquote(parts.username), unquote(parts.password or "")))
        urls.append(urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])))
    if len(found) > 1:
        raise ValueError("the addresses name several users; give one")
    return Addresses(tuple(urls), next(iter(found), None))


_MB = 1024 * 1024
# Shorter ones can be guessed.
_MIN_TOKEN_LENGTH = 16


def _split(value: object) -> object:
    """Take the names in an environment variable apart."""
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


def _checked_index(name: str) -> str:
    check_index_name(name)
    return name


def _checked_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(origin_of, origins))


def _checked_url(url: str | None) -> str | None:
    return None if url is None else checked_address(url)


def checked_token(token: SecretStr | None) -> SecretStr | None:
    """Return a token as it is.

    Raises:
        ValueError: It can be guessed, or cannot be sent.
    """
    if token is None:
        return None
    text = token.get_secret_value()
    if len(text) < _MIN_TOKEN_LENGTH or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            f"it must be {_MIN_TOKEN_LENGTH} or more visible ASCII characters, such as the output of "
            "`openssl rand -hex 32`"
        )
    return token


class SettingFields(BaseSettings):
    """What can be set; see `Settings`."""

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
    token: Annotated[SecretStr | None, AfterValidator(checked_token), Named(group="Listening", flag=None)] = (
        Field(default=None, description="What feeders must send in the header X-Esdedup-Token.")
    )
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
        description="Memory for nodes; beyond, the forest is searched in Elasticsearch. Or as 4GiB.",
    )
    most_plausible_leaves: Annotated[int, Named(group="Forest")] = Field(
        default=1_024,
        ge=1,
        description="A warning is logged when a cluster grows beyond this many texts; a power of two.",
    )

    advertise: Annotated[
        str | None, AfterValidator(_checked_url), Named(group="Several sidecars", metavar="URL")
    ] = Field(
        default=None,
        description="Address of this sidecar, which a standby names to callers. Default: the one that it "
        "listens at; none if that is a wildcard such as 0.0.0.0.",
    )
    profile: Annotated[str, Named(group="Fingerprint")] = Field(
        default=DEFAULT.name, description="How texts are fingerprinted: verified, classic or keywords."
    )
    layout: Annotated[str, Named(group="Fingerprint")] = Field(
        default=DEFAULT.layout.name,
        description=f"Band keys of articles and nodes, decided when a forest is made: {', '.join(LAYOUTS)}.",
    )
    segmenter: Annotated[str | None, Named(group="Fingerprint", metavar="NAME")] = Field(
        default=None,
        description="How classic and keywords cut texts into words: jieba (the default), words, or such as "
        "3-grams.",
    )
    dictionary: Annotated[Path | None, Named(group="Fingerprint")] = Field(
        default=None, description="A file with words that jieba keeps whole, in jieba's own format."
    )
    weights: Annotated[str | None, Named(group="Fingerprint", metavar="NAME")] = Field(
        default=None,
        description="Word weights of classic and keywords: tf-idf (the default), tf, or a file, as `esdedup "
        "weights` writes it.",
    )
    stop_words: Annotated[Path | None, Named(group="Fingerprint")] = Field(
        default=None, description="A file with words that weigh nothing, one a line."
    )
    token_hash: Annotated[str | None, Named(group="Fingerprint", metavar="NAME")] = Field(
        default=None,
        description=f"How classic and keywords hash words: {', '.join(TOKEN_HASHES)}. Default: the first.",
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
        default=1,
        ge=1,
        le=256,
        description="Threads that fingerprint texts; they cut no words, as `classic` and `keywords` do.",
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
    allow_origins: Annotated[
        tuple[str, ...],
        NoDecode,
        BeforeValidator(_split),
        AfterValidator(_checked_origins),
        Named(group="Pages", flag="--allow-origin", metavar="ORIGIN"),
    ] = Field(
        default=(),
        description="The origin of another site, such as https://desk.example, whose pages may read what the "
        "pages show (CORS); may be repeated; * for all.",
    )
