"""`esdedup node`: the embedded Elasticsearch in the background."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from esdedup.cli import options, output
from esdedup.errors import NodeError

if TYPE_CHECKING:
    from esdedup.node import Cluster

app = typer.Typer(
    help="Run an embedded Elasticsearch in the background, for trying out and tests.", no_args_is_help=True
)

Data = Annotated[
    Path | None,
    typer.Option("--data", help="Its directory. Default: a directory of the user's.", show_default=False),
]


@app.command()
def start(
    data: Data = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0 takes a free one.")] = 9200,
    nodes: Annotated[
        int, typer.Option("--nodes", min=1, max=9, help="How many processes form the cluster.")
    ] = 1,
    version: Annotated[str, typer.Option("--version", help="8.19, 9, or a full version.")] = "9",
    heap: Annotated[str, typer.Option("--heap", help="Memory of each node, as Java writes it.")] = "512m",
    hours: Annotated[float, typer.Option("--hours", min=0.001, help="Stops by itself after so long.")] = 12.0,
    json: options.Json = False,
) -> None:
    """Start Elasticsearch, and wait until it answers. The first time it is downloaded (some 40 MB)."""
    from esdedup import node

    directory = data or node.default_data()
    if not json:
        output.say(f"starting Elasticsearch in {directory}")
    with output.download_progress() as progress:
        cluster = node.start(
            directory,
            port=port,
            node_count=nodes,
            version=version,
            heap=heap,
            lifetime_s=hours * 3600,
            progress=progress,
        )
    _show(cluster, json)


@app.command()
def stop(data: Data = None, json: options.Json = False) -> None:
    """Stop it; its data stay."""
    from esdedup import node

    stopped = node.stop(data or node.default_data())
    if json:
        output.print_json({"stopped": stopped})
    else:
        typer.echo("stopped" if stopped else "no node was running")


@app.command()
def status(data: Data = None, json: options.Json = False) -> None:
    """Tell whether it runs, and where."""
    from esdedup import node

    directory = data or node.default_data()
    cluster = node.find(directory)
    if cluster is None or not cluster.is_running:
        raise NodeError(f"no node runs on {directory}; `esdedup node start` starts one")
    _show(cluster, json)


def _show(cluster: "Cluster", json: bool) -> None:
    nodes = [
        {"name": each.name, "pid": each.pid, "url": each.url, "alive": each.is_alive}
        for each in cluster.nodes
    ]
    if json:
        output.print_json(
            {"version": cluster.version, "url": cluster.url, "data": str(cluster.data), "nodes": nodes}
        )
        return
    ends = time.strftime("%Y-%m-%d %H:%M", time.localtime(cluster.stops_at))
    typer.echo(f"Elasticsearch {cluster.version} at {cluster.url}, until {ends} at the latest")
    for each in nodes:
        typer.echo(
            f"  {each['name']}  {each['url']}  pid {each['pid']}{'' if each['alive'] else '  (ended)'}"
        )
