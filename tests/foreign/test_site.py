"""The documentation site has no broken links, and loads nothing from other servers."""

import tomllib
from pathlib import Path
from typing import Any

import typer

import esdedup
from docs import pictures, reference, site
from esdedup.cli.app import app


def test_the_site_builds_without_broken_links() -> None:
    assert site.build() == []
    for name in ("index.html", "docs/tour.zh.html", "docs/reference/python.html"):
        assert (site.SITE / name).exists()


def test_missing_pictures_and_external_scripts_are_reported(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(site, "SITE", tmp_path)
    page = tmp_path / "page.html"
    page.write_text(
        '<script src="https://a.example/x.js"></script><img src="gone.png"><a href="page.html#top">'
    )
    assert site.Links.of(page).wrong() == [
        "page.html loads https://a.example/x.js",
        "page.html leads to gone.png",
    ]


def test_every_document_is_in_the_navigation() -> None:
    def paths(entries: Any) -> list[str]:
        if isinstance(entries, str):
            return [entries]
        parts = entries.values() if isinstance(entries, dict) else entries
        return [path for part in parts for path in paths(part)]

    shown = paths(tomllib.loads((site.ROOT / "docs/zensical.toml").read_text())["project"]["nav"])
    assert len(shown) == len({*shown})
    written = {str(path.relative_to(site.ROOT)) for path in site.ROOT.glob("docs/**/*.md")}
    made = {f"docs/reference/{name}.md" for name in reference.pages()}
    assert {path for path in shown if path.startswith("docs/")} == written | made


def test_the_reference_has_every_public_name_and_every_command() -> None:
    pages = reference.pages()
    assert all(f"\n### {name}\n" in pages["python"] for name in esdedup.__all__)
    group = typer.main.get_group(app)
    for name in group.list_commands(typer.Context(group)):
        assert f"\n## esdedup {name}" in pages["commands"]
    # An object's default `repr` contains its address, which differs from run to run.
    assert " at 0x" not in "".join(pages.values())


def test_the_pictures_are_up_to_date() -> None:
    for path, picture in pictures.pictures().items():
        assert path.read_text("utf-8") == picture
