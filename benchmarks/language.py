"""What a search finds in an index that was set up for a language, beside one that was set up for none.

Against references that know nothing of Elasticsearch: forms of words that are written down here, and jieba's
words.
"""

import collections
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import rjieba
from elasticsearch import Elasticsearch, helpers

from benchmarks import articles, server
from benchmarks.rows import Row, duration_s
from benchmarks.run import Run
from esdedup.elastic.mappings import article_index
from esdedup.fields import Fields
from esdedup.reading.search_words import words

_TABLE = "search-language"
_FIELDS = Fields()
_WITHOUT = "set up for no language"
_ROUNDS = 5
_MOST_FOUND = 10_000
_WORDS, _CHARACTERS = 20, 10
# Words that some articles have, and most have not.
_FEWEST, _MOST = 0.01, 0.5
_CHINESE = re.compile("[\u4e00-\u9fff]+")
# Each is searched by its first form.
_FORMS = (
    "acquire acquires acquired acquiring",
    "agree agrees agreed agreeing",
    "bank banks",
    "buy buys bought buying",
    "company companies",
    "country countries",
    "dealer dealers",
    "dividend dividends",
    "export exports exported exporting",
    "increase increases increased increasing",
    "industry industries",
    "merge merges merged merging",
    "price prices priced pricing",
    "rate rates",
    "rise rises rose risen rising",
    "sell sells sold selling",
    "share shares",
    "ship ships shipped shipping",
    "talk talks talked talking",
    "tariff tariffs",
)


class _Query(NamedTuple):
    """What is typed, and the articles that it should find."""

    typed: str
    wanted: frozenset[str]


class _Found(NamedTuple):
    """What searches of one kind found, in an index; shares are means over the queries."""

    recall: float
    precision: float
    search_ms: float


def search_language(run: Run) -> list[Row]:
    """Compare the indices of English and of Chinese news."""
    rows: list[Row] = []
    with server.client(run, lifetime_s=3_600) as client:
        for name, language in (("en_wire", "en"), ("zh_news", "zh")):
            texts = _texts(name, run)
            kinds = _english(texts) if language == "en" else _chinese(texts)
            indices = {each: _index(client, texts, each) for each in (language, None)}
            for kind, queries in kinds.items():
                ours, theirs = (_search(client, index, queries) for index in indices.values())
                rows += _compared(f"{articles.SETS[name]}, {kind}", ours, theirs)
            ours_mb, theirs_mb = (_megabytes(client, index) for index in indices.values())
            rows.append(_row(f"{articles.SETS[name]}, the index", ours_mb, theirs_mb, "MB"))
            client.indices.delete(index=list(indices.values()))
    return rows


def _texts(name: str, run: Run) -> dict[str, tuple[str, str]]:
    """Return title and text of each article by its id."""
    found = list(articles.articles_of(name).items())
    return {id_: (each.get("title") or "", each["text"]) for id_, each in found[: run.size(len(found))]}


def _english(texts: Mapping[str, tuple[str, str]]) -> dict[str, list[_Query]]:
    in_article = {id_: set(re.findall("[a-z]+", " ".join(each).lower())) for id_, each in texts.items()}
    queries = [_Query(forms.split()[0], _having(in_article, set(forms.split()))) for forms in _FORMS]
    return {f"{_WORDS} words in one form": queries}


def _chinese(texts: Mapping[str, tuple[str, str]]) -> dict[str, list[_Query]]:
    in_article = {id_: set(rjieba.cut("\n".join(each))) for id_, each in texts.items()}
    in_titles = collections.Counter(
        word for title, _ in texts.values() for word in set(rjieba.cut(title)) if _CHINESE.fullmatch(word)
    )
    usual = [
        word
        for word, _ in in_titles.most_common()
        if _FEWEST <= len(_having(in_article, {word})) / len(texts) <= _MOST
    ]
    of_several = [word for word in usual if len(word) > 1][:_WORDS]
    of_one = [word for word in usual if len(word) == 1][:_CHARACTERS]
    characters = {id_: set("".join(each)) for id_, each in texts.items()}
    return {
        f"{_WORDS} words": [_Query(word, _having(in_article, {word})) for word in of_several],
        f"{_CHARACTERS} single characters": [_Query(one, _having(characters, {one})) for one in of_one],
    }


def _having(in_article: Mapping[str, set[str]], wanted: set[str]) -> frozenset[str]:
    return frozenset(id_ for id_, found in in_article.items() if found & wanted)


def _index(client: Elasticsearch, texts: Mapping[str, tuple[str, str]], language: str | None) -> str:
    index = f"benchmark-language-{language or 'none'}"
    client.indices.delete(index=index, ignore_unavailable=True)
    client.indices.create(index=index, **article_index(_FIELDS, language=language, shards=1))

    def actions() -> Iterator[dict[str, str]]:
        for id_, (title, text) in texts.items():
            yield {"_index": index, "_id": id_, _FIELDS.title: title, _FIELDS.text: text}

    helpers.bulk(client, actions())
    client.indices.forcemerge(index=index, max_num_segments=1)
    client.indices.refresh(index=index)
    return index


def _search(client: Elasticsearch, index: str, queries: Sequence[_Query]) -> _Found:
    recalls, precisions, times_ms = [], [], []
    for query in queries:
        body = words(query.typed, _FIELDS)
        answer = client.search(index=index, query=body, size=_MOST_FOUND, source=False)
        found = {hit["_id"] for hit in answer["hits"]["hits"]}
        recalls.append(len(found & query.wanted) / len(query.wanted))
        precisions.append(len(found & query.wanted) / len(found) if found else 1.0)
        # As a page asks, without what caches would answer.
        times_ms += [
            1_000 * duration_s(lambda body=body: client.search(index=index, query=body, request_cache=False))
            for _ in range(_ROUNDS)
        ]
    return _Found(statistics.mean(recalls), statistics.mean(precisions), statistics.median(times_ms))


def _megabytes(client: Elasticsearch, index: str) -> float:
    stats = client.indices.stats(index=index, metric="store")
    return float(stats["_all"]["primaries"]["store"]["size_in_bytes"]) / 1e6


def _compared(case: str, ours: _Found, theirs: _Found) -> list[Row]:
    return [
        _row(f"{case}, recall", 100 * ours.recall, 100 * theirs.recall, "% found"),
        _row(f"{case}, precision", 100 * ours.precision, 100 * theirs.precision, "% right"),
        _row(f"{case}, a search, median", ours.search_ms, theirs.search_ms, "ms"),
    ]


def _row(case: str, ours: float, theirs: float, unit: str) -> Row:
    # Neither is a peer: a set-up is compared with another one.
    return Row(table=_TABLE, case=case, ours=ours, against=_WITHOUT, theirs=theirs, unit=unit)
