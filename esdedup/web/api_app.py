"""The application of the JSON API and its middleware; the pages add their routes.

The API needs no package of the extra ``serve``, so that a sidecar without pages has the API too.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.middleware.gzip import GZipMiddleware

from esdedup.errors import SettingError
from esdedup.serving.problems import PROBLEM_TYPE, Problem, ProblemDetails, handle_errors
from esdedup.web import api
from esdedup.web.context import Context
from esdedup.web.errors import error_answer, problem_of
from esdedup.web.form import REPEATABLE
from esdedup.web.guards import answering_head, limited, tagged

# Smaller responses are not compressed, since they fit into one packet.
_MIN_PACKED_BYTES = 1_400
# The highest compression level that, in a local network, saves more time than it takes.
_PACKING = 4
_PROBLEM = {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}
# FastAPI describes its own response to invalid parameters; this application responds with 400.
_UNUSED = ("HTTPValidationError", "ValidationError")

# Parameters that were removed, and their replacements. Ignoring them would silently return a different list.
_REMOVED = {
    "counting": "leave it out; sorts by count now always compare whole clusters",
    "only": "min_similar=1 hides rows without similar articles; sort=similar-asc lists them first",
}

# Prefix of paths without the parameter `page`: their responses begin with the first row, or at `after`.
_FROM_THE_FIRST = "/export."


def create_api(
    context_of: Callable[[Request], Context],
    *,
    problem_of: Callable[[Request, Exception], Problem] = problem_of,
) -> FastAPI:
    """Return an application of the JSON API alone; it reports an `EsdedupError` that `context_of` raises."""
    app = with_routes([api.router])
    app.state.context_of = context_of
    add_layers(app, problem_of=problem_of)
    return app


def with_routes(
    routers: Iterable[APIRouter],
    *,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """Return an application with routes and a description of them, without middleware."""
    app = FastAPI(
        title="esdedup",
        summary="Articles, one row for each cluster of near-duplicates, and who else published them.",
        description=api.DESCRIPTION,
        version="1",
        lifespan=lifespan,
        # FastAPI's pages load scripts from other servers; `try_out` replaces them.
        docs_url=None,
        redoc_url=None,
        # Generated clients use these names for their functions.
        generate_unique_id_function=lambda route: route.name,
    )
    for router in routers:
        app.include_router(router, dependencies=[Depends(_check_parameters)])
    _correct(app.openapi())
    return app


def add_layers(app: FastAPI, *, problem_of: Callable[[Request, Exception], Problem] = problem_of) -> None:
    """Report errors, limit requests, answer HEAD, compress responses, and add entity tags."""
    handle_errors(app, error_answer, problem_of=problem_of)
    # The middleware added last is the outermost.
    app.add_middleware(tagged)
    app.add_middleware(GZipMiddleware, minimum_size=_MIN_PACKED_BYTES, compresslevel=_PACKING)
    app.add_middleware(limited)
    app.add_middleware(answering_head)


async def _check_parameters(request: Request) -> None:
    """Refuse parameters that would be silently ignored: repeated and unknown parameters.

    Pages, feeds and files ignore unknown parameters, since services for sharing links add their own.
    """
    given = request.query_params
    for name in given:
        if name not in REPEATABLE and len(given.getlist(name)) > 1:
            raise SettingError(f"{name} is given more than once; give it once")
        if name in _REMOVED and given[name]:
            raise SettingError(f"the parameter {name!r} was removed: {_REMOVED[name]}")
    path = request.scope["route"].path
    paths: Mapping[str, Any] = request.app.openapi()["paths"]
    operation = paths.get(path, {}).get(request.method.lower())
    if operation is None or not path.startswith(api.PREFIX):
        return
    known = [each["name"] for each in operation.get("parameters", [])]
    for name in given:
        if name not in known:
            raise SettingError(f"unknown parameter {name!r}; this path takes {', '.join(known) or 'none'}")


def _correct(description: dict[str, Any]) -> None:
    """Correct a description in place: describe problems, remove unused responses, and add examples."""
    schemas: dict[str, Any] = description["components"]["schemas"]
    schemas[ProblemDetails.__name__] = ProblemDetails.model_json_schema()
    for name in _UNUSED:
        schemas.pop(name, None)
    for path, methods in description["paths"].items():
        for operation in methods.values():
            if path.startswith(_FROM_THE_FIRST):
                operation["parameters"] = [each for each in operation["parameters"] if each["name"] != "page"]
            answers: dict[str, Any] = operation["responses"]
            answers.pop("422", None)
            for answer in answers.values():
                for media_type, content in answer.get("content", {}).items():
                    if media_type == PROBLEM_TYPE:
                        content["schema"] = _PROBLEM
                    _add_example(content, schemas)


def _add_example(content: dict[str, Any], schemas: dict[str, Any]) -> None:
    named = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    examples = schemas.get(named, {}).get("examples")
    if examples:
        content.setdefault("example", examples[0])
