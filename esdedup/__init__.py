"""The near-duplicate layer for Elasticsearch.

from elasticsearch import Elasticsearch, helpers
from esdedup import Dedup

es = Elasticsearch("http://localhost:9200")
with Dedup(es) as dedup:
    dedup.setup("news")
    helpers.bulk(es, dedup.enrich(actions))
    page = dedup.reader.list("news", sort="similar-desc")

The names are in `__init__.pyi`. In addition, what they take and return is public in these modules:

- `esdedup.errors`: all errors;
- `esdedup.reading.results`, `overview` and `versions` beside it, `esdedup.maintenance` and
  `esdedup.neighbours.explanation`: parts of results;
- `esdedup.reading.list_request`: the values of a list's parameters;
- `esdedup.fingerprint.bands`: layouts of keys;
- `esdedup.text.segmenters`, `weights` and `hashing` beside it: how words are cut, weighed and
  hashed;
- `esdedup.web`: `create_app`.

A name is imported when it is first used, so `import esdedup` alone costs nothing.
"""

import importlib
from pathlib import Path

# Each line is: from MODULE import NAME as NAME
_IMPORTS = (line.split() for line in Path(__file__).with_suffix(".pyi").read_text().splitlines())
_MODULE_OF = {words[3]: words[1] for words in _IMPORTS if words[:1] == ["from"]}
__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("esdedup")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
