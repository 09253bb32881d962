"""Every error that esdedup raises on purpose.

EsdedupError
├── SettingError             a parameter is out of its range, or two of them contradict
├── ArticleRejected          one article cannot be taken; the rest go on
├── ArticleNotFound          no article has that id
├── ServerError              Elasticsearch answered with an error
│   ├── ServerUnavailable    nothing answers, or not an Elasticsearch
│   └── IndexNotReady        the index is missing, or lacks the fields
├── ForestError              the forest cannot be used
│   ├── ForestBusy           another process owns it
│   ├── ForestLost           this process owned it, and another took it over
│   └── ForestMismatch       made with another profile or by another version
└── NodeError                the embedded Elasticsearch did not start or stop
"""

__all__ = [
    "ArticleNotFound",
    "ArticleRejected",
    "EsdedupError",
    "ForestBusy",
    "ForestError",
    "ForestLost",
    "ForestMismatch",
    "IndexNotReady",
    "NodeError",
    "ServerError",
    "ServerUnavailable",
    "SettingError",
]


class EsdedupError(Exception):
    """Something that esdedup was asked for could not be done."""


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
    """No article has that id."""


class ServerError(EsdedupError):
    """Elasticsearch answered with an error."""


class ServerUnavailable(ServerError):
    """Nothing answers at that address, or what answers is not an Elasticsearch."""


class IndexNotReady(ServerError):
    """The index is missing, or lacks the fields that esdedup reads and writes."""


class ForestError(EsdedupError):
    """The forest of clusters cannot be used."""


class ForestBusy(ForestError):
    """Another process owns the forest."""


class ForestLost(ForestError):
    """This process owned the forest, and another one has taken it over."""


class ForestMismatch(ForestError):
    """The forest was made with another profile, or by a version that this one cannot read."""


class NodeError(EsdedupError):
    """The embedded Elasticsearch did not start, or did not stop."""
