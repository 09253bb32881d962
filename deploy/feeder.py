"""The feeder of docker-compose.yml: writes the sample corpus through the sidecars with a plain client."""

import logging
import os
import time
from collections.abc import Iterator
from typing import Any

from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, sample

INDEX = "news"
PAUSE_S = 60
# The client retries refused connections, and the helper retries after error responses, since the client would
# retry these without a pause. Together, they retry for longer than a sidecar takes to start or to take over.
CLIENT_OPTIONS: dict[str, Any] = {
    "retry_on_status": (),
    "retry_on_timeout": True,
    "max_retries": 100,
    "retry_backoff_base": 0.2,
    "retry_backoff_cap": 2.0,
}
BULK_OPTIONS: dict[str, Any] = {
    "retry_on_status": (429, 502, 503, 504),
    "max_retries": 100,
    "initial_backoff": 0.2,
    "max_backoff": 2.0,
}


def actions() -> Iterator[dict[str, Any]]:
    """Yield a bulk action for each article."""
    for article in sample.articles():
        yield {"_index": INDEX, "_id": article["id"], "_source": article}


def main() -> None:
    """Write all articles repeatedly, with pauses."""
    logging.basicConfig(level=logging.INFO)
    credentials = (os.environ["ELASTIC_USER"], os.environ["ELASTIC_PASSWORD"])
    with Elasticsearch(os.environ["ES_URL"], basic_auth=credentials) as elasticsearch:
        Dedup(elasticsearch).setup(INDEX)
    sidecars = os.environ["SIDECARS"].split(",")
    with Elasticsearch(sidecars, basic_auth=credentials, request_timeout=60, **CLIENT_OPTIONS) as client:
        while True:
            written, failed = helpers.bulk(client, actions(), raise_on_error=False, **BULK_OPTIONS)
            logging.info("%d articles written, failed: %s", written, failed)
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
