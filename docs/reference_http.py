"""The page of the reference about JSON over HTTP, from what the pages and the sidecar say of themselves."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from esdedup.elastic.client import connect_async
from esdedup.sidecar.app import OPENAPI_PATH, assemble
from esdedup.sidecar.settings import Settings
from esdedup.web import create_app

_PAGES_PATH = "/openapi.json"
# Nothing is sent to it.
BAR = "\\|"
_SERVER = "http://localhost:9200"


def http() -> Iterator[str]:
    """Yield the lines of the page."""
    descriptions = asyncio.run(_descriptions())
    yield from ("# JSON over HTTP", "")
    for (title, path), description in descriptions.items():
        yield from (f"## {title}", "", f"`GET {path}` has all of it, with every field.", "")
        for address, methods in description["paths"].items():
            for method, operation in methods.items():
                yield from _operation(method.upper(), address, operation)


async def _descriptions() -> dict[tuple[str, str], dict[str, Any]]:
    async with connect_async(_SERVER) as client:
        pages = create_app(client, "news")
        # Without the environment: a setting of the machine must not change what is written.
        sidecar = assemble(Settings.model_construct(), port=9500)
        return {
            ("esdedup serve", _PAGES_PATH): await _get(pages, _PAGES_PATH),
            ("esdedup sidecar", OPENAPI_PATH): await _get(sidecar, OPENAPI_PATH),
        }


async def _get(app: Any, path: str) -> dict[str, Any]:
    """Ask an application in this process."""
    parts: list[bytes] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def collect(message: Any) -> None:
        parts.append(message.get("body", b""))

    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
    await app({**scope, "headers": headers, "client": ("127.0.0.1", 1)}, receive, collect)
    found: dict[str, Any] = json.loads(b"".join(parts))
    return found


def _operation(method: str, address: str, operation: dict[str, Any]) -> Iterator[str]:
    yield from (
        f"### {method} {address}",
        "",
        operation.get("description") or operation.get("summary", ""),
        "",
    )
    parameters = operation.get("parameters", ())
    if parameters:
        yield from ("| parameter | what it is |", "|---|---|")
    for each in parameters:
        about = each.get("description") or each["schema"].get("description", "")
        needed = " Required." if each.get("required") else ""
        yield f"| `{each['name']}` | {' '.join(about.split()).replace('|', BAR)}{needed} |"
    yield ""
