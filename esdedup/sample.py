"""The demo's corpus: 3,000 articles of invented media, half of them in Chinese, half in English.

All facts, people, companies, places and media are invented. ``python -m tests.sample`` generates the file
from a grammar; a test checks that the file is up to date.
"""

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("sample.jsonl.xz")


def articles() -> Iterator[dict[str, Any]]:
    """Yield the articles in order of publication; they cover the five weeks before 2026-10-06."""
    with lzma.open(FILE, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
