"""`esdedup serve`: serves web pages for people, and JSON for scripts."""

import contextlib
import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from esdedup.cli import options
from esdedup.cli.command import command, require_extra
from esdedup.cli.messages import log_as
from esdedup.reading.reader import Reader

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("esdedup")


@command("serve", example="esdedup serve --index news --port 8000")
def serve(
    *,
    index: options.Index,
    host: str = "127.0.0.1",
    port: options.Port = 8000,
    allow_host: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None,
    allow_origin: Annotated[list[str] | None, typer.Option(metavar="ORIGIN")] = None,
    editor_header: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    thumbnails: Annotated[str | None, typer.Option(metavar="FIELD")] = None,
    time_zone: options.TimeZone = "UTC",
    log_format: Literal["text", "json"] = "text",
    fingerprinting: options.Fingerprinting,
    where: options.Where,
) -> None:
    """Serve the deduplicated list and similar articles: web pages, JSON under /api/v1, feeds and files.

    Press Ctrl-C to stop. There is no log-in: anyone who can reach the address can read the articles.

    Options:
        host: Address to listen on.
        allow_host: A host name that visitors use to reach the pages, such as a proxy's; may be repeated. IP
            addresses, localhost and --host are always allowed. Requests for other hosts are refused.
        allow_origin: The origin of another site, such as https://desk.example, whose pages may read the JSON,
            feeds and exports (CORS); may be repeated. * allows every site that readers visit.
        editor_header: The header in which a proxy names the editor, who may merge and split stories, such as
            X-Remote-User. The proxy must overwrite the header in requests, and must be the only way to reach
            this server. Default: nobody may edit.
        thumbnails: The articles' field with the address (https) of a picture to show in the list. Visitors'
            browsers load the picture from its site, which thus learns of the visit.
        log_format: Format of the log: lines of text, or a JSON object for each message.
    """
    log_as(log_format)
    log.setLevel(logging.INFO)
    profile, overrides = fingerprinting.read_profile(), fingerprinting.overrides()
    require_extra("serve")
    import uvicorn

    from esdedup.serving.connections import Server, address_of, listen
    from esdedup.web.app import Visit, create_app

    # Report a wrong server, index or forest now instead of on the first page.
    with where.connect() as client:
        fields = where.fields_of(client, index)
        name = where.forest_of(client, index)
        Reader(client, fields=fields).list(index, size=1, source_includes=[thumbnails] if thumbnails else ())
    app = create_app(
        where.connect_async(),
        index,
        fields=fields,
        forest=name,
        profile=profile,
        overrides=overrides,
        hosts={host, *(allow_host or ())},
        origins=allow_origin or (),
        time_zone=time_zone,
        editor_header=editor_header,
        thumbnail_field=thumbnails,
    )
    listening = listen(host, port)
    address = address_of(listening)
    announce = log.info if log_format == "json" else typer.echo
    announce(
        f"esdedup serves {index} at {address} (JSON at {address}/api/v1; try it at {address}/api/v1/docs)"
    )
    counted, started_s = _Counted(app), time.monotonic()
    pages = Server(
        uvicorn.Config(
            counted,
            http=Visit,
            ws="none",
            log_config=None,
            log_level="warning",
            timeout_graceful_shutdown=1,
        )
    )
    with contextlib.suppress(KeyboardInterrupt):
        pages.run(sockets=[listening])
    ran = timedelta(seconds=round(time.monotonic() - started_s))
    log.info("stopped after %s: %s requests, %s errors", ran, f"{counted.requests:,}", f"{counted.errors:,}")


class _Counted:
    """Counts the requests to an application, and the responses with a status of 500 or more."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app
        self.requests = self.errors = 0

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        self.requests += scope["type"] == "http"

        async def counted(message: "Message") -> None:
            self.errors += message.get("status", 0) >= 500
            await send(message)

        await self._app(scope, receive, counted)
