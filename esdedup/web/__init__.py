"""The pages, and the same results as JSON over HTTP, for one index.

Routes only parse what is asked and render what a reader returns. May import everything except `cli`,
`node`, `sample`, `ingest` and `maintenance`.
"""

from esdedup.web.app import create_app

__all__ = ["create_app"]
