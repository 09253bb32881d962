"""Compares the search quality of an index that was set up for a language with that of a plain index.

The expected results are independent of Elasticsearch: word forms listed here, and the words that jieba finds.
"""

import collections
import functools
import itertools
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import rjieba
from elasticsearch import Elasticsearch, helpers

from benchmarks import articles, server
from benchmarks.rows import Row, duration_s
from benchmarks.server import Run
from esdedup.elastic.mappings import article_index
from esdedup.elastic.requests import Query
from esdedup.fields import Fields
from esdedup.reading.search_form import words

_TABLE = "search-language"
_FIELDS = Fields()
_WITHOUT = "set up for no language"
_ROUNDS = 5
_MOST_FOUND = 10_000
# The maximum number of expected results: half of the requested number, to leave room for wrong results.
_MOST_EXPECTED = 5_000
_WORDS, _CHARACTERS = 20, 10
# The minimum and maximum share of articles that contain a word.
_FEWEST, _MOST = 0.01, 0.5
_CHINESE = re.compile("[\u4e00-\u9fff]+")
_END_OF_SENTENCE = re.compile("[\u3002\uff01\uff1f\n]+")
# The forms of each word; the first form is searched for.
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
    """A query, and the articles that it should find."""

    typed: str
    expected: frozenset[str]
    # Whether the query is a match query, as an application would send it, instead of the search box's query.
    is_match: bool = False

    def body(self) -> Query:
        fields = [_FIELDS.title, _FIELDS.text]
        own: Query = {"multi_match": {"query": self.typed, "fields": fields}}
        return own if self.is_match else words(self.typed, _FIELDS)


class _Found(NamedTuple):
    """The results of one kind of query in an index: mean recall and precision in percent, median duration."""

    recall: float
    precision: float
    search_ms: float


def search_language(run: Run) -> list[Row]:
    """Compare searches of English news and of Chinese news."""
    rows: list[Row] = []
    with server.client(run, lifetime_s=3_600) as client:
        english, chinese = _texts("en_wire", run), _texts("zh_news", run)
        rows += _compared(client, articles.SETS["en_wire"], "en", english, _english(english))
        rows += _compared(client, articles.SETS["zh_news"], "zh", chinese, _chinese(chinese))
        # The number of sentences is that of the articles in a small index, but sentences are short.
        sentences = _sentences(chinese)
        case = f"the same, each of {len(sentences):,} sentences an article"
        rows += _compared(client, case, "zh", sentences, _chinese(sentences))
    return rows


def _compared(
    client: Elasticsearch,
    case: str,
    language: str,
    texts: Mapping[str, tuple[str, str]],
    kinds: Mapping[str, Sequence[_Query]],
) -> Iterator[Row]:
    """Index the texts with and without a language, and send all queries to both indices."""
    indices = [_index(client, texts, each) for each in (language, None)]
    for kind, queries in kinds.items():
        ours, theirs = _search(client, indices, queries)
        for name, unit in (("recall", "% found"), ("precision", "% right"), ("search_ms", "ms")):
            what = "a search, median" if name == "search_ms" else name
            yield _row(f"{case}, {kind}, {what}", getattr(ours, name), getattr(theirs, name), unit)
    ours_mb, theirs_mb = (_megabytes(client, index) for index in indices)
    yield _row(f"{case}, the index", ours_mb, theirs_mb, "MB")
    client.indices.delete(index=indices)


def _texts(name: str, run: Run) -> dict[str, tuple[str, str]]:
    """Return the title and text of each article, by id."""
    found = list(articles.articles_of(name).items())
    return {id_: (each.get("title") or "", each["text"]) for id_, each in found[: run.size(len(found))]}


def _sentences(texts: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    pieces = (piece.strip() for _, text in texts.values() for piece in _END_OF_SENTENCE.split(text))
    return {str(place): ("", piece) for place, piece in enumerate(each for each in pieces if each)}


def _english(texts: Mapping[str, tuple[str, str]]) -> dict[str, list[_Query]]:
    in_article = {id_: set(re.findall("[a-z]+", " ".join(each).lower())) for id_, each in texts.items()}
    queries = [_Query(forms.split()[0], _having(in_article, set(forms.split()))) for forms in _FORMS]
    return {f"{_WORDS} words in one form": queries}


def _chinese(texts: Mapping[str, tuple[str, str]]) -> dict[str, list[_Query]]:
    in_article = {id_: set(rjieba.cut("\n".join(each))) for id_, each in texts.items()}
    counts = collections.Counter(word for found in in_article.values() for word in found)
    usual = [
        word
        for word, count in counts.most_common()
        if _CHINESE.fullmatch(word) and _FEWEST <= count / len(texts) <= _MOST and count <= _MOST_EXPECTED
    ]
    of_several = [word for word in usual if len(word) > 1][:_WORDS]
    characters = {id_: set("".join(each)) for id_, each in texts.items()}
    of_one = (_Query(word, _having(characters, {word})) for word in usual if len(word) == 1)
    single = [query for query in of_one if len(query.expected) <= _MOST_EXPECTED][:_CHARACTERS]
    return {
        f"{_WORDS} words": [_Query(word, _having(in_article, {word})) for word in of_several],
        f"{_WORDS} words by a match query": [
            _Query(word, _having(in_article, {word}), is_match=True) for word in of_several
        ],
        f"{_CHARACTERS} single characters": single,
    }


def _having(in_article: Mapping[str, set[str]], forms: set[str]) -> frozenset[str]:
    return frozenset(id_ for id_, found in in_article.items() if found & forms)


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


def _search(client: Elasticsearch, indices: Sequence[str], queries: Sequence[_Query]) -> list[_Found]:
    """Search the indices in turn for each query, so that a busy machine disturbs all indices equally."""
    recalls, precisions, times_ms = ({index: [0.0] * 0 for index in indices} for _ in range(3))
    for query in queries:
        body = query.body()
        for index in indices:
            answer = client.search(index=index, query=body, size=_MOST_FOUND, source=False)
            found = {hit["_id"] for hit in answer["hits"]["hits"]}
            recalls[index].append(len(found & query.expected) / len(query.expected))
            precisions[index].append(len(found & query.expected) / len(found) if found else 1.0)
        for _, index in itertools.product(range(_ROUNDS), indices):
            # Search as the web pages do, but without the request cache.
            search = functools.partial(client.search, index=index, query=body, request_cache=False)
            times_ms[index].append(1_000 * duration_s(search))
    return [
        _Found(
            100 * statistics.mean(recalls[index]),
            100 * statistics.mean(precisions[index]),
            statistics.median(times_ms[index]),
        )
        for index in indices
    ]


def _megabytes(client: Elasticsearch, index: str) -> float:
    stats = client.indices.stats(index=index, metric="store")
    return float(stats["_all"]["primaries"]["store"]["size_in_bytes"]) / 1e6


def _row(case: str, ours: float, theirs: float, unit: str) -> Row:
    # This compares two of our own set-ups, so there is no ratio to a peer.
    return Row(table=_TABLE, case=case, ours=ours, against=_WITHOUT, theirs=theirs, unit=unit)
