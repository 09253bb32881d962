"""What `versions` returns: the distinct texts of a cluster."""

from typing import Literal

from esdedup.reading.results import EXAMPLE_ARTICLE, Article, Result, SimilarArticle, example

TimeOrder = Literal["oldest", "newest"]
"""What comes first."""


class Version(Result, frozen=True):
    """One text of a cluster: the first article that has it, in the order of the page, and the others."""

    fingerprint: str | None
    """What these articles have in common; None if the text has none."""
    article: SimilarArticle
    copies: int
    """How many further articles have the same fingerprint: the same text, as far as it is compared."""
    copies_shown: tuple[Article, ...]
    """The first of these, at most 20."""


class VersionsPage(Result, frozen=True):
    """The distinct texts of an article's cluster, in order of time."""

    model_config = example(
        root=EXAMPLE_ARTICLE["root"],
        total=46,
        total_versions=31,
        versions=[
            {
                "fingerprint": EXAMPLE_ARTICLE["root"],
                "article": EXAMPLE_ARTICLE | {"resemblance": 0.93, "distance_bits": None},
                "copies": 1,
                "copies_shown": [EXAMPLE_ARTICLE | {"id": "en-17-9", "source": "Evening Post"}],
            }
        ],
        page=1,
        size=1,
        sort="oldest",
    )

    root: str | None
    total: int
    """Articles on all pages, with the article itself."""
    total_versions: int
    """Distinct texts on all pages, at most 10,000."""
    versions: tuple[Version, ...]
    page: int
    """From 1."""
    size: int
    sort: TimeOrder
    """Which article of each text counts, and which text comes first."""
