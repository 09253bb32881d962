"""`esdedup demo`: an Elasticsearch, articles and pages, in one command."""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from elasticsearch import Elasticsearch
from rich.markup import escape

from esdedup import sample
from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.extras import require_extra
from esdedup.cli.messages import say, say_cut, say_rejected
from esdedup.cli.pages import start_pages, stop_pages
from esdedup.elastic.client import connect
from esdedup.fields import Fields
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.files import read_articles
from esdedup.ingest.load import Load, Summary
from esdedup.ingest.opening import check_readable, total_bytes

_INDEX = "demo"
_FOREST = "demo-forest"
_ROWS = 10


@command("demo", example="esdedup demo --input articles.jsonl")
def demo(
    *,
    data: Annotated[Path, typer.Option("--data", help="Directory of the embedded Elasticsearch.")] = Path(
        ".esdedup/node"
    ),
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="Port of Elasticsearch; 0 takes a free one.")
    ] = 0,
    pages_port: Annotated[
        int, typer.Option("--pages-port", min=0, max=65_535, help="Port of the pages; 0 takes a free one.")
    ] = 0,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="Your own articles (JSON Lines, a JSON array, or CSV) instead of the sample corpus.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop Elasticsearch at the end, and serve no pages.")
    ] = False,
    id_field: options.IdField = "id",
    field_names: options.FieldNames,
) -> None:
    """Start an embedded Elasticsearch, load articles, show their clusters, and serve pages."""
    require_extra("node")
    if not once:
        require_extra("serve")
    from esdedup import node

    fields = field_names.fields()
    if input_file is not None:
        check_readable([input_file])
        if input_file.is_file():
            # Other names of fields are told before a server starts.
            next(read_articles([input_file], fields=fields, id_field=id_field), None)
    running = node.find(data)
    if running is not None and running.is_running:
        cluster = running
        say(f"Elasticsearch {cluster.version} is already running at {cluster.url}")
    else:
        say("starting an embedded Elasticsearch (the first start downloads about 40 MB)")
        with output.download_progress() as progress:
            cluster = node.start(data, port=port, progress=progress)
        say(f"Elasticsearch {cluster.version} is up at {cluster.url}")
    try:
        with connect(cluster.url) as client:
            summary = _load(client, input_file, fields, id_field)
            _show(client)
    finally:
        if once:
            stop_pages(data)
            node.stop(data)
            say("Elasticsearch is stopped")
    if not once:
        pages = start_pages(
            data,
            server_url=cluster.url,
            server_pid=cluster.nodes[0].pid,
            index=_INDEX,
            forest=_FOREST,
            port=pages_port,
        )
        _say_how_to_go_on(cluster.url, data, pages)
    if summary.failed:
        raise typer.Exit(1)


def _load(client: Elasticsearch, input_file: Path | None, fields: Fields, id_field: str) -> Summary:
    # Deleted first, so that every run of the demo shows the same.
    for index in (_INDEX, _FOREST):
        client.options(ignore_status=404).indices.delete(index=index)
    load = Load(on_rejected=say_rejected, on_cut=say_cut)
    with tempfile.TemporaryDirectory() as scratch:
        if input_file is None:
            input_file = Path(scratch) / "sample.jsonl"
            with input_file.open("w", encoding="utf-8") as target:
                target.writelines(
                    json.dumps(article, ensure_ascii=False) + "\n" for article in sample.articles()
                )
        say(f"loading {'the sample corpus' if input_file.name == 'sample.jsonl' else input_file}")
        with (
            Dedup(client, forest=_FOREST, fields=fields) as dedup,
            output.file_progress("indexing", total_bytes([input_file])) as on_bytes,
        ):
            dedup.setup(_INDEX)
            articles = read_articles([input_file], fields=fields, id_field=id_field, on_bytes=on_bytes)
            load.run(client, dedup, articles, index=_INDEX)
    client.indices.refresh(index=_INDEX)
    summary = load.summary
    say(
        f"{summary.read:,} articles read, {summary.indexed:,} indexed, {summary.failed:,} failed: "
        f"{summary.new_roots:,} new clusters, {summary.joined + summary.known:,} near-duplicates, "
        f"in {summary.seconds:.1f} s"
    )
    return summary


def _show(client: Elasticsearch) -> None:
    dedup = Dedup(client, forest=_FOREST)
    screen = output.console()
    screen.print("\n[bold]The list with dedup[/bold], most similar articles first")
    page = dedup.list(_INDEX, sort="similar-desc", size=_ROWS)
    output.print_page(page)
    if page.rows:
        head = page.rows[0]
        screen.print(f"\n[bold]Who else published {escape(head.id)}[/bold]")
        output.print_similar(dedup.similar(_INDEX, head.id, size=_ROWS))


def _say_how_to_go_on(url: str, data: Path, pages: str) -> None:
    typer.echo(
        f"""
Open it in a browser: {pages}

Elasticsearch keeps running at {url}, and so do the pages. Go on with:
  .venv/bin/esdedup list --index {_INDEX} --sort newest --size 20 --url {url}
  .venv/bin/esdedup list --index {_INDEX} --query 'electric ferries' --url {url}
  .venv/bin/esdedup similar --index {_INDEX} --id ID --url {url}
  make demo INPUT=FILE           your own articles, with id, text, title, published_at, source, url
  .venv/bin/esdedup node stop --data {data}"""
    )
