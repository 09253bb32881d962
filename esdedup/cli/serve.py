"""`esdedup serve`: web pages for people, JSON for programs."""

import contextlib
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from esdedup.cli import options
from esdedup.cli.command import command
from esdedup.cli.extras import require_extra
from esdedup.cli.pages import announce
from esdedup.reading.reader import Reader
from esdedup.serving.listening import address_of, listen

if TYPE_CHECKING:
    import uvicorn

_WATCH_S = 2.0


@command("serve", example="esdedup serve --index news --port 8000")
def serve(
    *,
    index: options.Index,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="Port to listen on; 0 takes a free one.")
    ] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A name under which the pages are reached, such as that of a proxy; may be repeated. "
            "Addresses, localhost and --host need none. Requests for other names are refused.",
        ),
    ] = None,
    fingerprinting: options.Fingerprinting,
    forest: options.Forest,
    field_names: options.FieldNames,
    server: options.Server,
    announce_to: Annotated[
        Path | None,
        typer.Option("--announce", hidden=True, help="Write the address and the process id to this file."),
    ] = None,
    with_pid: Annotated[
        int | None, typer.Option("--with-pid", hidden=True, help="End when this process has ended.")
    ] = None,
) -> None:
    """Serve the list with dedup and the similar articles as web pages, and as JSON under /api.

    Press Ctrl-C to stop. There is no log-in: anyone who can reach the address can read the articles.
    """
    profile, pins = fingerprinting.profile(), fingerprinting.pins()
    require_extra("serve")
    import uvicorn

    from esdedup.web import Visit, create_app

    # A wrong server, index or name of a forest is reported here instead of on the first page.
    with server.connect() as client:
        fields = field_names.fields_of(client, index)
        Reader(client, fields=fields, forest=forest.name).list(index, size=1)
    app = create_app(
        server.connect_async(),
        index,
        fields=fields,
        forest=forest.name,
        profile=profile,
        pins=pins,
        hosts={host, *(allow_host or ())},
    )
    listening = listen(host, port)
    address = address_of(listening)
    typer.echo(
        f"esdedup serves {index} at {address} (JSON at {address}/api, described in {address}/openapi.json)"
    )
    if announce_to is not None:
        announce(announce_to, address)
    pages = uvicorn.Server(uvicorn.Config(app, http=Visit, ws="none", log_level="warning"))
    if with_pid is not None:
        threading.Thread(target=_end_with, args=(with_pid, pages), daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):
        pages.run(sockets=[listening])


def _end_with(pid: int, pages: "uvicorn.Server") -> None:
    """Stop the pages when a process has ended."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        # False also for a later process with that number.
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(_WATCH_S)
    pages.should_exit = True
