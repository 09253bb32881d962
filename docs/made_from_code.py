"""``python -m docs.made_from_code`` regenerates the tables of settings and metrics in `docs/sidecar.md`.

With a file name as its argument, it writes the API's description to that file, for client generators.
"""

import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from esdedup.ingest.settings import settings_of

from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.settings import Settings
from esdedup.web.app import api_description

DOCUMENT = Path(__file__).parent / "sidecar.md"
_BLOCK = re.compile(r"(<!-- made from the code: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def made(text: str) -> str:
    """Return a document with its generated blocks replaced by new ones."""
    return _BLOCK.sub(lambda found: found[1] + "\n".join(BLOCKS[found[2]]()) + "\n" + found[3], text)


def _settings() -> Iterator[str]:
    for group, members in itertools.groupby(settings_of(Settings), lambda each: each.group):
        yield from (
            "",
            f"**{group}**",
            "",
            "| in the file | option | what it is | a value | default |",
            "|---|---|---|---|---|",
        )
        for setting in members:
            flag = f"`{setting.flag}`" if setting.flag else "none"
            others = " and ".join(f"`{name}`" for name in setting.variables[1:])
            about = f"{setting.description} {others} count too." if others else setting.description
            default = f"`{setting.default}`" if setting.default else ""
            yield f"| `{setting.name}` | {flag} | {about} | {setting.allowed} | {default} |"
    yield ""


class Metric(NamedTuple):
    """The documentation of a metric."""

    name: str
    type: str
    labels: tuple[str, ...]
    # The values of the metric's label; empty if the metric has no label.
    values: tuple[str, ...]
    text: str


def metrics() -> Iterator[Metric]:
    """Yield the metrics of the sidecar, without the process metrics, which the Prometheus client defines."""
    for family in Metrics().registry.collect():
        if family.name.startswith("esdedup_"):
            # Histograms have the additional label `le`, for the bounds of their buckets.
            series = [
                {name: value for name, value in each.labels.items() if name != "le"}
                for each in family.samples
            ]
            values = tuple(dict.fromkeys(value for each in series for value in each.values()))
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield Metric(name, family.type, tuple(series[0]), values, family.documentation)


def _metrics() -> Iterator[str]:
    yield from ("", "| metric | type | what it is |", "|---|---|---|")
    for each in metrics():
        label = f" `{each.labels[0]}`: {', '.join(each.values)}." if each.labels else ""
        yield f"| `{each.name}` | {each.type} | {each.text}{label} |"
    yield ""


BLOCKS = {"settings": _settings, "metrics": _metrics}

_EXAMPLES = frozenset(("example", "examples"))


def without_examples(part: Any) -> Any:
    """Return a part of a description without examples, which client generators would copy into comments."""
    if isinstance(part, dict):
        return {name: without_examples(each) for name, each in part.items() if name not in _EXAMPLES}
    return list(map(without_examples, part)) if isinstance(part, list) else part


if __name__ == "__main__":
    if sys.argv[1:]:
        described = without_examples(api_description())
        Path(sys.argv[1]).write_text(json.dumps(described, indent=1) + "\n", "utf-8")
    else:
        DOCUMENT.write_text(made(DOCUMENT.read_text("utf-8")), "utf-8")
