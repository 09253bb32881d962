"""Builds the documentation site: ``python -m docs.site``, or ``make docs``.

The documents have relative links that work in a checkout and on GitHub. They are copied to `build/docs` with
the same paths, together with a reference generated from the code (`docs/reference.py`). Zensical renders
them; the site loads nothing from other hosts. A broken link or anchor fails the build.
"""

import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from docs.reference import pages

ROOT = Path(__file__).parents[1]
SOURCE, CONFIG, SITE = ROOT / "build/docs", ROOT / "build/zensical.toml", ROOT / "build/site"
# The files that pages show or link to.
COPIED = (
    *("*.md", "LICENSE", "NOTICE", "docker-compose.yml"),
    *("docs/**/*.md", "docs/**/*.svg", "docs/**/*.png", "docs/*.css"),
    *(
        "benchmarks/*.md",
        "benchmarks/results.json",
        "core/*.md",
        "deploy/**/*",
        "mappings/*",
        "examples/*",
        "clients/*/README.md",
    ),
)


def collect(target: Path) -> None:
    """Copy all documents to a folder, and write the reference there."""
    for pattern in COPIED:
        for path in ROOT.glob(pattern):
            if path.is_file() and "__pycache__" not in path.parts:
                copy = target / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)
    folder = target / "docs/reference"
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / f"{name}.md").write_text(text, "utf-8")


def build() -> list[str]:
    """Build the site in `build/site`; return its errors: broken links, and resources on other hosts."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    collect(SOURCE)
    shutil.copy(ROOT / "docs/zensical.toml", CONFIG)
    zensical = Path(sys.executable).with_name("zensical")
    command = [str(zensical), "build", "--clean", "--strict", "-f", str(CONFIG)]
    done = subprocess.run(  # noqa: S603 - a fixed command
        command, check=False, cwd=CONFIG.parent, capture_output=True, text=True
    )
    if done.returncode:
        return [done.stdout]
    for page in SITE.rglob("*.zh.html"):
        # Zensical supports one language per site.
        page.write_text(page.read_text("utf-8").replace('lang="en"', 'lang="zh"', 1), "utf-8")
    return [line for page in sorted(SITE.rglob("*.html")) for line in Links.of(page).wrong()]


class Links(HTMLParser):
    """The links and resources of a page; Zensical checks only links to pages and anchors."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.page = page
        self.leads: list[str] = []
        self.loads: list[str] = []

    @classmethod
    def of(cls, page: Path) -> Self:
        """Read a page."""
        links = cls(page)
        links.feed(page.read_text("utf-8"))
        return links

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the addresses of an element."""
        values = dict(attrs)
        if tag == "a":
            self.leads.append(values.get("href") or "")
        elif tag != "link" or "canonical" not in (values.get("rel") or ""):
            self.loads += [values[name] or "" for name in ("src", "href") if name in values]

    def wrong(self) -> list[str]:
        """Return one line for each error."""
        elsewhere = [each for each in self.loads if urlsplit(each).netloc]
        local = [urlsplit(each) for each in (*self.leads, *self.loads)]
        paths = {each.path for each in local if not each.scheme and not each.netloc and each.path}
        # The addresses in 404.html begin at the root of the site.
        gone = [
            each
            for each in paths
            if not (SITE if each[0] == "/" else self.page.parent).joinpath(unquote(each.lstrip("/"))).exists()
        ]
        name = self.page.relative_to(SITE)
        return [f"{name} loads {each}" for each in elsewhere] + [f"{name} leads to {each}" for each in gone]


if __name__ == "__main__":
    found = build()
    for line in found:
        sys.stderr.write(f"{line}\n")
    sys.exit(bool(found))
