"""The description of the API (OpenAPI), as it is served: that of FastAPI, corrected. Pure."""

from typing import Any

from esdedup.serving.problems import PROBLEM_TYPE, ProblemDetails

_PROBLEM = {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}
# FastAPI describes its own answer to invalid parameters; this application answers with 400.
_UNUSED = ("HTTPValidationError", "ValidationError")

# What begins with the first row, or with `after`, has no pages.
_FROM_THE_FIRST = "/export."


def correct(description: dict[str, Any]) -> None:
    """Correct a description in place: problems are named, unused answers left out, answers have examples."""
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
