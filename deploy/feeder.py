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


def actions() -> Iterator[dict[str, Any]]:
    """Yield the articles as actions of a bulk request."""
    for article in sample.articles():
        yield {"_index": INDEX, "_id": article["id"], "_source": article}


def main() -> None:
    """Write them again and again."""
    logging.basicConfig(level=logging.INFO)
    credentials = (os.environ["ELASTIC_USER"], os.environ["ELASTIC_PASSWORD"])
    with Elasticsearch(os.environ["ES_URL"], basic_auth=credentials) as elasticsearch:
        Dedup(elasticsearch).setup(INDEX)
    # What one of them refuses, because it is the standby, the other takes.
    sidecars = os.environ["SIDECARS"].split(",")
    retried = {"retry_on_status": (429, 502, 503, 504), "max_retries": 20, "retry_on_timeout": True}
    with Elasticsearch(sidecars, basic_auth=credentials, request_timeout=60, **retried) as client:
        while True:
            written, failed = helpers.bulk(client, actions(), max_retries=10, raise_on_error=False)
            logging.info("%d articles written, failed: %s", written, failed)
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
