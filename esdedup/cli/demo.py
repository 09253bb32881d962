"""`esdedup demo`: starts Elasticsearch, a sidecar and web pages, with articles to try them out."""

import json
import os
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from elasticsearch import Elasticsearch, helpers
from rich.markup import escape

from esdedup import sample
from esdedup.cli import options, output
from esdedup.cli.background_sidecar import start_sidecar, stop_sidecar
from esdedup.cli.command import command, require_extra
from esdedup.cli.messages import say, say_rejected
from esdedup.elastic.client import connect
from esdedup.elastic.errors import translated
from esdedup.fields import Fields
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.files import FileArticle, ReadArticle, read_articles
from esdedup.ingest.records import check_readable, total_bytes
from esdedup.reading.reader import Reader

_INDEX = "demo"
_FOREST = "demo-forest"
_ROWS = 10
# The first batch waits until the server has created its indices, which can take a long time.
_ANSWER_S = 300
# The field of the sample corpus's articles that is a facet of the pages.
_LANGUAGE = "language"


@command("demo", example="esdedup demo --input articles.jsonl")
def demo(
    *,
    data: Path = Path(".esdedup/node"),
    port: options.Port = 0,
    sidecar_port: options.Port = 0,
    input_file: Annotated[Path | None, typer.Option("--input")] = None,
    once: bool = False,
    id_field: options.IdField = "id",
    field_names: options.FieldNames,
) -> None:
    """Start an embedded Elasticsearch and a sidecar, index articles, show clusters, and serve pages.

    Options:
        data: Directory of the embedded Elasticsearch.
        port: Port of Elasticsearch; 0 picks a free port.
        sidecar_port: Port of the sidecar and its pages; 0 picks a free port.
        input_file: Your own articles (JSON Lines, a JSON array, or CSV) instead of the sample corpus.
        once: Serve no pages, and stop everything at the end.
    """
    require_extra("node")
    if not once:
        require_extra("serve")
    require_extra("sidecar")
    from esdedup import node

    fields = field_names.fields()
    if input_file is not None:
        check_readable([input_file])
        if input_file.is_file():
            # Report fields with unexpected names before starting a server.
            next(read_articles([input_file], fields=fields, id_field=id_field), None)
    running = node.find(data)
    if running is not None and running.is_running:
        cluster = running
        say(f"Elasticsearch {cluster.version} is already running at {cluster.url}")
    else:
        say("starting an embedded Elasticsearch (the first start downloads about 40 MB)")
        cluster = node.start(data, port=port, progress=output.download_progress)
        say(f"Elasticsearch {cluster.version} is up at {cluster.url}")
    try:
        with connect(cluster.url) as client:
            # Stop a previous sidecar before its forest is deleted.
            stop_sidecar(data)
            # In English, a search for "ferries" finds "ferry". A user's own file may be in any language.
            _set_up(client, fields, language="en" if input_file is None else None)
            sidecar = start_sidecar(
                data,
                server_url=cluster.url,
                server_pid=cluster.nodes[0].pid,
                port=sidecar_port,
                options=["--forest", _FOREST, *([] if once else ["--pages", "--index", _INDEX])],
            )
            say(f"a sidecar accepts articles at {sidecar}")
            failed = _feed(client, sidecar, input_file, fields, id_field)
            root = _show(client)
    finally:
        if once:
            stop_sidecar(data)
            node.stop(data)
            say("the sidecar and Elasticsearch have stopped")
    if not once:
        _print_next_steps(cluster.url, sidecar, data, fields, root, has_languages=input_file is None)
    if failed:
        raise typer.Exit(1)


def _set_up(client: Elasticsearch, fields: Fields, *, language: str | None) -> None:
    for index in (_INDEX, _FOREST):
        client.options(ignore_status=404).indices.delete(index=index)
    with Dedup(client, forest=_FOREST, fields=fields) as dedup:
        dedup.setup(_INDEX, language=language, keyword_fields=[] if language is None else [_LANGUAGE])


def _sample() -> Iterator[FileArticle]:
    """Yield the sample corpus with languages, and times shifted so that the last was published just now."""
    given = list(sample.articles())
    later = datetime.now(UTC) - datetime.fromisoformat(given[-1]["published_at"])
    for each in given:
        moment = datetime.fromisoformat(each["published_at"]) + later
        language = "zh" if any("\u4e00" <= letter < "\ua000" for letter in each["title"]) else "en"
        article = each | {"published_at": moment.isoformat(timespec="seconds"), _LANGUAGE: language}
        yield FileArticle(place="sample", id=article.pop("id"), article=article, size_bytes=0)


def _feed(client: Elasticsearch, sidecar: str, input_file: Path | None, fields: Fields, id_field: str) -> int:
    """Index the articles through the sidecar, as if it were Elasticsearch; return how many failed."""
    failed = 0
    # The position of each article in the file, by id.
    names: dict[str, str] = {}

    def actions(articles: Iterable[ReadArticle]) -> Iterator[dict[str, Any]]:
        nonlocal failed
        for each in articles:
            if isinstance(each, FileArticle):
                names[each.id] = each.name
                yield {"_index": _INDEX, "_id": each.id, "_source": each.article}
            else:
                failed += 1
                say_rejected(each)

    say(f"indexing {input_file or 'the sample corpus'} with helpers.bulk(Elasticsearch(sidecar), …)")
    started, files = time.monotonic(), [input_file] if input_file else []
    with (
        Elasticsearch(sidecar, request_timeout=_ANSWER_S) as feeder,
        translated("send articles to the sidecar", index=_INDEX),
        output.file_progress("sending", total_bytes(files) or None) as on_bytes,
    ):
        articles = (
            read_articles(files, fields=fields, id_field=id_field, on_bytes=on_bytes) if files else _sample()
        )
        for is_indexed, item in helpers.streaming_bulk(feeder, actions(articles), raise_on_error=False):
            if not is_indexed:
                failed += 1
                say(f"{names[item['index']['_id']]}: {item['index']['error']['reason']}")
    seconds = time.monotonic() - started
    client.indices.refresh(index=_INDEX)
    found = Reader(client, forest=_FOREST).list(_INDEX, size=1)
    say(
        f"{found.total_articles + failed:,} articles read, {found.total_articles:,} indexed, "
        f"{failed:,} failed: {found.total_rows:,} clusters, "
        f"{found.total_articles - found.total_rows:,} near-duplicates, in {seconds:.1f} s"
    )
    return failed


def _show(client: Elasticsearch) -> str | None:
    """Show a list of clusters, and the articles of the largest one; return its root."""
    reader = Reader(client, forest=_FOREST)
    output.show("\n[bold]The deduplicated list[/bold], largest clusters first")
    page = reader.list(_INDEX, sort="similar-desc", size=_ROWS)
    output.print_page(page)
    if not page.rows:
        return None
    head = page.rows[0]
    output.show(f"\n[bold]Who else published {escape(head.id)}[/bold]")
    output.print_similar(reader.similar(_INDEX, head.id, size=_ROWS))
    return head.root


def _print_next_steps(
    url: str, sidecar: str, data: Path, fields: Fields, root: str | None, *, has_languages: bool
) -> None:
    own = json.dumps(
        {fields.title: "A pier", fields.text: "The council voted on Monday to build a second ferry pier."}
    )
    cluster = f"\n  curl '{sidecar}/api/v1/articles?root={root}&index={_INDEX}&size=3'" if root else ""
    own_language = "zh" if os.environ.get("LANG", "").startswith("zh") else "en"
    only_own = f", or only in your language at {sidecar}/pages/?where={_LANGUAGE}:{own_language}"
    typer.echo(
        f"""
Browse the articles at {sidecar}/pages/{only_own if has_languages else ""}

The sidecar accepts articles as Elasticsearch does. Index one and read its root, or read a cluster:
  curl '{sidecar}/{_INDEX}/_doc/mine?refresh=true' -H 'Content-Type: application/json' -d '{own}'
  curl '{sidecar}/{_INDEX}/_source/mine?_source_includes={fields.dedup}.root'{cluster}

Elasticsearch keeps running at {url}. Also try:
  .venv/bin/esdedup list --index {_INDEX} --sort newest --size 20 --url {url}
  .venv/bin/esdedup list --index {_INDEX} --query 'electric ferries' --url {url}
  .venv/bin/esdedup similar --index {_INDEX} --id ID --url {url}
  make demo INPUT=FILE           your own articles, with id, text, title, published_at, source, url
  .venv/bin/esdedup node stop --data {data}          also stops the sidecar"""
    )
