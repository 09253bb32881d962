"""What the forest says of a text that is not indexed is what it says when the text arrives."""

import pytest
from elasticsearch import Elasticsearch

from esdedup import ArticleRejected, Dedup, ForestError, ForestMismatch, Profile, SettingError
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.forest.lookup import look_up
from esdedup.elastic.forest.meta import Lookup
from esdedup.elastic.limits import DEFAULT_LIMITS, Limits
from esdedup.fields import Fields
from esdedup.fingerprint.profile import CLASSIC, VERIFIED
from esdedup.forest import Kind
from tests.support.forests import ARTICLES, Read, feed, feed_sample, nodes, roots
from tests.support.names import Names


@pytest.mark.parametrize("profile", [VERIFIED, CLASSIC], ids=lambda profile: profile.name)
@pytest.mark.parametrize("lookup", ["memory", "search"])
def test_a_text_gets_the_root_that_its_article_gets(
    es: Elasticsearch, read: Read, index_name: Names, profile: Profile, lookup: Lookup
) -> None:
    """By the articles, if the nodes are in the memory of the owner."""
    index, forest = index_name("articles"), index_name("forest")
    of = {"forest": forest, "profile": profile}
    known, coming = ARTICLES[:-15], ARTICLES[-15:]
    with Dedup(es, forest=forest, profile=profile, lookup=lookup) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, known)
        joined, after = 0, roots(es, index)
        for article in [*coming, known[0]]:
            # The owner has written what no refresh has shown yet.
            page = read("similar_to_text", index, article["text"], of=of)
            before = after
            feed(es, dedup, index, [article])
            after = roots(es, index)
            root = after[article["_id"]]
            is_new = root not in before.values()
            assert page.root == (None if is_new else root)
            assert page.root_exact == (lookup == "search")
            members = [each for each, its in before.items() if its == root]
            assert page.total == len(members)
            assert {each.id for each in page.rows} <= set(members)
            joined += not is_new
        assert 3 < joined < 15, joined


def test_a_text_is_looked_up_whole_where_boilerplate_is_kept(
    es: Elasticsearch, read: Read, index_name: Names
) -> None:
    """A menu is left out even before it is known, unless the profile keeps it."""
    index, forest = index_name("articles"), index_name("forest")
    profile = VERIFIED.with_changes(keep_boilerplate=True)
    menu = " / ".join(ARTICLES[0]["text"].replace(".", "").split()[:150])
    article = ARTICLES[1] | {"text": f"{menu}\nHome\n{ARTICLES[1]['text']}"}
    with Dedup(es, forest=forest, profile=profile) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [article])
    text = f"{article['text']} It was said so."
    assert read("similar_to_text", index, text, of={"forest": forest, "profile": profile}).total == 1
    with pytest.raises(ForestMismatch, match=profile.label):
        read("similar_to_text", index, text, of={"forest": forest})


def test_limits_and_common_keys_do_not_change_the_answer(es: Elasticsearch, index_name: Names) -> None:
    index, forest = feed_sample(es, index_name, VERIFIED, lookup="search")
    low = Limits(max_terms=300, max_hits=3, max_clauses=2, common_nodes=3, finer_keys_per_node=10**9)
    kinds = set()
    for article in ARTICLES[::50]:
        text = f"{article['text']} And something more was said about it at the end."
        plain, limited = (
            execute(
                es,
                look_up(
                    text,
                    index=index,
                    fields=Fields(),
                    forest=forest,
                    profile=VERIFIED,
                    learned=LearnedCopy(),
                    limits=limits,
                ),
            )[0]
            for limits in (DEFAULT_LIMITS, low)
        )
        assert (limited.kind, limited.root) == (plain.kind, plain.root)
        kinds.add(plain.kind)
    assert kinds & {Kind.JOINED, Kind.KNOWN}


def test_it_changes_nothing(es: Elasticsearch, unchanged: tuple[str, str], read: Read) -> None:
    index, forest = unchanged
    before = nodes(es, forest)
    text = str(ARTICLES[0]["text"])
    page = read("similar_to_text", index, text, of={"forest": forest})
    assert page.root
    assert {article.resemblance for article in page.rows} >= {1.0}
    assert (
        read("similar_to_text", index, "nobody has ever written this down before", of={"forest": forest}).root
        is None
    )
    assert read("similar_to_text", index, "?!", of={"forest": forest}).root is None
    assert nodes(es, forest) == before


def test_pages_of_it_end(es: Elasticsearch, unchanged: tuple[str, str], read: Read) -> None:
    index, forest = unchanged
    largest = read("list", index, sort="similar-desc", size=1).rows[0]
    text = read("article", index, largest.id).text
    found, after = [], None
    while True:
        page = read("similar_to_text", index, text, size=2, after=after, of={"forest": forest})
        found += [article.id for article in page.rows]
        after = page.next
        if after is None:
            break
    assert len(found) == len(set(found)) == page.total > 2


def test_what_is_refused(es: Elasticsearch, unchanged: tuple[str, str], read: Read) -> None:
    index, forest = unchanged
    with pytest.raises(ForestError, match=r"there is no forest .* rebuild it from them"):
        read("similar_to_text", index, "some text", of={"forest": "test-none"})
    with pytest.raises(ForestMismatch, match="not a forest"):
        read("similar_to_text", index, "some text", of={"forest": index})
    with pytest.raises(ForestMismatch, match="made with profile"):
        read("similar_to_text", index, "some text", of={"forest": forest, "profile": CLASSIC})
    with pytest.raises(SettingError, match="not a string"):
        read("similar_to_text", index, None, of={"forest": forest})
    with pytest.raises(ArticleRejected, match="lone surrogate"):
        read("similar_to_text", index, "\ud800", of={"forest": forest})
