import pytest
from elasticsearch import Elasticsearch

from esdedup import Dedup, Profile
from esdedup.profile import DEFAULT
from tests.forests import ARTICLES, Names, feed


@pytest.fixture
def profile() -> Profile:
    """What `fed` is made with; a test may name others."""
    return DEFAULT


@pytest.fixture
def fed(es: Elasticsearch, index_name: Names, profile: Profile) -> tuple[str, str]:
    """An index of the sample's articles, and its forest."""
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, profile=profile) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES)
    return index, forest
