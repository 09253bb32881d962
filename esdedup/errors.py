"""Every error that esdedup raises on purpose.

Each carries its facts as attributes and can be pickled. Messages speak of parameters; a shell that has
options, such as the command line, adds its own advice.

EsdedupError
├── SettingError             a parameter is out of its range, or two of them contradict
├── ArticleRejected          one article cannot be taken; the rest go on        .article .reason
├── ArticleNotFound          no article has that id                             .article .index
├── ServerError              Elasticsearch answered with an error               .status .index
│   ├── ServerUnavailable    nothing answers, or not an Elasticsearch
│   └── IndexNotReady        the index is missing, or lacks the fields          .missing_fields
├── ForestError              the forest cannot be used                          .forest
│   ├── ForestMissing        there is no forest of that name
│   ├── ForestExists         there is one already, and it was not to be replaced
│   ├── ForestIncomplete     a rebuild of it has not ended
│   ├── ForestBusy           another process owns it                            .owner
│   ├── ForestLost           this process owned it, and another took it over    .owner
│   └── ForestMismatch       made with another profile or by another version    .found .supported
└── NodeError                the embedded Elasticsearch did not start or stop
"""

import copyreg
import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any

__all__ = [
    "ArticleNotFound",
    "ArticleRejected",
    "EsdedupError",
    "ForestBusy",
    "ForestError",
    "ForestExists",
    "ForestIncomplete",
    "ForestLost",
    "ForestMismatch",
    "ForestMissing",
    "IndexNotReady",
    "NodeError",
    "ServerError",
    "ServerUnavailable",
    "SettingError",
]


class EsdedupError(Exception):
    """The base of every error of esdedup."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Python would call the constructor with the message alone, and lose keyword-only facts.
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class SettingError(EsdedupError, ValueError):
    """A parameter is out of its range, or two of them contradict each other."""


class ArticleRejected(EsdedupError):
    """One article cannot be taken.

    Attributes:
        article: The article's id, or the place where it stands (``FILE:LINE``) when it has none.
        reason: What is wrong with it, without any of its text.
    """

    def __init__(self, article: str, reason: str) -> None:
        super().__init__(article, reason)
        self.article = article
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.article}: {self.reason}"


class ArticleNotFound(EsdedupError, LookupError):
    """No article has that id.

    Attributes:
        article: The id.
        index: Where it was looked for: an index, alias or pattern, or several, separated by commas.
    """

    def __init__(self, message: str, *, article: str, index: str) -> None:
        super().__init__(message)
        self.article = article
        self.index = index


class ServerError(EsdedupError):
    """Elasticsearch answered with an error.

    Attributes:
        status: The HTTP status of its answer; None if there was none.
        index: The index, alias or pattern that was asked for; None if there was none.
    """

    def __init__(self, message: str, *, status: int | None = None, index: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.index = index


class ServerUnavailable(ServerError):
    """Nothing answers at that address, or not an Elasticsearch, or it is too busy."""


class IndexNotReady(ServerError):
    """The index is missing, or lacks the fields that esdedup reads and writes.

    Attributes:
        status: 404 if the index is missing.
        missing_fields: The fields that it lacks, or has with another mapping.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        index: str | None = None,
        missing_fields: Sequence[str] = (),
    ) -> None:
        super().__init__(message, status=status, index=index)
        self.missing_fields = tuple(missing_fields)


class ForestError(EsdedupError):
    """The forest of clusters cannot be used.

    Attributes:
        forest: The name of its index.
    """

    def __init__(self, message: str, *, forest: str) -> None:
        super().__init__(message)
        self.forest = forest


class ForestMissing(ForestError):
    """There is no forest of that name."""


class ForestExists(ForestError):
    """There is a forest of that name already, and it was not to be replaced."""


class ForestIncomplete(ForestError):
    """A rebuild of the forest has not ended."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestOwner:
    """A process that owns a forest, or owned it last."""

    host: str
    pid: int
    since: datetime
    # Whether it has released the forest.
    released: bool

    def __str__(self) -> str:
        since = f"{self.since:%Y-%m-%d %H:%M:%S %Z}"
        if self.released:
            return f"process {self.pid} on {self.host} took it at {since}, and has given it back"
        return f"process {self.pid} on {self.host} owns it since {since}"


class ForestBusy(ForestError):
    """Another process owns the forest.

    Attributes:
        owner: That process.
    """

    def __init__(self, message: str, *, forest: str, owner: ForestOwner) -> None:
        super().__init__(message, forest=forest)
        self.owner = owner


class ForestLost(ForestError):
    """This process owned the forest, and another one has taken it over.

    Attributes:
        owner: The last process known to have taken it; None if that could not be read.
    """

    def __init__(self, message: str, *, forest: str, owner: ForestOwner | None = None) -> None:
        super().__init__(message, forest=forest)
        self.owner = owner


class ForestMismatch(ForestError):
    """The forest was made with another profile, or by a version that this one cannot read.

    Attributes:
        found: Its profile's label, or the format of its index; None if the index is no forest.
        supported: The profile's label, or the format, that was expected; None if there is no single one.
    """

    def __init__(
        self,
        message: str,
        *,
        forest: str,
        found: str | int | None = None,
        supported: str | int | None = None,
    ) -> None:
        super().__init__(message, forest=forest)
        self.found = found
        self.supported = supported


class NodeError(EsdedupError):
    """The embedded Elasticsearch did not start, or did not stop."""
