"""The web pages and the JSON API of one index.

Routes only parse requests and render what a reader returns. May import everything except `cli`,
`node`, `sample`, `ingest` and `maintenance`.
"""

from esdedup.web.app import api_description, create_app
from esdedup.web.visits import Visit

__all__ = ["Visit", "api_description", "create_app"]
