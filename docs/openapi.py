"""Writes the description of the API for generators of clients: ``python -m docs.openapi FILE``.

Without its examples, which generators repeat as comments.
"""

import json
import sys
from pathlib import Path
from typing import Any

from esdedup.web import api_description

_EXAMPLES = frozenset(("example", "examples"))


def without_examples(part: Any) -> Any:
    """Return a part of a description without the examples in it."""
    if isinstance(part, dict):
        return {name: without_examples(each) for name, each in part.items() if name not in _EXAMPLES}
    return list(map(without_examples, part)) if isinstance(part, list) else part


if __name__ == "__main__":
    described = without_examples(api_description())
    Path(sys.argv[1]).write_text(json.dumps(described, indent=1) + "\n", "utf-8")
