"""`esdedup serve`: the pages, and the answers as JSON."""

import contextlib
import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Annotated

import typer

from esdedup.cli import options
from esdedup.elastic.client import connect_async
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading.reader import Reader

_WATCH_S = 2.0


def serve(
    index: options.Index,
    host: Annotated[str, typer.Option("--host", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0 takes a free one.")] = 8000,
    profile: options.ProfileName = options.DEFAULT_PROFILE,
    keywords: options.KeywordCount = None,
    weights: options.Weights = None,
    forest: options.ForestName = DEFAULT_FOREST,
    text_field: options.TextField = "text",
    title_field: options.TitleField = "title",
    time_field: options.TimeField = "published_at",
    source_field: options.SourceField = "source",
    link_field: options.LinkField = "url",
    url: options.Url = options.DEFAULT_URL,
    api_key: options.ApiKey = None,
    ca_certs: options.CaCerts = None,
    announce: Annotated[
        Path | None, typer.Option("--announce", hidden=True, help="Write address and process id there.")
    ] = None,
    with_pid: Annotated[
        int | None, typer.Option("--with-pid", hidden=True, help="End when that process has ended.")
    ] = None,
) -> None:
    """Serve the list with dedup and the similar articles as pages, and as JSON under /api.

    Ends with Ctrl-C. There is no log-in: whoever reaches the address reads the articles.
    """
    try:
        import uvicorn

        from esdedup.web import create_app
    except ModuleNotFoundError as error:
        raise SettingError(
            f"pages need {error.name}, which is not installed: pip install 'esdedup[serve]'"
        ) from error
    fields = Fields(text=text_field, title=title_field, time=time_field, source=source_field, link=link_field)
    chosen = options.profile(profile, keywords, weights)
    # Says what is wrong with the server or the index before anybody waits for a page.
    with options.client(url, api_key, ca_certs) as client:
        Reader(client, fields=fields).list(index, size=1)
    app = create_app(
        connect_async(url, api_key=api_key, ca_certs=ca_certs),
        index,
        fields=fields,
        forest=forest,
        profile=chosen,
    )
    listening = _listen(host, port)
    address = _address(listening)
    typer.echo(
        f"esdedup serves {index} at {address} (JSON at {address}/api, described in {address}/openapi.json)"
    )
    if announce is not None:
        announce.write_text(json.dumps({"url": address, "pid": os.getpid()}))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    if with_pid is not None:
        threading.Thread(target=_end_with, args=(with_pid, server), daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise SettingError(
            f"cannot listen on {host} port {port}: {error.strerror}; --port 0 takes a free one"
        ) from error


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _end_with(pid: int, server: object) -> None:
    """Let the server end when a process has ended."""
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(_WATCH_S)
    server.should_exit = True  # type: ignore[attr-defined]
