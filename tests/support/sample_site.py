"""Served pages of the sample's articles, for tests in a browser."""

import contextlib
import dataclasses
import urllib.parse
from collections.abc import Iterator

from elasticsearch import Elasticsearch

from esdedup import Reader
from tests.support.browsing import served

LOCALES = {"en": "en-GB", "zh": "zh-CN"}
"""What a browser wishes for, by the language that it gets."""


@dataclasses.dataclass(frozen=True)
class SampleSite:
    """Pages of an index."""

    address: str
    index: str
    reader: Reader

    def article(self, **options: str) -> str:
        """Return the address of the page of an article of the largest cluster, neither first nor last."""
        third = self.reader.versions(self.index, self.largest[0]).versions[2].article
        return f"{self.address}/article?{urllib.parse.urlencode({'id': third.id} | options)}"

    @property
    def largest(self) -> list[str]:
        """The ids of an article of each of the two largest clusters."""
        return [row.id for row in self.reader.list(self.index, sort="similar-desc", size=2).rows]


@contextlib.contextmanager
def sample_site(es: Elasticsearch, url: str, index: str, forest: str) -> Iterator[SampleSite]:
    """Serve an index of the sample's articles."""
    with served("--index", index, "--forest", forest, "--url", url) as address:
        yield SampleSite(address, index, Reader(es, forest=forest))
