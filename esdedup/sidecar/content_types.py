"""The content types in which articles can be read: JSON under any of its names. Pure."""

from esdedup.sidecar.refusals import RequestRefused

_JSON = frozenset(
    (
        "application/json",
        "application/x-ndjson",
        "application/vnd.elasticsearch+json",
        "application/vnd.elasticsearch+x-ndjson",
    )
)
# What older Logstash says, though it sends JSON. Elasticsearch refuses it by now.
_UNSAID = frozenset(("", "text/plain"))


def json_content_type(content_type: str | None, *, usual: str) -> str:
    """Return the header `Content-Type` for Elasticsearch.

    Args:
        content_type: As it came; None if there was none.
        usual: For a body that is JSON without saying so.

    Raises:
        RequestRefused: The body is something else, such as CBOR, and its articles cannot be read.
    """
    given = content_type or ""
    media_type = given.partition(";")[0].strip().lower()
    if media_type in _UNSAID:
        return usual
    if media_type in _JSON:
        return given
    raise RequestRefused(
        415,
        "media_type_header_exception",
        f"Content-Type header [{given}] is not supported where articles are enriched: send JSON",
    )
