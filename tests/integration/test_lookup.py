"""What the forest says of a text that is not indexed is what it says when the text arrives."""

import pytest
from elasticsearch import Elasticsearch

from esdedup import ArticleRejected, Dedup, ForestError, ForestMismatch, Profile, SettingError
from esdedup.fingerprint.profile import CLASSIC, VERIFIED
from tests.support.forests import ARTICLES, Names, Read, feed, nodes, roots


@pytest.mark.parametrize("profile", [VERIFIED, CLASSIC], ids=["verified", "classic"])
def test_a_text_gets_the_root_that_its_article_gets(
    es: Elasticsearch, read: Read, index_name: Names, profile: Profile
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    of = {"forest": forest, "profile": profile}
    known, coming = ARTICLES[:-60], ARTICLES[-60:]
    with Dedup(es, forest=forest, profile=profile) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, known)
        joined = 0
        for article in [*coming, *known[:5]]:
            # The owner has written what no refresh has shown yet.
            page = read("similar_to_text", index, article["text"], of=of)
            es.indices.refresh(index=index)
            before = roots(es, index)
            feed(es, dedup, index, [article])
            root = roots(es, index)[article["_id"]]
            is_new = root not in before.values()
            assert page.root == (None if is_new else root)
            members = [each for each, its in before.items() if its == root]
            assert page.total == len(members)
            assert {each.id for each in page.articles} <= set(members)
            joined += not is_new
        assert joined > 10


def test_it_changes_nothing(es: Elasticsearch, fed: tuple[str, str], read: Read) -> None:
    index, forest = fed
    before = nodes(es, forest)
    text = str(ARTICLES[0]["text"])
    page = read("similar_to_text", index, text, of={"forest": forest})
    assert page.root
    assert {article.resemblance for article in page.articles} >= {1.0}
    assert (
        read("similar_to_text", index, "nobody has ever written this down before", of={"forest": forest}).root
        is None
    )
    assert read("similar_to_text", index, "?!", of={"forest": forest}).root is None
    assert nodes(es, forest) == before


def test_pages_of_it_end(es: Elasticsearch, fed: tuple[str, str], read: Read) -> None:
    index, forest = fed
    largest = read("list", index, sort="similar-desc", size=1).rows[0]
    text = read("article", index, largest.id).text
    found, after = [], None
    while True:
        page = read("similar_to_text", index, text, size=2, after=after, of={"forest": forest})
        found += [article.id for article in page.articles]
        after = page.next
        if after is None:
            break
    assert len(found) == len(set(found)) == page.total > 2


def test_what_is_refused(es: Elasticsearch, fed: tuple[str, str], read: Read) -> None:
    index, forest = fed
    with pytest.raises(ForestError, match="there is no forest"):
        read("similar_to_text", index, "some text", of={"forest": "test-none"})
    with pytest.raises(ForestMismatch, match="no forest"):
        read("similar_to_text", index, "some text", of={"forest": index})
    with pytest.raises(ForestMismatch, match="made with profile"):
        read("similar_to_text", index, "some text", of={"forest": forest, "profile": CLASSIC})
    with pytest.raises(SettingError, match="not a string"):
        read("similar_to_text", index, None, of={"forest": forest})
    with pytest.raises(ArticleRejected, match="half a character"):
        read("similar_to_text", index, "\ud800", of={"forest": forest})
