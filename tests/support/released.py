"""Fixtures with the stored formats of a released version: ``python -m tests.support.released`` writes them.

`write` feeds a server, and saves in a folder the indices, the files written by commands, and read results.
`restore` loads the saved indices into a server. The folder of a released version is never rewritten.
"""

import contextlib
import gzip
import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch, helpers
from typer.testing import CliRunner

from benchmarks.signatures import documents
from esdedup import Dedup, Fields, Reader
from esdedup.cli.app import app
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.search import EVERY_HASH, EVERY_NODE
from esdedup.elastic.forest.stored import stored_of
from tests import sample
from tests.support import server
from tests.support.pages import ENOUGH, HARBOUR, VALLEY, page

FIXTURES = Path(__file__).parents[1] / "fixtures"
# Settings that Elasticsearch adds to an index.
_OF_THE_SERVER = {"creation_date", "provided_name", "uuid", "version", "routing", "replication"}
_INDICES = ("news", "news-forest", "wire", "wire-forest")
WIRE_FIELDS = Fields(text="body", title="headline", time="date", source="agency", link="link")
# Long enough that nothing has expired when a fixture is read.
RETENTION = timedelta(days=36_500)
_BATCH = 40
_SENTENCES = 3
_SAMPLE = 120


def name_of(folder: Path, what: str) -> str:
    """Return the name of an index. The name never changes, because roots and cursors contain it."""
    return f"esdedup-{folder.name}-{what}"


def dedup_of(es: Elasticsearch, folder: Path, what: str) -> Dedup:
    """Return the `Dedup` for `news` or `wire`, whose articles have different field names."""
    fields = WIRE_FIELDS if what == "wire" else None
    forest = name_of(folder, f"{what}-forest")
    # The fixture saves a document for each node; a forest with look-up in memory writes no such documents.
    how: dict[str, Any] = {"fields": fields, "batch_size": _BATCH, "lookup": "search"}
    return Dedup(es, forest=forest, retention=RETENTION, **how)


def reader_of(es: Elasticsearch, folder: Path) -> Reader:
    """Return a reader of the version's articles; the reader finds the field names in the indices."""
    return Reader(es, forest=name_of(folder, "news-forest"))


def _articles() -> Iterator[dict[str, Any]]:
    """Yield articles with the default field names: first on pages of two sites, then without boilerplate."""
    for number, each in enumerate(sample.articles(ENOUGH)):
        short = ". ".join(each["text"].split(". ")[:_SENTENCES])
        site = (HARBOUR, VALLEY)[number % 2]
        yield {
            "_id": f"page-{number}",
            "title": each["title"],
            "text": page(short, site),
            "url": f"https://www.{site}/{number}",
            "published_at": each["published_at"],
        }
    for each in list(sample.articles(_SAMPLE))[: _SAMPLE // 2]:
        yield {"_id": each["id"], **{name: value for name, value in each.items() if name != "id"}}
    yield {"_id": "empty", "title": "No text", "text": "…", "published_at": "2026-10-01T00:00:00Z"}


def _wire_articles() -> Iterator[dict[str, Any]]:
    """Yield articles with other field names."""
    for each in sample.articles(40):
        yield {
            "_id": f"wire-{each['id']}",
            "headline": each["title"],
            "body": each["text"],
            "date": each["published_at"],
            "agency": each["source"],
        }


def _later_articles() -> Iterator[dict[str, Any]]:
    """Yield the articles to feed after the indices are saved: edited reprints and new stories."""
    edited = [
        each | {"text": f"{each['text']} Reported once more by the Evening Post."}
        for each in list(sample.articles(_SAMPLE))[: _SAMPLE // 2 : 3]
    ]
    for number, each in enumerate([*edited, *sample.articles(20, seed=1)]):
        yield {
            "_id": f"later-{number}",
            **{name: each[name] for name in ("title", "text")},
            "source": "Evening Post",
            "published_at": "2026-10-07T00:00:00Z",
        }


def later_articles(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the articles that were fed to the released version after its indices were saved."""
    yield from _read_lines(folder / "later.jsonl.gz")


def feed(dedup: Dedup, index: str, found: Iterator[dict[str, Any]], *, es: Elasticsearch) -> dict[str, str]:
    """Index articles; return their roots."""
    actions = list(dedup.enrich(({"_index": index, **article} for article in found), backfill=True))
    helpers.bulk(es, actions, refresh=True)
    return {action["_id"]: action["_source"]["dedup"]["root"] for action in actions}


def answers(es: Elasticsearch, folder: Path) -> dict[str, Any]:
    """Return the results of several reads; `cursor` leads to the second page of the list."""
    reader, news, wire = reader_of(es, folder), name_of(folder, "news"), name_of(folder, "wire")
    first = reader.list(news, sort="newest", size=20)
    chosen = max(first.rows, key=lambda row: row.similar)
    similar = reader.similar(news, chosen.id)
    return {
        "cursor": first.next,
        "list": [(row.id, row.root, row.similar) for row in first.rows],
        "second": [(row.id, row.root, row.similar) for row in second_page(es, folder, str(first.next))],
        "wire": [(row.id, row.root, row.similar) for row in reader.list(wire, sort="similar-desc").rows],
        # The search finds other forms of the word, because `wire` is set up for English.
        "words": sorted(row.id for row in reader.list(wire, query=reader.search_query(wire, "furnace")).rows),
        "article": chosen.id,
        "similar": [(each.id, each.resemblance) for each in similar.rows],
    }


def second_page(es: Elasticsearch, folder: Path, cursor: str) -> tuple[Any, ...]:
    """Return the rows after a cursor."""
    page = reader_of(es, folder).list(name_of(folder, "news"), sort="newest", size=20, after=cursor)
    return page.rows


def command(*arguments: str | Path, text: str = "") -> str:
    """Run an `esdedup` command; return its output."""
    done = CliRunner().invoke(app, list(map(str, arguments)), input=text, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def write_files(folder: Path, url: str) -> None:
    """Write the files that commands produce and later versions must be able to read."""
    news, forest = name_of(folder, "news"), name_of(folder, "news-forest")
    lines = "".join(f"{json.dumps(each)}\n" for each in sample.articles(300))
    command("weights", "-", "--min-articles", "20", "--output", folder / "weights.json", text=lines)
    overrides = command("stats", "--boilerplate", "--index", news, "--forest", forest, "--url", url)
    (folder / "pins.jsonl").write_text(overrides, "utf-8")
    config = command("sidecar", "--print-config", "--forest", forest, "--pages", "--index", news)
    (folder / "sidecar.toml").write_text(config, "utf-8")
    (folder / "costs.json").write_text(
        (resources.files("esdedup.plan") / "unit_costs.json").read_text(), "utf-8"
    )


def fingerprint(folder: Path) -> dict[str, Any]:
    """Return a fingerprint that depends on the table of weights."""
    options = ("--profile", "keywords", "--weights", folder / "weights.json", "--json")
    found: dict[str, Any] = json.loads(
        command("fingerprint", *options, text=next(later_articles(folder))["text"])
    )
    return {name: found[name] for name in ("fingerprint", "profile")}


def write(es: Elasticsearch, folder: Path, *, url: str) -> None:
    """Feed articles, save the indices and results of reads, then feed later articles and save their roots."""
    folder.mkdir(parents=True, exist_ok=True)
    news, wire = name_of(folder, "news"), name_of(folder, "wire")
    with dedup_of(es, folder, "news") as dedup:
        dedup.setup(news)
        feed(dedup, news, _articles(), es=es)
    with dedup_of(es, folder, "wire") as dedup:
        dedup.setup(wire, shards=2, route_by_root=True, language="en")
        feed(dedup, wire, _wire_articles(), es=es)
    es.indices.refresh(index=name_of(folder, "*"))
    for what in _INDICES:
        name = name_of(folder, what)
        found = es.indices.get(index=name)[name]
        own = found["settings"]["index"]
        index = {
            "settings": {each: own[each] for each in own if each not in _OF_THE_SERVER},
            "mappings": found["mappings"],
            "aliases": found["aliases"],
        }
        stored = _forest_documents(es, name) if what.endswith("forest") else _article_documents(es, name)
        _write_lines(folder / f"{what}.jsonl.gz", [index, *sorted(stored, key=lambda each: each["_id"])])
    expected = answers(es, folder)
    _write_lines(folder / "later.jsonl.gz", list(_later_articles()))
    write_files(folder, url)
    expected["fingerprint"] = fingerprint(folder)
    with dedup_of(es, folder, "news") as dedup:
        expected["later"] = feed(dedup, news, later_articles(folder), es=es)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", "utf-8")


def restore(es: Elasticsearch, folder: Path) -> None:
    """Restore the saved indices of a version on a server."""
    for what in _INDICES:
        name = name_of(folder, what)
        index, *stored = _read_lines(folder / f"{what}.jsonl.gz")
        es.indices.create(index=name, **index)
        helpers.bulk(es, [{"_index": name, **each} for each in stored], refresh=True)


def remove(es: Elasticsearch, folder: Path) -> None:
    """Delete a version's indices."""
    for what in _INDICES:
        es.options(ignore_status=404).indices.delete(index=name_of(folder, what))


def _article_documents(es: Elasticsearch, index: str) -> list[dict[str, Any]]:
    kept = ("_id", "_routing", "_source")
    return [{name: hit[name] for name in kept if name in hit} for hit in helpers.scan(es, index=index)]


def _forest_documents(es: Elasticsearch, forest: str) -> list[dict[str, Any]]:
    """Return all documents of a forest as they were written, though the index drops most of their source."""
    index = ForestIndex.find(es, forest)
    found: list[dict[str, Any]] = []
    for query in (EVERY_NODE, EVERY_HASH):
        for hits in index.hit_pages(query):
            packed = documents(stored_of(hits, index.relation), index.relation)
            found += ({"_id": document_id, "_source": body} for document_id, body in packed)
    own = {"query": {"bool": {"must_not": {"exists": {"field": "packed"}}}}, "docvalue_fields": ["learned"]}
    for hit in helpers.scan(es, index=forest, query=own):
        numbers = {name: values[0] for name, values in hit.get("fields", {}).items()}
        found.append({"_id": hit["_id"], "_source": hit["_source"] | numbers})
    return found


def _write_lines(path: Path, lines: list[Any]) -> None:
    text = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in lines)
    # Without a timestamp, equal contents give equal files.
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


if __name__ == "__main__":
    with server.running() as url, contextlib.closing(Elasticsearch(url, request_timeout=60)) as client:
        target = FIXTURES / (sys.argv[1] if len(sys.argv) > 1 else version("esdedup"))
        remove(client, target)
        write(client, target, url=url)
        remove(client, target)
