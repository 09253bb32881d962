"""Writes the corpus that is shipped in the package `esdedup`: ``python -m tests.sample``."""

import json
import lzma

from esdedup.sample import FILE
from tests.sample import articles

lines = (json.dumps(article, ensure_ascii=False) + "\n" for article in articles())
FILE.write_bytes(lzma.compress("".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))
