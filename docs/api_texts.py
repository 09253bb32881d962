"""Extracts the texts of the API's description for pybabel; the API's page shows their translations."""

from collections.abc import Iterator
from typing import Any

from esdedup.web.app import api_description
from esdedup.web.try_out import operations_of, prose_of


def extract(*_: Any, **__: Any) -> Iterator[tuple[int, None, str, list[str]]]:
    """Yield the messages in pybabel's format; the arguments are ignored."""
    description = api_description()
    texts = [prose_of(description["info"]["description"])]
    for operation in operations_of(description):
        texts += [operation["summary"], operation["description"]]
        texts += [each["description"] for each in operation["inputs"]]
    return ((1, None, text, []) for text in dict.fromkeys(texts) if text)
