"""Makes the tables of documents that say what the code says: ``python -m docs.made_from_code``."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.setting_names import settings_of
from esdedup.sidecar.settings import Settings

DOCUMENT = Path(__file__).parent / "sidecar.md"
_BLOCK = re.compile(r"(<!-- made from the code: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def made(text: str) -> str:
    """Return a document with its blocks made anew."""
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
            others = " and ".join(f"`{name}`" for name in setting.named.others)
            about = f"{setting.description} {others} count too." if others else setting.description
            default = f"`{setting.default}`" if setting.default else ""
            yield f"| `{setting.name}` | {flag} | {about} | {setting.allowed} | {default} |"
    yield ""


def _metrics() -> Iterator[str]:
    yield from ("", "| metric | type | what it is |", "|---|---|---|")
    for each in Metrics().described:
        label = f" `{each.labels[0]}`: {', '.join(each.values)}." if each.labels else ""
        yield f"| `{each.name}` | {each.type} | {each.text}{label} |"
    yield ""


BLOCKS = {"settings": _settings, "metrics": _metrics}

if __name__ == "__main__":
    DOCUMENT.write_text(made(DOCUMENT.read_text("utf-8")), "utf-8")
