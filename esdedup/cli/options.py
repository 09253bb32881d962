"""The options that several commands share, written once."""

import dataclasses
import functools
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from esdedup.cli import output
from esdedup.cli.command import OptionGroup
from esdedup.cli.messages import say
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.fingerprinter import WORKERS
from esdedup.fingerprint.profile import (
    DEFAULT,
    LEAST_RESEMBLANCE,
    LONGEST_TEXT_LENGTH,
    MAX_KEYWORDS,
    MAX_TEXT_LENGTH,
    MOST_RESEMBLANCE,
    Profile,
    get_profile,
)
from esdedup.reading.paging import MAX_SIZE
from esdedup.text.hashing import TOKEN_HASHES

if TYPE_CHECKING:
    from elasticsearch import AsyncElasticsearch, Elasticsearch

    from esdedup.boilerplate.overrides import Overrides
    from esdedup.ingest.dedup import Dedup
    from esdedup.text.segmenters import Segmenter

FIELD_NAMES = "Field names"
_FOREST_HELP = f"Name of the forest's index. Default: the one that an index keeps, else {DEFAULT_FOREST}."
_HASHES = list(TOKEN_HASHES)
_of_fields = functools.partial(typer.Option, rich_help_panel=FIELD_NAMES)

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="JSON Lines, a JSON array, or CSV with a header; plain or gzip; - is standard input.",
    ),
]
Index = Annotated[str, typer.Option("--index", help="Index of the articles, or an alias.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
TimeZone = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        envvar="ESDEDUP_TIME_ZONE",
        callback=output.show_times_in,
        help="Where days are meant, and in which times are printed, such as Asia/Shanghai.",
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one.")]
OutputFile = Annotated[
    Path | None, typer.Option("--output", help="File to write to. Default: standard output.")
]
TextField = Annotated[str, _of_fields("--text-field", help="The text; it is fingerprinted.")]
IdField = Annotated[str, _of_fields("--id-field", help="The article's id.")]
LearnFirst = Annotated[
    bool,
    typer.Option(
        "--learn-first",
        help="Read the articles twice, 40,000 at a time: first learn what is boilerplate in them, then "
        "assign them.",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        min=1,
        max=256,
        help="How many threads fingerprint texts, with the same results. They cut no words, as classic and "
        "keywords do.",
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Server(OptionGroup, panel="Server"):
    """How to reach Elasticsearch.

    Options:
        url: Address of Elasticsearch; may contain user and password. Separate several by commas.
        api_key: API key, in the base64 form that Elasticsearch returns.
        ca_certs: Certificate of the authority that signed the server's certificate.
    """

    url: Annotated[str, typer.Option(envvar=["ELASTICSEARCH_URL", "ES_URL"])] = "http://localhost:9200"
    api_key: Annotated[str | None, typer.Option(envvar=["ES_API_KEY", "ELASTICSEARCH_API_KEY"])] = None
    ca_certs: Annotated[Path | None, typer.Option(envvar=["ES_CA_CERTS", "ELASTICSEARCH_CA_CERTS"])] = None

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
    return _of_fields(
        f"--{role}-field", help=f"{text} Default: the name that the index keeps from `setup`, else {default}."
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
        """Return the names as the library takes them; `others` has those that are not given."""
        return dataclasses.replace(others, **self.given())

    def fields_of(self, client: "Elasticsearch", *indices: str) -> Fields | None:
        """Return the names for some indices; None if none is given: then the library reads them there."""
        from esdedup.elastic.patience import patient
        from esdedup.reading.reader import Reader

        if not self.given():
            return None
        if not indices:
            return self.fields()
        try:
            return self.fields(Reader(patient(client)).fields(",".join(indices)))
        except IndexNotReady as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return self.fields()


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cut(OptionGroup, panel="Fingerprint"):
    """How texts are cut into words.

    Options:
        segmenter: How classic and keywords cut texts into words: jieba, words (letters and digits between
            others), or n-grams such as 3-grams.
        dictionary: Words that jieba keeps whole: one a line, perhaps with its frequency and part of speech,
            as in jieba's user dictionaries. A word of the frequency 0 is parted.
    """

    segmenter: Annotated[str | None, typer.Option(show_default="jieba")] = None
    dictionary: Annotated[Path | None, typer.Option(metavar="FILE")] = None

    def read_segmenter(self) -> "Segmenter":
        """Return the segmenter; say which words of its dictionary have no effect."""
        from esdedup.ingest.word_files import dictionary_words_never_cut, read_segmenter
        from esdedup.text.segmenters import JIEBA

        segmenter = read_segmenter(self.segmenter, self.dictionary) or JIEBA
        for line in dictionary_words_never_cut(segmenter):
            say(line)
        return segmenter


@dataclasses.dataclass(frozen=True, kw_only=True)
class Words(Cut):
    """How texts are cut into words, and how these are weighed and hashed.

    Options:
        weights: Word weights of the profiles classic and keywords: tf-idf, tf, or a JSON file, as `esdedup
            weights` writes it or an object of words and their weights.
        stop_words: Words that weigh nothing, one a line.
        zero_bit: The bit of a simhash where weights add up to zero: 0, or 1 as in much published code.
    """

    weights: Annotated[str | None, typer.Option(show_default="tf-idf")] = None
    stop_words: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    token_hash: Annotated[
        str | None,
        typer.Option(
            help=f"How classic and keywords hash words: {', '.join(_HASHES[:-1])} or {_HASHES[-1]}.",
            show_default=_HASHES[0],
        ),
    ] = None
    zero_bit: Annotated[int | None, typer.Option(min=0, max=1, show_default="0")] = None

    def with_words(self, profile: Profile) -> Profile:
        """Return a profile changed as the options say; say which words of their files have no effect."""
        from esdedup.ingest.word_files import with_words, words_never_cut

        about_words = {field.name for field in dataclasses.fields(Words)}
        given = {name: value for name, value in self.given().items() if name in about_words}
        if not given:
            return profile
        if profile.agreement is not None:
            flag = _flag(next(iter(given)))
            raise SettingError(f"{flag} goes with the profiles classic and keywords, not with {profile.name}")
        changed = with_words(profile, **given)
        for line in words_never_cut(changed):
            say(line)
        return changed


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fingerprinting(Words):
    """The profile that texts are fingerprinted with.

    Options:
        name: How texts are fingerprinted: verified, classic or keywords.
        keywords: How many words the profile keywords takes.
        resemblance: How much of their wording two long texts share if they are near-duplicates, by the
            profile verified, 0.4 to 0.95; short texts need more.
        max_distance_bits: Up to how many bits may differ in two simhashes that are near, 0 to 3.
        max_text_length: How many characters of a text are fingerprinted; what lies beyond is not compared.
        keep_boilerplate: Fingerprint pages whole. Default: passages that are found around different articles,
            such as menus and disclaimers, are left out.
        overrides_file: Passages that are boilerplate or text, whatever was learned: JSON Lines such as
            {"boilerplate": "Follow us on …", "site": "news.example"}, or "text" instead.
    """

    name: Annotated[str | None, typer.Option("--profile", show_default=DEFAULT.name)] = None
    keywords: Annotated[int | None, typer.Option(min=1, max=MAX_KEYWORDS)] = None
    resemblance: Annotated[
        float | None,
        typer.Option(min=LEAST_RESEMBLANCE, max=MOST_RESEMBLANCE, show_default=f"{Agreement.resemblance:g}"),
    ] = None
    max_distance_bits: Annotated[int | None, typer.Option(min=0, max=3, show_default="3")] = None
    max_text_length: Annotated[
        int | None, typer.Option(min=1, max=LONGEST_TEXT_LENGTH, show_default=f"{MAX_TEXT_LENGTH:,}")
    ] = None
    keep_boilerplate: Annotated[bool, typer.Option("--keep-boilerplate")] = False
    overrides_file: Annotated[Path | None, typer.Option("--overrides", metavar="FILE")] = None

    def overrides(self) -> "Overrides":
        """Return the overrides in the file, if one is given."""
        from esdedup.ingest.learn import read_overrides

        return read_overrides(self.overrides_file, keep_boilerplate=self.keep_boilerplate)

    def profile(self) -> Profile:
        """Return the profile that the options describe."""
        chosen = get_profile(self.name or DEFAULT.name)
        if self.keywords is not None and chosen.representation != "keywords":
            raise SettingError(f"--keywords goes with the profile keywords, not with {chosen.name}")
        return self.with_words(chosen).with_changes(
            keyword_count=self.keywords,
            max_distance_bits=self.max_distance_bits,
            resemblance=self.resemblance,
            max_text_length=self.max_text_length,
            keep_boilerplate=self.keep_boilerplate,
        )

    def given_profile(self) -> Profile | None:
        """Return the profile that the options describe, None if none is given."""
        if self.name is not None:
            return self.profile()
        given = [_flag(name) for name in self.given() if name != "overrides_file"]
        if given:
            raise SettingError(f"with --index, {given[0]} goes with --profile")
        return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Forest(OptionGroup, panel="Forest"):
    """The forest that is read."""

    name: Annotated[str | None, typer.Option("--forest", help=_FOREST_HELP)] = None

    def of(self, client: "Elasticsearch", *indices: str) -> str:
        """Return its name, by what some indices keep, or will keep by their template."""
        from esdedup.elastic.article_indices import Articles
        from esdedup.maintenance import Maintenance

        try:
            return Maintenance(client, forest=self.name).forest_of(indices)
        except IndexNotReady as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            found = Articles(client).find(",".join(indices))
            return self.name or (found and found.forest) or DEFAULT_FOREST


@dataclasses.dataclass(frozen=True, kw_only=True)
class WritableForest(Forest):
    """The forest that is written to, by one process at a time."""

    wait_s: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait while another process owns the forest.")
    ] = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class NewForest(WritableForest):
    """The forest that is written to, and how it is made if there is none.

    Options:
        retention_days: How many days a cluster accepts articles after its last one. Default: the forest's
            retention, 30 in a new forest.
        change_retention: Let that be shorter than the forest's retention, so that nodes expire at once.
        lookup: How a new forest finds nodes: all are in the memory of its owner, or they are searched for in
            Elasticsearch, for more than memory holds. Default: memory.
    """

    retention_days: Annotated[float | None, typer.Option(min=0.001)] = None
    change_retention: Annotated[bool, typer.Option("--change-retention")] = False
    lookup: Annotated[Literal["memory", "search"] | None, typer.Option()] = None

    @property
    def retention(self) -> timedelta | None:
        """The retention as a duration, None if none is given."""
        return retention(self.retention_days)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedForest(NewForest):
    """The forest that articles are fed to."""

    workers: Workers = WORKERS

    def dedup(self, client: "Elasticsearch", profile: Profile, **others: Any) -> "Dedup":
        """Return what feeds it; others are those of `Dedup`."""
        from esdedup.ingest.dedup import Dedup

        names = ("retention", "change_retention", "lookup", "wait_s", "workers")
        return Dedup(client, **{name: getattr(self, name) for name in names} | {"profile": profile} | others)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PageOptions(OptionGroup):
    """Which page of a result.

    Options:
        page: Number of the page.
        size: Entries on a page.
        after: The cursor that the previous page printed, instead of --page; reaches any depth, except in
            lists by relevance or count.
    """

    page: Annotated[int, typer.Option(min=1)] = 1
    size: Annotated[int, typer.Option(min=1, max=MAX_SIZE)] = 20
    after: str | None = None


def retention(days: float | None) -> timedelta | None:
    """Return the retention as a duration, None if none is given."""
    if days is None:
        return None
    try:
        return timedelta(days=days)
    except OverflowError:
        raise SettingError(f"--retention-days {days} is too long") from None
