"""An index that is set up for a language: what its searches find, and what it keeps."""

import pytest
from elasticsearch import BadRequestError, Elasticsearch, helpers

from esdedup import Dedup, Fields, IndexNotReady, Reader, SettingError
from esdedup.elastic.mappings import ANALYZERS
from tests.support.names import Names

ARTICLES = {
    "en": {
        "one": "Election day: the voters of the harbour town chose a new council on Monday morning.",
        "two": "The elections were close, and every vote in the harbour counted until late at night.",
        "three": "A ferry that runs aground is no news here, said the captain who had been running it.",
    },
    "zh": {
        "one": "港口城市的选民星期一上午选举了新的市议会。",
        "two": "选举结果非常接近，港口的每一票都算到了深夜。",
        "three": "渡轮搁浅在这里不是新闻，开了多年船的船长说。",
    },
}


def fed(es: Elasticsearch, index_name: Names, articles: str, *, language: str | None = None) -> str:
    index = index_name(f"language-{articles}")
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index, language=language)
        actions = [{"_index": index, "_id": each, "text": text} for each, text in ARTICLES[articles].items()]
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
    return index


def found(reader: Reader, index: str, words: str) -> dict[str, str]:
    """Return what is marked of each article that is found."""
    page = reader.list(index, query=reader.search_query(index, words), details=True)
    rows = {row.id: row.details for row in page.rows}
    return {
        each: " ".join(part.text for part in details.snippet.text if part.is_match)
        for each, details in rows.items()
        if details is not None
    }


def test_english_words_are_found_in_all_their_forms(es: Elasticsearch, index_name: Names) -> None:
    reader = Reader(es)
    index = fed(es, index_name, "en", language="en")
    assert found(reader, index, "election") == {"one": "Election", "two": "elections"}
    assert found(reader, index, "voted") == {"two": "vote"}
    assert found(reader, index, '"ferries run"') == {}
    assert found(reader, index, "run -aground") == {}
    assert found(reader, index, "the captain") == {"three": "captain"}
    plain = fed(es, index_name, "en")
    assert found(reader, plain, "election") == {"one": "Election"}


def test_chinese_is_found_by_pairs_of_characters(es: Elasticsearch, index_name: Names) -> None:
    reader = Reader(es)
    index = fed(es, index_name, "zh", language="zh-CN")
    for words, expected in {"选举": {"one", "two"}, "港口 选举": {"one", "two"}, "新闻": {"three"}}.items():
        assert found(reader, index, words).keys() == expected
    # Pairs that stand in a text, but not as these four characters.
    assert found(reader, index, "选举港口") == {}
    # A single character is found where it begins a pair: all but the last of a sentence's part.
    assert found(reader, index, "港").keys() == {"one", "two"}
    assert found(reader, index, "选举 -票").keys() == {"one"}
    assert found(reader, fed(es, index_name, "zh"), "港").keys() == {"one", "two"}
    assert "选举" in found(reader, index, "选举")["two"]


def test_an_index_keeps_its_language(es: Elasticsearch, index_name: Names) -> None:
    index, other = index_name("kept"), index_name("other")
    fields = Fields(text="body")
    with Dedup(es, forest=index_name("forest"), fields=fields) as dedup:
        assert dedup.setup(index, language="en")
        meta = es.indices.get_mapping(index=index)[index]["mappings"]["_meta"]["esdedup"]
        assert (meta["language"], meta["fields"]["text"]) == ("en", "body")
        assert not dedup.setup(index)
        assert not dedup.setup(index, language="en")
        with pytest.raises(IndexNotReady, match=r"set up for the language 'en', which is decided when"):
            dedup.setup(index, language="zh")
        dedup.setup(other, route_by_root=True)
        with pytest.raises(IndexNotReady, match="set up for no language in particular"):
            dedup.setup(other, language="en")
    # A field that is named later is searched in the same way.
    with Dedup(es, forest=index_name("forest"), fields=Fields(text="body", title="headline")) as dedup:
        dedup.setup(index)
    properties = es.indices.get_mapping(index=index)[index]["mappings"]["properties"]
    assert {properties[name]["analyzer"] for name in ("body", "title", "headline")} == {"english"}


def test_what_the_server_lacks_is_said_before_anything_is_created(
    es: Elasticsearch, index_name: Names
) -> None:
    index = index_name("lacking")
    with Dedup(es, forest=index_name("forest")) as dedup:
        # A server with all modules has every one of them.
        try:
            es.indices.analyze(analyzer="thai", text="a")
        except BadRequestError:
            with pytest.raises(
                SettingError, match="lacks the analyzer 'thai', which the language 'th' needs"
            ):
                dedup.setup(index, language="th")
        with pytest.raises(SettingError, match="there is no language 'klingon'; choose from ar, "):
            dedup.setup(index, language="klingon")
    assert not es.indices.exists(index=index)


@pytest.mark.parametrize("language", sorted(ANALYZERS.keys() - {"th"}))
def test_every_language_has_its_analyzer(es: Elasticsearch, language: str) -> None:
    found = es.indices.analyze(analyzer=ANALYZERS[language], text="a b")["tokens"]
    assert isinstance(found, list)
