"""The page on which the API can be tried out, with a form for each operation in the API's description.

The usual tools for such a page load scripts from other servers, or a megabyte of scripts.
"""

import json
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from pydantic import ValidationError

from esdedup.errors import SettingError
from esdedup.reading.results import SimilarPage
from esdedup.web import api
from esdedup.web.context import ContextDep
from esdedup.web.form import submitted_form
from esdedup.web.rendering import render

PATH = f"{api.PREFIX}/docs"

router = APIRouter(include_in_schema=False)


@router.get(PATH)
async def try_out(context: ContextDep) -> HTMLResponse:
    """Show a form for each operation."""
    description = context.request.app.openapi()
    about = prose_of(description["info"]["description"])
    return render("try_out.html", context, operations=operations_of(description), about=about)


@router.post(f"{PATH}/similar")
async def similar_to_text(context: ContextDep) -> SimilarPage:
    """Look up the text of a form, as the API does with JSON, which forms cannot send."""
    given = dict(await submitted_form(context.request))
    try:
        text = api.Text(text=given.get("text", ""), site=given.get("site"))
        query = api.Paged.model_validate(
            {name: value for name, value in given.items() if name not in {"text", "site", "source_includes"}}
            | {"source_includes": [given.get("source_includes", "")]}
        )
    except ValidationError as error:
        raise SettingError(f"the form cannot be read: {error}") from error
    return await api.similar_to_text(context, text, query)


def operations_of(description: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the operations of a description (OpenAPI) as their forms show them."""
    return [
        _operation(method, path, operation, description["components"]["schemas"])
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]


def prose_of(text: str) -> str:
    """Return a text on one line, as in the catalogue of translations."""
    return " ".join(text.split())


def _operation(method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return an operation as it is shown; a body that a form cannot send is shown as an example."""
    inputs = [
        _input(each["name"], each["schema"], is_required=each["required"])
        for each in operation.get("parameters", [])
    ]
    sent = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    described = schemas[sent["$ref"].rpartition("/")[2]] if sent is not None else {"properties": {}}
    (body,) = described.get("examples", [None])
    required = described.get("required", [])
    if body is None:
        inputs[:0] = [
            _input(name, schema, is_required=name in required)
            for name, schema in described["properties"].items()
        ]
    (answer,) = operation["responses"]["200"]["content"].values()
    return {
        "name": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "action": path if method == "get" else f"{PATH}/similar",
        "summary": operation["summary"],
        "description": prose_of(operation.get("description", "")),
        "inputs": inputs,
        "body": _as_text(body),
        "example": _as_text(answer.get("example")),
    }


def _as_text(example: Any) -> str:
    if example is None or isinstance(example, str):
        return example or ""
    return json.dumps(example, indent=2, ensure_ascii=False)


def _input(name: str, schema: dict[str, Any], *, is_required: bool) -> dict[str, Any]:
    """Return a field of a form; `kind` is the type of an `input`, or `area` for a text area."""
    kinds = [schema, *schema.get("anyOf", [])]
    types = {kind.get("type") for kind in kinds}
    choices = [choice for kind in kinds for choice in kind.get("enum", [])]
    if "boolean" in types:
        choices = ["false", "true"]
    default: Any = schema.get("default")
    example: Any = next(iter(schema.get("examples", ())), "")
    return {
        "name": name,
        "description": prose_of(schema.get("description", "")),
        "is_required": is_required,
        "choices": choices,
        "default": "" if default in (None, []) else str(default).lower() if choices else str(default),
        "example": ", ".join(example) if isinstance(example, list) else str(example),
        "kind": "number" if "integer" in types else "area" if name == "text" else "text",
    }
