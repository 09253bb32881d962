"""The errors that callers can catch.

The servers raise `Refused` instead, to choose a response.

Errors have their details as attributes and can be pickled; an `owner` is a `ForestOwner`. Messages name
parameters; the command line adds advice about its options.

EsdedupError
├── SettingError             a parameter is out of range, or two parameters contradict each other
│   ├── EditRefused          an edit of stories is impossible, or would change nothing
│   └── PageTooDeep          a numbered results page extends beyond row 10,000
├── FieldsNotFound           the articles of a file have other field names      .missing .found .likely
├── ArticleRejected          one article is rejected; the others are processed  .article .reason
│   └── TextFailed           the text triggered a bug in the core               .place
├── ArticleNotFound          no article has the given id                        .article .index
├── ClientForked             a forked process uses its parent's client          .process
├── ClockMismatch            this machine and Elasticsearch disagree on the time  .here_ms .server_ms
├── ServerError              Elasticsearch returned an error                    .status .index
│   ├── ServerUnavailable    the server does not respond, is busy, or is not Elasticsearch
│   │   └── ServerBusy       the server was too busy for part of a request
│   ├── IndexBlocked         the disk is full, or somebody has blocked the index
│   └── IndexNotReady        the index is missing, or lacks the fields          .missing_fields
├── ForestError              the forest cannot be used                          .forest
│   ├── ForestMissing        the forest does not exist
│   ├── RetentionShorter     the retention would shrink, and that was not requested
│   ├── ForestAhead          the forest's time is in the future                 .time_ms
│   ├── ForestDamaged        learned boilerplate or edits are damaged           .document .flaw
│   ├── ForestFull           the forest's nodes exceed the memory limit
│   ├── ForestIncomplete     a rebuild of the forest has not finished
│   ├── ForestBusy           another process owns the forest                    .owner
│   ├── ForestLost           another process has taken the forest over          .owner
│   └── ForestMismatch       the forest has another profile or format           .found .supported
├── SidecarError             a sidecar refuses articles                         .address .status
│   └── SidecarUnavailable   no sidecar accepts articles; they may be sent again
├── StateUnusable            the state of a clustering is damaged, or has other rules  .path
└── NodeError                the embedded Elasticsearch did not start or stop
"""

import copy
import copyreg
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


# Errors with details are dataclasses that hash, compare and print like other exceptions.
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
    """A parameter is out of range, or two parameters contradict each other."""


class EditRefused(SettingError):
    """An edit of stories is impossible, or would change nothing; pages translate the message."""


class PageTooDeep(SettingError):
    """A numbered results page extends beyond row 10,000."""


class FieldsNotFound(EsdedupError):
    """The articles of a file have no text or no id under the given names; nothing was written.

    Attributes:
        missing: The given names of the fields that no article has, by role: ``text`` or ``id``.
        found: The fields of the first articles, in order.
        likely: For each of ``text``, ``id``, ``title``, ``time``, ``source`` and ``link`` whose field is
            missing, the field that is probably meant, if there is one.
        articles: How many articles were inspected.
        lists: Fields above the missing ones that are lists instead of objects.
        index: The index that the articles were to be written to, if any.
    """

    index: str | None = None

    def __init__(
        self,
        *,
        missing: Mapping[str, str],
        found: Sequence[str],
        likely: Mapping[str, str],
        articles: int,
        lists: Sequence[str] = (),
    ) -> None:
        names = " and no field ".join(f"{name!r}" for name in missing.values())
        # A name may be long, or contain control characters.
        others = ", ".join(f"{name!r:.60}" for name in found[:30])
        why = "".join(f", since {name!r:.60} is a list, not an object" for name in lists)
        super().__init__(
            f"no article has a field {names}, judging by the first {articles:,}{why}; "
            f"their fields are {others}"
        )
        self.lists = tuple(lists)
        self.missing = dict(missing)
        self.found = tuple(found)
        self.likely = dict(likely)
        self.articles = articles


class ArticleRejected(EsdedupError):
    """One article is rejected; the others are processed.

    Attributes:
        article: The article's id, or its position (``FILE:LINE``) if it has none.
        reason: What is wrong with the article; never quotes its text.
    """

    def __init__(self, article: str, reason: str) -> None:
        Exception.__init__(self, article, reason)
        self.article = article
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.article}: {self.reason}"

    def bare(self) -> "ArticleRejected":
        """Return a copy without cause and traceback, which would keep the whole article in memory."""
        return copy.copy(self)


class TextFailed(ArticleRejected):
    """One article is rejected because of a bug in the core; please report it.

    Attributes:
        place: The place in the core's source, ``FILE:LINE``.
    """

    def __init__(self, article: str, place: str) -> None:
        super().__init__(article, f"its text triggered a bug in esdedup; please report it: {place}")
        self.place = place


@dataclass(kw_only=True, eq=False, repr=False)
class ArticleNotFound(EsdedupError, LookupError):
    """No article has the given id."""

    # The id.
    article: str
    # The index, alias or pattern that was searched; several are separated by commas.
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
    """Elasticsearch returned an error."""

    # The HTTP status of the response; None if there was no response.
    status: int | None = None
    # The index, alias or pattern of the request, if any.
    index: str | None = None


class ServerUnavailable(ServerError):
    """The server does not respond, is too busy, or is not Elasticsearch."""


class ServerBusy(ServerUnavailable):
    """The server was too busy for part of a request."""


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

    # The name of the forest's index.
    forest: str


class ForestMissing(ForestError):
    """The forest does not exist."""

    @classmethod
    def of(cls, forest: str) -> "ForestMissing":
        """Return the error for a forest's name."""
        return cls(
            f"there is no forest {forest!r}. If articles have roots already, rebuild it from them: a new "
            "forest would give later reprints other roots. Otherwise, enriching the first article creates it",
            forest=forest,
        )


class ForestFull(ForestError):
    """The nodes of the forest need more memory than its owner may use."""

    @classmethod
    def of(cls, forest: str, *, memory_bytes: int | None) -> "ForestFull":
        """Return the error for a forest's name; `memory_bytes` is None if no memory can hold more nodes."""
        if memory_bytes is None:
            reason, remedy = f"the forest {forest!r} has as many nodes as memory can hold", "Shorten"
        else:
            needed = f"need more than the {memory_bytes:,} bytes of memory that they may use"
            reason = f"the nodes of the forest {forest!r} {needed}"
            remedy = "Allow more (`memory_bytes`), shorten"
        return cls(
            f"{reason}. {remedy} the retention (`retention`), or rebuild the forest with the lookup 'search'",
            forest=forest,
        )


class RetentionShorter(ForestError):
    """A shorter retention would expire nodes, which was not requested."""


@dataclass(kw_only=True, eq=False, repr=False)
class ForestAhead(ForestError):
    """The forest's time is in the future, because articles were fed while a clock was ahead."""

    # The forest's time, milliseconds since 1970.
    time_ms: int


class ForestIncomplete(ForestError):
    """A rebuild of the forest has not finished."""


@dataclass(kw_only=True, eq=False, repr=False)
class ForestDamaged(ForestError):
    """The forest's learned boilerplate or its edits are damaged."""

    # The id of the first document with a flaw.
    document: str
    # What is wrong with the document.
    flaw: str


@dataclass(frozen=True, kw_only=True)
class ForestOwner:
    """The process that owns a forest, or that last owned it."""

    host: str
    pid: int
    since: datetime
    # Whether the process has released the forest.
    released: bool
    # The address where the process accepts articles from others; None if it accepts none, or is unreachable.
    url: str | None = None

    def __str__(self) -> str:
        since = f"{self.since:%Y-%m-%d %H:%M:%S %Z}"
        if self.released:
            return f"process {self.pid} on {self.host} took it at {since} and has released it"
        at = "" if self.url is None else f", and accepts articles at {self.url}"
        return f"process {self.pid} on {self.host} has owned it since {since}{at}"


@dataclass(kw_only=True, eq=False, repr=False)
class ForestBusy(ForestError):
    """Another process owns the forest."""

    # The process that owns the forest.
    owner: ForestOwner


@dataclass(kw_only=True, eq=False, repr=False)
class ForestLost(ForestError):
    """This process owned the forest, and another process has taken the forest over."""

    # The latest known owner; None if it could not be read.
    owner: ForestOwner | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class ForestMismatch(ForestError):
    """The forest has another profile or other articles, or a format that this version cannot read."""

    # The forest's profile label or format; None if the index is not a forest.
    found: str | int | None = None
    # The expected profile label or format; None if several are supported.
    supported: str | int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class SidecarError(EsdedupError):
    """A sidecar refuses articles, or returns an invalid response."""

    # The sidecar's address, or several addresses, separated by commas.
    address: str
    # The HTTP status of the response; None if there was no response.
    status: int | None = None


class SidecarUnavailable(SidecarError):
    """No sidecar accepts articles at the moment; the same articles may be sent again."""


@dataclass(kw_only=True, eq=False, repr=False)
class StateUnusable(EsdedupError):
    """The saved state of a clustering is damaged, or was made by another version, profile or retention."""

    # The file.
    path: str


@dataclass(kw_only=True, eq=False, repr=False)
class Refused(EsdedupError):
    """A server refuses a request; the message says why."""

    # The HTTP status.
    status: int = 400
    # A stable identifier for clients: lower case with underscores.
    kind: str = "invalid_request"
    # Seconds after which to retry; None uses the default for the status.
    retry_after_s: int | None = None


class NodeError(EsdedupError):
    """The embedded Elasticsearch did not start, or did not stop."""
