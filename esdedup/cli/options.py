"""The options that several commands share, written once."""

import dataclasses
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from esdedup.cli.command import OptionGroup
from esdedup.cli.word_options import Words
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import (
    DEFAULT,
    LONGEST_TEXT_LENGTH,
    MAX_KEYWORDS,
    MAX_TEXT_LENGTH,
    Profile,
    get_profile,
)
from esdedup.reading.paging import MAX_SIZE

if TYPE_CHECKING:
    from elasticsearch import AsyncElasticsearch, Elasticsearch

    from esdedup.boilerplate.pins import Pins

_SERVER = "Server"
_FIELDS = "Field names"
_FINGERPRINT = "Fingerprint"
_FOREST = "Forest"

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="JSON Lines, a JSON array, or CSV with a header; plain or gzip; - is standard input.",
        show_default=False,
    ),
]
Index = Annotated[str, typer.Option("--index", help="Index of the articles, or an alias.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
TextField = Annotated[
    str, typer.Option("--text-field", help="The text; it is fingerprinted.", rich_help_panel=_FIELDS)
]
IdField = Annotated[str, typer.Option("--id-field", help="The article's id.", rich_help_panel=_FIELDS)]
LearnFirst = Annotated[
    bool,
    typer.Option(
        "--learn-first",
        help="Read the files twice, 40,000 articles at a time: first learn what is boilerplate in them, then "
        "assign them.",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        "--workers",
        min=1,
        max=256,
        help="How many threads fingerprint texts, with the same results. They cut no words, as classic and "
        "keywords do.",
    ),
]
RetentionDays = Annotated[
    float | None,
    typer.Option(
        "--retention-days",
        min=0.001,
        help="How many days a cluster accepts articles after its last one. Default: the forest's "
        "retention, 30 in a new forest.",
        show_default=False,
    ),
]
Lookup = Annotated[
    Literal["memory", "search"] | None,
    typer.Option(
        "--lookup",
        help="How a new forest finds nodes: all are in the memory of its owner, or they are searched for "
        "in Elasticsearch, for more than memory holds. Default: memory.",
        show_default=False,
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Server(OptionGroup):
    """How to reach Elasticsearch."""

    url: Annotated[
        str,
        typer.Option(
            "--url",
            envvar=["ELASTICSEARCH_URL", "ES_URL"],
            help="Address of Elasticsearch; may contain user and password. Separate several by commas.",
            rich_help_panel=_SERVER,
        ),
    ] = "http://localhost:9200"
    api_key: Annotated[
        str | None,
        typer.Option(
            "--api-key",
            envvar=["ES_API_KEY", "ELASTICSEARCH_API_KEY"],
            help="API key, in the base64 form that Elasticsearch returns.",
            rich_help_panel=_SERVER,
        ),
    ] = None
    ca_certs: Annotated[
        Path | None,
        typer.Option(
            "--ca-certs",
            envvar=["ES_CA_CERTS", "ELASTICSEARCH_CA_CERTS"],
            help="Certificate of the authority that signed the server's certificate.",
            rich_help_panel=_SERVER,
        ),
    ] = None

    # The client is imported here, since commands that need no server share this file.

    def connect(self) -> "Elasticsearch":
        """Return a client, which the caller closes."""
        from esdedup.elastic.client import connect

        return connect(self.url, api_key=self.api_key, ca_certs=self.ca_certs)

    def connect_async(self) -> "AsyncElasticsearch":
        """Return an async client, which the caller closes."""
        from esdedup.elastic.client import connect_async

        return connect_async(self.url, api_key=self.api_key, ca_certs=self.ca_certs)


def _field_option(role: str, text: str, *, default: str | None = None) -> Any:
    default = default or getattr(Fields, role)
    return typer.Option(
        f"--{role}-field",
        help=f"{text} Default: the name that the index keeps from `setup`, else {default}.",
        rich_help_panel=_FIELDS,
        show_default=False,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FieldNames(OptionGroup):
    """The names of the fields that hold an article's text, title and so on; None if not given."""

    text: Annotated[str | None, _field_option("text", "The text; it is fingerprinted.")] = None
    title: Annotated[str | None, _field_option("title", "The title.")] = None
    time: Annotated[str | None, _field_option("time", "The publication time.")] = None
    source: Annotated[str | None, _field_option("source", "The publisher.")] = None
    link: Annotated[str | None, _field_option("link", "The web address.")] = None
    site: Annotated[
        str | None,
        _field_option("site", "The site.", default="the host in the web address, or the publisher"),
    ] = None
    dedup: Annotated[str | None, _field_option("dedup", "The object that esdedup writes.")] = None

    def fields(self, others: Fields = Fields()) -> Fields:  # noqa: B008 - frozen
        """Return the names as the library takes them; `others` has those that are not given.

        Raises:
            SettingError: The names contradict each other.
        """
        return dataclasses.replace(others, **self._given)

    def fields_of(self, client: "Elasticsearch", *indices: str) -> Fields | None:
        """Return the names for some indices; None if no option is given: then the library reads them there.

        Raises:
            IndexNotReady: The indices keep different names.
            SettingError: The names contradict each other.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        from esdedup.elastic.patience import patient
        from esdedup.reading.reader import Reader

        if not self._given:
            return None
        if not indices:
            return self.fields()
        try:
            return self.fields(Reader(patient(client)).fields(",".join(indices)))
        except IndexNotReady as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return self.fields()

    @property
    def _given(self) -> dict[str, str]:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {role: name for role, name in values.items() if name is not None}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fingerprinting(Words):
    """The profile that texts are fingerprinted with."""

    name: Annotated[
        str | None,
        typer.Option(
            "--profile",
            help="How texts are fingerprinted: verified, classic or keywords.",
            rich_help_panel=_FINGERPRINT,
            show_default=DEFAULT.name,
        ),
    ] = None
    keywords: Annotated[
        int | None,
        typer.Option(
            "--keywords",
            min=1,
            max=MAX_KEYWORDS,
            help="How many words the profile keywords takes.",
            rich_help_panel=_FINGERPRINT,
        ),
    ] = None

    max_text_length: Annotated[
        int | None,
        typer.Option(
            "--max-text-length",
            min=1,
            max=LONGEST_TEXT_LENGTH,
            help="How many characters of a text are fingerprinted; what lies beyond is not compared.",
            rich_help_panel=_FINGERPRINT,
            show_default=f"{MAX_TEXT_LENGTH:,}",
        ),
    ] = None

    keep_boilerplate: Annotated[
        bool,
        typer.Option(
            "--keep-boilerplate",
            help="Fingerprint pages whole. Default: passages that are found around different articles, such "
            "as menus and disclaimers, are left out.",
            rich_help_panel=_FINGERPRINT,
        ),
    ] = False

    pins_file: Annotated[
        Path | None,
        typer.Option(
            "--pins",
            metavar="FILE",
            help="Passages that are boilerplate or text, whatever was learned: JSON Lines such as "
            '{"boilerplate": "Follow us on …", "site": "news.example"}, or "text" instead.',
            rich_help_panel=_FINGERPRINT,
            show_default=False,
        ),
    ] = None

    def pins(self) -> "Pins":
        """Return the pins in the file, if one is given.

        Raises:
            SettingError: The file cannot be read, or is wrong; or boilerplate is kept anyway.
        """
        from esdedup.ingest.learn import read_pins

        return read_pins(self.pins_file, keep_boilerplate=self.keep_boilerplate)

    def profile(self) -> Profile:
        """Return the profile that the options describe.

        Raises:
            SettingError: There is none of that name, or an option does not go with it.
        """
        chosen = get_profile(self.name or DEFAULT.name)
        if self.keywords is not None and chosen.representation != "keywords":
            raise SettingError(f"--keywords goes with the profile keywords, not with {chosen.name}")
        return self.with_words(chosen).with_changes(
            keyword_count=self.keywords,
            max_text_length=self.max_text_length,
            keep_boilerplate=self.keep_boilerplate,
        )

    def given_profile(self) -> Profile | None:
        """Return the profile that the options describe, None if none is given.

        Raises:
            SettingError: As `profile`; or only changes to a profile are given.
        """
        if self.name is not None:
            return self.profile()
        changes = {
            "--keywords": self.keywords,
            "--max-text-length": self.max_text_length,
            "--keep-boilerplate": self.keep_boilerplate or None,
        }
        given = [*self.given_words, *(name for name, value in changes.items() if value is not None)]
        if given:
            raise SettingError(f"with --index, {given[0]} goes with --profile")
        return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Forest(OptionGroup):
    """The forest that is read."""

    name: Annotated[
        str, typer.Option("--forest", help="Name of the forest's index.", rich_help_panel=_FOREST)
    ] = DEFAULT_FOREST


@dataclasses.dataclass(frozen=True, kw_only=True)
class WritableForest(Forest):
    """The forest that is written to, by one process at a time."""

    wait_s: Annotated[
        float,
        typer.Option(
            "--wait",
            min=0,
            help="Seconds to wait while another process owns the forest.",
            rich_help_panel=_FOREST,
        ),
    ] = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paging(OptionGroup):
    """Which page of a result."""

    page: Annotated[int, typer.Option("--page", min=1, help="Number of the page.")] = 1
    size: Annotated[int, typer.Option("--size", min=1, max=MAX_SIZE, help="Entries on a page.")] = 20
    after: Annotated[
        str | None,
        typer.Option(
            "--after",
            help="The cursor that the previous page printed, instead of --page; reaches any depth, except in "
            "lists by relevance or count.",
        ),
    ] = None


def retention(days: float | None) -> timedelta | None:
    """Return the retention as a duration, None if none is given."""
    if days is None:
        return None
    try:
        return timedelta(days=days)
    except OverflowError:
        raise SettingError(f"--retention-days {days} is too long") from None
