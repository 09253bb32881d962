"""Every error that programs can catch.

Our own servers raise and answer `Refused` instead (`serving/refusals.py`).

Each carries its facts as attributes and can be pickled; an owner is a `ForestOwner`. Messages name
parameters; the command line adds advice about its options.

EsdedupError
├── SettingError             a parameter is out of range, or two contradict each other
│   └── PageTooDeep          a page that is given by its number begins too far down
├── FieldsNotFound           the articles of a file have other field names      .missing .found .likely
├── ArticleRejected          one article is rejected; the others are processed  .article .reason
│   └── TextFailed           its text met a fault in the core                   .place
├── ArticleNotFound          no article has that id                             .article .index
├── ClientForked             a forked process uses its parent's client          .process
├── ClockMismatch            this machine and Elasticsearch disagree on the time  .here_ms .server_ms
├── ServerError              Elasticsearch answered with an error               .status .index
│   ├── ServerUnavailable    no server answers, or it is not Elasticsearch, or it is busy
│   │   └── ServerBusy       it was too busy for a part of a request
│   ├── IndexBlocked         the disk is full, or somebody has blocked the index
│   └── IndexNotReady        the index is missing, or lacks the fields          .missing_fields
├── ForestError              the forest cannot be used                          .forest
│   ├── ForestMissing        there is no forest of that name
│   ├── ForestExists         it exists already, and replacing it was not requested
│   ├── RetentionShorter     its nodes would live shorter, and that was not requested
│   ├── ForestAhead          its time is in the future                          .time_ms
│   ├── ForestDamaged        what it has learned is damaged                     .document .flaw
│   ├── ForestFull           its nodes take more memory than they may
│   ├── ForestIncomplete     a rebuild of it has not finished
│   ├── ForestBusy           another process owns it                            .owner
│   ├── ForestLost           this process owned it, and another took it over    .owner
│   └── ForestMismatch       made with another profile or in another format     .found .supported
├── SidecarError             a sidecar refuses articles                         .address .status
│   └── SidecarUnavailable   none of the sidecars takes articles; they may be sent again
└── NodeError                the embedded Elasticsearch did not start or stop
"""

import copy
import copyreg
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


# Errors with facts are dataclasses, which hash, compare and print as other exceptions do.
@dataclass(eq=False, repr=False)
class EsdedupError(Exception):
    """Base class of all errors of esdedup."""

    message: dataclasses.InitVar[str]

    def __post_init__(self, message: str) -> None:
        Exception.__init__(self, message)

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are unpickled by calling the constructor with the message alone, which fails if it has
        # required keyword-only parameters.
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class SettingError(EsdedupError, ValueError):
    """A parameter is out of range, or two contradict each other."""


class PageTooDeep(SettingError):
    """Numbered pages end at row 10,000, and a page ends beyond it."""


class FieldsNotFound(EsdedupError):
    """The articles of a file have no text or no id under the given names; nothing was written.

    Attributes:
        missing: For ``text`` and ``id``, the name of the field that no article has.
        found: The fields that the first articles have, in their order.
        likely: For each of ``text``, ``id``, ``title``, ``time``, ``source`` and ``link`` that is missing,
            the field that probably has it, if there is one.
        articles: How many articles were looked at.
        index: Where they were to be written; None if nowhere.
    """

    index: str | None = None

    def __init__(
        self, *, missing: Mapping[str, str], found: Sequence[str], likely: Mapping[str, str], articles: int
    ) -> None:
        names = " and no field ".join(f"{name!r}" for name in missing.values())
        # A name may be long, or contain control characters.
        others = ", ".join(f"{name!r:.60}" for name in found[:30])
        super().__init__(
            f"no article has a field {names}, as far as the first {articles:,} show; they have {others}"
        )
        self.missing = dict(missing)
        self.found = tuple(found)
        self.likely = dict(likely)
        self.articles = articles


class ArticleRejected(EsdedupError):
    """One article is rejected; the others are processed.

    Attributes:
        article: The article's id, or its position (``FILE:LINE``) if it has none.
        reason: What is wrong with it; never quotes its text.
    """

    def __init__(self, article: str, reason: str) -> None:
        Exception.__init__(self, article, reason)
        self.article = article
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.article}: {self.reason}"

    def bare(self) -> "ArticleRejected":
        """Return a copy without cause and traceback, which keep the whole article in memory."""
        return copy.copy(self)


class TextFailed(ArticleRejected):
    """One article is rejected, because of a fault in the core: please report it.

    Attributes:
        place: Where in the core's source, ``FILE:LINE``.
    """

    def __init__(self, article: str, place: str) -> None:
        super().__init__(article, f"its text met a fault in esdedup; please report it: {place}")
        self.place = place


@dataclass(kw_only=True, eq=False, repr=False)
class ArticleNotFound(EsdedupError, LookupError):
    """No article has that id."""

    # The id.
    article: str
    # The index, alias or pattern searched; several are separated by commas.
    index: str


@dataclass(kw_only=True, eq=False, repr=False)
class ClientForked(EsdedupError):
    """A forked process uses a client or a stream that its parent has used before."""

    # The id of the parent process.
    process: int


@dataclass(kw_only=True, eq=False, repr=False)
class ClockMismatch(EsdedupError):
    """The clocks of this machine and of Elasticsearch differ by more than a day."""

    # The time on this machine, milliseconds since 1970.
    here_ms: int
    # The time in Elasticsearch, milliseconds since 1970.
    server_ms: int


@dataclass(kw_only=True, eq=False, repr=False)
class ServerError(EsdedupError):
    """Elasticsearch answered with an error."""

    # The HTTP status of the response; None without a response.
    status: int | None = None
    # The index, alias or pattern of the request; None if it had none.
    index: str | None = None


class ServerUnavailable(ServerError):
    """No server answers, or it is not Elasticsearch, or it is too busy."""


class ServerBusy(ServerUnavailable):
    """The server was too busy for a part of a request."""


class IndexBlocked(ServerError):
    """Elasticsearch refuses requests until space is freed or a block is removed; retrying is useless."""


@dataclass(kw_only=True, eq=False, repr=False)
class IndexNotReady(ServerError):
    """The index is missing (with the status 404), or lacks the fields that esdedup reads and writes."""

    # The fields that are missing or have another mapping.
    missing_fields: tuple[str, ...] = ()


@dataclass(kw_only=True, eq=False, repr=False)
class ForestError(EsdedupError):
    """The forest of clusters cannot be used."""

    # The name of its index.
    forest: str


class ForestMissing(ForestError):
    """There is no forest of that name."""

    @classmethod
    def of(cls, forest: str) -> "ForestMissing":
        """Return the error for a forest's name."""
        return cls(
            f"there is no forest {forest!r}. If articles have roots already, rebuild it from them: a new one "
            "would give later reprints other roots. Otherwise the first article that is enriched makes it",
            forest=forest,
        )


class ForestFull(ForestError):
    """The nodes of the forest take more memory than its owner may give them."""

    @classmethod
    def of(cls, forest: str, *, memory_bytes: int) -> "ForestFull":
        """Return the error for a forest's name."""
        return cls(
            f"the nodes of the forest {forest!r} take more than the {memory_bytes:,} bytes of memory that "
            "they may take. Give them more (`memory_bytes`), let them live shorter (`retention`), or "
            "rebuild the forest with the lookup 'search'",
            forest=forest,
        )


class ForestExists(ForestError):
    """A forest of that name exists already, and replacing it was not requested."""


class RetentionShorter(ForestError):
    """A shorter retention would expire nodes, and the caller has not allowed that."""


@dataclass(kw_only=True, eq=False, repr=False)
class ForestAhead(ForestError):
    """The forest's time is in the future, because it was fed under a clock that was ahead."""

    # The forest's time, milliseconds since 1970.
    time_ms: int


class ForestIncomplete(ForestError):
    """A rebuild of the forest has not finished."""


@dataclass(kw_only=True, eq=False, repr=False)
class ForestDamaged(ForestError):
    """What the forest has learned about boilerplate, or what editors said, is damaged."""

    # The id of the first document with a flaw.
    document: str
    # What is wrong with it.
    flaw: str


@dataclass(frozen=True, kw_only=True)
class ForestOwner:
    """The process that owns a forest, or its last owner."""

    host: str
    pid: int
    since: datetime
    # Whether it has released the forest.
    released: bool
    # Where it takes articles for others, if it does, and is reached from here.
    url: str | None = None

    def __str__(self) -> str:
        since = f"{self.since:%Y-%m-%d %H:%M:%S %Z}"
        if self.released:
            return f"process {self.pid} on {self.host} took it at {since} and has released it"
        at = "" if self.url is None else f", and takes articles at {self.url}"
        return f"process {self.pid} on {self.host} has owned it since {since}{at}"


@dataclass(kw_only=True, eq=False, repr=False)
class ForestBusy(ForestError):
    """Another process owns the forest."""

    # That process.
    owner: ForestOwner


@dataclass(kw_only=True, eq=False, repr=False)
class ForestLost(ForestError):
    """This process owned the forest, and another one has taken it over."""

    # Its latest known owner; None if that could not be read.
    owner: ForestOwner | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class ForestMismatch(ForestError):
    """The forest was made with another profile, for other articles, or in a format that is not known here."""

    # The forest's profile label or format; None if the index is not a forest.
    found: str | int | None = None
    # The profile label or format that was expected; None if there is no single one.
    supported: str | int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class SidecarError(EsdedupError):
    """A sidecar refuses articles, or answers what cannot be understood."""

    # Its address; of several, separated by commas.
    address: str
    # The HTTP status of its answer; None without an answer.
    status: int | None = None


class SidecarUnavailable(SidecarError):
    """None of the sidecars takes articles now; the same may be sent again."""


class NodeError(EsdedupError):
    """The embedded Elasticsearch did not start, or did not stop."""
