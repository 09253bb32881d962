"""What a search finds as a whole: frozen pydantic models, which also describe the JSON API."""

from esdedup.reading.results import Result, Timeline, example


class FacetValue(Result, frozen=True):
    """A value of a field, and how many articles have it."""

    value: str
    articles: int
    """Articles with this value, whatever else is chosen in this field."""
    is_chosen: bool
    """Whether the search asks for it."""


class Facet(Result, frozen=True):
    """The values of a field that articles have: those with the most articles first."""

    field: str
    """The full name of the field."""
    values: tuple[FacetValue, ...]
    other_articles: int
    """Articles in values that are not listed; an article with several values counts for each."""
    is_exact: bool
    """Whether the counts are exact, and no other value has more articles; on several shards that may be
    unknown."""


class Overview(Result, frozen=True):
    """What a search finds as a whole. Articles are counted, not rows."""

    model_config = example(
        total_articles=331,
        timeline={
            "interval_ms": 86_400_000,
            "steps": [
                {"start": "2026-09-06T00:00:00+00:00", "articles": 120, "sources": None},
                {"start": "2026-09-07T00:00:00+00:00", "articles": 211, "sources": None},
            ],
            "last": "2026-09-07T21:32:00+00:00",
        },
        sources={
            "field": "source",
            "values": [
                {"value": "Morning Wire", "articles": 48, "is_chosen": False},
                {"value": "Daily Ledger", "articles": 31, "is_chosen": False},
            ],
            "other_articles": 252,
            "is_exact": True,
        },
        facets=[
            {
                "field": "language",
                "values": [
                    {"value": "en", "articles": 201, "is_chosen": False},
                    {"value": "zh", "articles": 130, "is_chosen": False},
                ],
                "other_articles": 0,
                "is_exact": True,
            }
        ],
    )

    total_articles: int
    """All matching articles with a root."""
    timeline: Timeline
    """How many of them were published when, in UTC; steps have no sources."""
    sources: Facet | None
    """None if the source field cannot be counted."""
    facets: tuple[Facet, ...]
    """Further keyword fields of the index, at most 8, those for the language first. A field whose values are
    all different, such as an identifier, is left out unless one of them is chosen."""
    uneven_fields: tuple[str, ...] = ()
    """Fields that are no facets only because the indices behind the name map them differently, at most 8."""
