"""Options that several commands share."""

import dataclasses
import functools
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pydantic
import typer

from esdedup.cli import output
from esdedup.cli.messages import say
from esdedup.elastic.limits import MAX_SHARDS
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import Fields, fields_given
from esdedup.ingest import settings
from esdedup.ingest.settings import Naming, SettingGroup
from esdedup.reading.paging import MAX_SIZE

if TYPE_CHECKING:
    from elasticsearch import AsyncElasticsearch, Elasticsearch

    from esdedup.boilerplate.overrides import Overrides
    from esdedup.fingerprint.profile import Profile
    from esdedup.ingest.dedup import Dedup

FIELD_NAMES = "Field names"
_of_fields = functools.partial(typer.Option, rich_help_panel=FIELD_NAMES)

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="JSON Lines, a JSON array, CSV with a header (also gzip, bzip2, xz, zstd), or Parquet; - is "
        "standard input.",
    ),
]
Index = Annotated[str, typer.Option("--index", help="Index of the articles, or an alias.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]
TimeZone = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        envvar="ESDEDUP_TIME_ZONE",
        callback=output.show_times_in,
        help="Time zone in which dates are read and times are printed, such as Asia/Shanghai.",
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 picks a free port.")]
OutputFile = Annotated[
    Path | None, typer.Option("--output", help="File to write to. Default: standard output.")
]
TextField = Annotated[str, _of_fields("--text-field", help="The text, which is fingerprinted.")]
IdField = Annotated[str, _of_fields("--id-field", help="The article's id.")]
LearnFirst = Annotated[
    bool,
    typer.Option(
        "--learn-first",
        help="Read the articles twice, 40,000 at a time: first to learn their boilerplate, then to assign "
        "them.",
    ),
]


class Server(SettingGroup):
    """How to reach Elasticsearch."""

    url: Annotated[str, Naming(heading="Server", others=("ELASTICSEARCH_URL", "ES_URL"))] = (
        "http://localhost:9200"
    )
    """Address of Elasticsearch; may contain user and password. Separate several addresses by commas."""
    api_key: Annotated[str | None, Naming(others=("ES_API_KEY", "ELASTICSEARCH_API_KEY"))] = None
    """API key, in the base64 form that Elasticsearch returns."""
    ca_certs: Annotated[Path | None, Naming(others=("ES_CA_CERTS", "ELASTICSEARCH_CA_CERTS"))] = None
    """Certificate of the authority that signed the server's certificate."""

    # Import the client only when needed, since commands without a server also import this module.

    def connect(self) -> "Elasticsearch":
        """Return a client, which the caller must close."""
        from esdedup.elastic.client import connect

        return connect(self.url, api_key=self.api_key, ca_certs=self.ca_certs)

    def connect_async(self) -> "AsyncElasticsearch":
        """Return an async client, which the caller must close."""
        from esdedup.elastic.client import connect_async

        return connect_async(self.url, api_key=self.api_key, ca_certs=self.ca_certs)


class FieldNames(settings.FieldNames):
    """Options for the names of fields."""

    def fields(self, others: Fields = Fields()) -> Fields:  # noqa: B008 - frozen
        """Return the names of the fields; names that were not given are taken from `others`."""
        names = {role: name for role in others.names if (name := getattr(self, f"{role}_field")) is not None}
        return dataclasses.replace(others, **names)

    def fields_of(self, client: "Elasticsearch", *indices: str) -> Fields | None:
        """Return the field names of some indices; None without options, so that stored names are used."""
        from esdedup.elastic.patience import patient
        from esdedup.reading.reader import Reader

        if fields_given(self) is None:
            return None
        if not indices:
            return self.fields()
        try:
            return self.fields(Reader(patient(client)).fields(",".join(indices)))
        except IndexNotReady as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return self.fields()


class Fingerprinting(settings.Fingerprinting):
    """Options for the profile that texts are fingerprinted with."""

    def read_profile(self) -> "Profile":
        """Return the profile that the options describe; print which given words have no effect."""
        from esdedup.ingest.word_files import words_never_cut

        for line in words_never_cut(self.fingerprint_profile):
            say(line)
        return self.fingerprint_profile

    def given_profile(self) -> "Profile | None":
        """Return the profile that the options describe; None without --profile."""
        if self.profile is not None:
            return self.read_profile()
        given = [name for name in self.given() if name != "overrides_file"]
        if given:
            called = settings.names_of(type(self), given[0])
            raise SettingError(f"with --index, {called} requires --profile")
        return None


class Forest(SettingGroup):
    """Options for a forest to read."""

    forest: Annotated[str | None, Naming(heading="Forest")] = pydantic.Field(
        default=None,
        description="Name of the forest's index. Default: the forest that the index of articles names, or "
        f"{DEFAULT_FOREST}.",
    )

    def forest_of(self, client: "Elasticsearch", *indices: str) -> str:
        """Return the forest's name: the given name, or the name stored in the indices or their templates."""
        from esdedup.elastic.article_indices import Articles
        from esdedup.maintenance import Maintenance

        try:
            return Maintenance(client, forest=self.forest).forest_of(indices)
        except IndexNotReady as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            found = Articles(client).find(",".join(indices))
            return self.forest or (found and found.forest) or DEFAULT_FOREST


class Where(Server, FieldNames, Forest):
    """Options for reading articles and their forest."""


class WritableForest(Forest):
    """Options for a forest to write to; only one process at a time can own it."""

    wait_s: Annotated[float, Naming(flag="--wait")] = pydantic.Field(default=0.0, ge=0)
    """Seconds to wait while another process owns the forest."""


class NewForest(WritableForest):
    """Options for a forest to write to, which is created if it does not exist."""

    retention_days: float | None = pydantic.Field(default=None, ge=0.001, le=1_000_000)
    """For how many days after its last article a cluster accepts more articles. Default: the forest's
    retention; 30 for a new forest."""
    change_retention: bool = False
    """Allow a retention shorter than the forest's; older nodes then expire immediately."""
    lookup: Literal["memory", "search"] | None = None
    """Where a new forest looks for nodes: in the owner's memory, or by search in Elasticsearch, for forests
    too large for memory. Default: memory."""
    forest_shards: int | None = pydantic.Field(default=None, ge=1, le=MAX_SHARDS)
    """Number of primary shards of a new forest; more than 1 needs the lookup `search`. Default: 1."""

    @property
    def retention(self) -> timedelta | None:
        """The retention as a duration; None if it was not given."""
        return None if self.retention_days is None else timedelta(days=self.retention_days)


class Feeding(Server, Fingerprinting, settings.Threads, NewForest):
    """Options for feeding articles to a forest."""

    def dedup(self, client: "Elasticsearch", overrides: "Overrides", **others: Any) -> "Dedup":
        """Return a `Dedup` that feeds the forest; `others` are further arguments of `Dedup`."""
        from esdedup.ingest.dedup import Dedup

        names = ("retention", "change_retention", "lookup", "forest_shards", "wait_s", "workers")
        given = {name: getattr(self, name) for name in names}
        return Dedup(client, overrides=overrides, **given | {"profile": self.fingerprint_profile} | others)


class PageOptions(SettingGroup):
    """Options for the page of results to show."""

    page: int = pydantic.Field(default=1, ge=1)
    """Number of the page."""
    size: int = pydantic.Field(default=20, ge=1, le=MAX_SIZE)
    """Number of entries on a page."""
    after: str | None = None
    """The cursor printed below the previous page, instead of --page; works at any depth, except in lists by
    relevance or count."""
