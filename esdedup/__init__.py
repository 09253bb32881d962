"""The near-duplicate layer for Elasticsearch.

from elasticsearch import Elasticsearch, helpers
from esdedup import Dedup

es = Elasticsearch("http://localhost:9200")
with Dedup(es) as dedup:
    dedup.setup("news")
    helpers.bulk(es, dedup.enrich(actions))
    page = dedup.reader.list("news", sort="similar-desc")

`__init__.pyi` lists the public names. These modules contain further public types, used in the parameters
and results of these names:

- `esdedup.errors`: all errors;
- `esdedup.reading.results`, `esdedup.reading.overview`, `esdedup.reading.versions`, `esdedup.maintenance`
  and `esdedup.neighbours.explanation`: parts of results;
- `esdedup.reading.list_request`: the values of list parameters;
- `esdedup.fingerprint.bands`: layouts of keys;
- `esdedup.text.segmenters`, `esdedup.text.weights` and `esdedup.text.hashing`: segmentation, word weights
  and word hashes;
- `esdedup.web`: `create_app`.

Names are imported when they are first used, so `import esdedup` itself is fast.
"""

import importlib
from pathlib import Path

# Lines have the form: from MODULE import NAME as NAME
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
