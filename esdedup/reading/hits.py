"""Articles from the hits of a search."""

from typing import Any

from esdedup.fields import Fields, term_of, terms_of, value_of
from esdedup.times import iso, time_ms

Hit = dict[str, Any]


def root_of(hit: Hit, fields: Fields) -> str:
    """Return the root of a hit."""
    return str(term_of(hit["_source"], fields.root))


def place_of(hit: Hit) -> tuple[str, str]:
    """Return the index and the id of a hit's article."""
    return hit["_index"], hit["_id"]


def fields_read(fields: Fields) -> list[str]:
    """Return the fields that `values_of` reads, for ``_source``: others are not in a hit."""
    return [fields.title, fields.time, fields.source, fields.link, fields.root, fields.published]


def with_signature(fields: Fields) -> list[str]:
    """Return the fields that lists show, and those that similarity is computed from."""
    return [
        *fields_read(fields),
        *(f"{fields.dedup}.{name}" for name in ("fingerprint", "signature", "profile")),
    ]


def values_of(hit: Hit, fields: Fields) -> dict[str, Any]:
    """Return the values of the fields of `results.Article`."""
    source = hit["_source"]
    titles = (each.strip() for each in terms_of(source, fields.title))
    dated, published_ms = value_of(source, fields.time), time_ms(value_of(source, fields.published))
    arrived_ms = None if published_ms == time_ms(dated) else published_ms
    return {
        "id": hit["_id"],
        "index": hit["_index"],
        "root": term_of(source, fields.root),
        # A title of nothing but white space is none.
        "title": ", ".join(filter(None, titles)) or None,
        "published_at": dated,
        "arrived_at": None if arrived_ms is None else iso(arrived_ms),
        "source": value_of(source, fields.source),
        "url": term_of(source, fields.link),
    }


def moment_of(aggregation: dict[str, Any]) -> str | None:
    """Return a minimum or maximum of times as ISO 8601, None if no article has a time."""
    return None if aggregation["value"] is None else iso(int(aggregation["value"]))
