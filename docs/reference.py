"""Generates the reference from the code: Python, the commands, JSON over HTTP, settings and metrics.

`docs/site.py` adds these pages to the site.
"""

import asyncio
import dataclasses
import functools
import importlib
import inspect
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pydantic
import typer
from typer.core import TyperGroup, TyperOption

import esdedup
from docs.made_from_code import BLOCKS
from esdedup.cli.app import app as commands
from esdedup.elastic.client import connect_async
from esdedup.sidecar.app import OPENAPI_PATH, assemble
from esdedup.sidecar.settings import Settings
from esdedup.web.app import create_app

# The sections of the page, in order. All other names are divided into results, errors and further names.
GROUPS = {
    "Feeding": ("Dedup", "AsyncDedup", "Adoption", "AdoptionIntoCopies", "Migration", "Removal"),
    "Reading": ("Reader", "AsyncReader"),
    "Maintenance": ("Maintenance", "explain"),
    "Editing": ("Editor", "AsyncEditor", "EditRequest", "ArticlePlace"),
    "Settings": ("Fields", "Overrides", "Override", "Profile", "get_profile", "Agreement"),
}
# Modules with further public classes: parts of results, and values of settings.
FURTHER = (
    "esdedup.reading.results",
    "esdedup.reading.overview",
    "esdedup.reading.versions",
    "esdedup.maintenance",
    "esdedup.neighbours.explanation",
    "esdedup.fingerprint.bands",
    "esdedup.text.segmenters",
    "esdedup.text.segmenters",
    "esdedup.text.weights",
)
# The section headings of docstrings.
_SECTION = re.compile(r"^(Args|Shared args|Returns|Raises|Attributes|Yields):$")
_COMMENT = re.compile(r"^ {4}# (.*)$")
_FIELD = re.compile(r"^ {4}(\w+): ([^=#]+?)(?: = .*)?$")
_ADDRESS = re.compile(r"<.* at 0x\w+>")
_ITEM = re.compile(r"^ {4}(\S[^:]*): (.*)$")


@functools.cache
def pages() -> dict[str, str]:
    """Return the text of each page of the reference, by name."""
    return {
        "python": _joined(_python()),
        "commands": _joined(_commands()),
        "http": _joined(http()),
        "settings": _joined(["# Settings of the sidecar", *BLOCKS["settings"]()]),
        "metrics": _joined(["# Metrics of the sidecar", *BLOCKS["metrics"]()]),
    }


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _python() -> Iterator[str]:
    yield from (
        "# Python",
        "",
        "Import these names from `esdedup`, and the further parts from their modules.",
        "",
    )
    grouped = {name for names in GROUPS.values() for name in names}
    others = [name for name in esdedup.__all__ if name not in grouped]
    values = {name: getattr(esdedup, name) for name in others}
    errors = [name for name, value in values.items() if _is_a(value, Exception)]
    results = [name for name, value in values.items() if _is_a(value, pydantic.BaseModel)]
    rest = [name for name in others if name not in {*errors, *results}]
    for title, names in {**GROUPS, "Results": results, "Errors": errors, "Further names": rest}.items():
        yield from (f"## {title}", "")
        for name in names:
            yield from _described(name, getattr(esdedup, name))
    yield from ("## Further parts", "")
    for module in FURTHER:
        found = importlib.import_module(module)
        for name, value in sorted(vars(found).items()):
            is_its = getattr(value, "__module__", None) == module or hasattr(found, "__path__")
            if is_its and _is_a(value, object) and name[0].isupper() and not hasattr(esdedup, name):
                yield from (f"### {name}", "", f"From `{module}`.", "")
                yield from list(_described(name, value))[2:]


def _is_a(value: Any, kind: type) -> bool:
    return inspect.isclass(value) and issubclass(value, kind)


def _described(name: str, value: Any) -> Iterator[str]:
    yield from (f"### {name}", "")
    if not callable(value) or not (inspect.isclass(value) or inspect.isfunction(value)):
        yield from (f"`{value!r}`" if len(repr(value)) < 100 else f"A `{type(value).__name__}`.", "")
        return
    if inspect.isfunction(value):
        yield from _function(name, value)
        return
    yield from _docstring(value.__doc__)
    constructor = vars(value).get("__init__")
    if constructor is not None and constructor.__doc__ and not _is_a(value, pydantic.BaseModel):
        yield from _function(name, constructor)
    if _is_a(value, pydantic.BaseModel) or dataclasses.is_dataclass(value):
        yield from _fields(value)
    if _is_a(value, Exception):
        return
    for each, member in inspect.getmembers(value):
        is_own = (getattr(member, "__module__", None) or "").startswith("esdedup")
        if not each.startswith("_") and is_own and inspect.isroutine(member) and member.__doc__:
            yield from (f"#### {name}.{each}", "")
            yield from _function(each, member)


def _fields(kind: Any) -> Iterator[str]:
    """Yield the fields of a class, with the comments above them in its source."""
    notes: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if not each.__module__.startswith("esdedup"):
            continue
        comment: list[str] = []
        for line in inspect.getsource(each).splitlines():
            if found := _COMMENT.match(line):
                comment.append(found[1])
                continue
            if (found := _FIELD.match(line)) and not found[1].startswith("_"):
                notes[found[1]] = f"(`{found[2]}`)" + (f": {' '.join(comment)}" if comment else "")
            comment = []
    is_model = issubclass(kind, pydantic.BaseModel)
    fields = kind.model_fields if is_model else {each.name: each for each in dataclasses.fields(kind)}
    for name, field in fields.items():
        if not name.startswith("_"):
            described = " ".join((getattr(field, "description", None) or "").split())
            yield f"- `{name}` {notes.get(name, '')}{': ' if described else ''}{described}".rstrip()
    yield ""


def _function(name: str, function: Any) -> Iterator[str]:
    signature = inspect.signature(function)
    kept = [each for each in signature.parameters.values() if each.name != "self"]
    answer = "" if name[0].isupper() else f" -> {_plain(signature.return_annotation)}"
    shown = [_ADDRESS.sub("…", str(each.replace(annotation=each.empty))) for each in kept]
    at = next((number for number, each in enumerate(kept) if each.kind == each.KEYWORD_ONLY), None)
    if at is not None:
        shown.insert(at, "*")
    call = f"{name}({', '.join(shown)}){answer}"
    if len(call) > 90:
        call = f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){answer}"
    yield from ("```python", call, "```", "")
    yield from _docstring(function.__doc__)


def _plain(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)


def _docstring(text: str | None) -> Iterator[str]:
    """Yield a docstring in Google's style as Markdown, with sections as lists."""
    in_section = False
    for line in inspect.cleandoc(text or "").splitlines():
        if section := _SECTION.match(line):
            in_section = True
            yield from (f"**{section[1]}**", "")
        elif in_section and (item := _ITEM.match(line)):
            yield f"- `{item[1]}`: {item[2]}"
        else:
            yield f"  {line.strip()}" if in_section and line.strip() else line
    yield ""


def _commands() -> Iterator[str]:
    yield from ("# Commands", "", "`esdedup COMMAND --help` prints the same text.", "")
    group = typer.main.get_group(commands)
    yield from _group(group, typer.Context(group), ())


def _group(group: TyperGroup, context: typer.Context, path: tuple[str, ...]) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, TyperGroup):
            yield from _group(command, context, (*path, name))
            continue
        yield from (f"## esdedup {' '.join((*path, name))}", "", inspect.cleandoc(command.help or ""), "")
        if command.epilog:
            example = re.sub(r"\[/?bold\]", "", command.epilog).removeprefix("Example: ")
            yield from ("```bash", example, "```", "")
        options = [each for each in command.params if isinstance(each, TyperOption) and each.name != "help"]
        if options:
            yield from ("| option | what it does |", "|---|---|")
        for option in options:
            flags = ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))
            about = " ".join((option.help or "").split()).replace("|", "\\|")
            yield f"| {flags} | {about} |"
        yield ""


_PAGES_PATH = "/openapi.json"
BAR = "\\|"
# The address for the client, which sends no requests.
_SERVER = "http://localhost:9200"


def http() -> Iterator[str]:
    """Yield the lines of the page about JSON over HTTP."""
    descriptions = asyncio.run(_descriptions())
    yield from ("# JSON over HTTP", "")
    for (title, path), description in descriptions.items():
        yield from (f"## {title}", "", f"`GET {path}` returns the complete description.", "")
        for address, methods in description["paths"].items():
            for method, operation in methods.items():
                yield from _operation(method.upper(), address, operation)


async def _descriptions() -> dict[tuple[str, str], dict[str, Any]]:
    async with connect_async(_SERVER) as client:
        pages = create_app(client, "news")
        # `model_construct` ignores environment variables, so that the output is the same on every machine.
        sidecar = assemble(Settings.model_construct(), port=9500)
        return {
            ("esdedup serve", _PAGES_PATH): await _get(pages, _PAGES_PATH),
            ("esdedup sidecar", OPENAPI_PATH): await _get(sidecar, OPENAPI_PATH),
        }


async def _get(app: Any, path: str) -> dict[str, Any]:
    """Request a path from an ASGI application in this process."""
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
