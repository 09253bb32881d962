"""The web pages and the JSON API of one index.

Routes only parse requests and render what a reader returns. May import everything except `cli`,
`node`, `sample`, `ingest` and `maintenance`.

A name is imported when it is first used: the sidecar takes limits from this room without the extra ``serve``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from esdedup.web.app import Visit, api_description, create_app

__all__ = ["Visit", "api_description", "create_app"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from esdedup.web import app

        return getattr(app, name)
