"""The documents for users and developers: what they name exists, and their example is what happens."""

import re
from pathlib import Path

import pytest
import typer

from esdedup import VERIFIED, sample
from esdedup.cli.app import app
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.neighbours.relation import relation_of

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "benchmarks/README.md"])
# Read, not imported: it needs all the packages that benchmarks compare with.
BENCHMARKS = re.findall(
    r'^    "([a-z-]+)": \w+\.\w+,$', (ROOT / "benchmarks/__main__.py").read_text(), re.MULTILINE
)
SOURCES = {path.name for folder in ("esdedup", "ingest", "tests") for path in (ROOT / folder).rglob("*.py")}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_and_benchmark_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text()
    for path in re.findall(r"`(\w[\w./-]*(?:\.py|\.md|\.txt|/))`", text):
        places = [ROOT / path, ROOT / "esdedup" / path, document.parent / path]
        assert path in SOURCES or any(place.exists() for place in places), path
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (document.parent / target).exists(), target
    for names in re.findall(r"python -m benchmarks((?:\s[a-z][a-z-]+)+)`", text):
        assert set(names.split()) <= set(BENCHMARKS), names


def test_the_readme_names_every_command_and_no_other() -> None:
    text = (ROOT / "README.md").read_text()
    assert set(re.findall(r"^\| `esdedup (\w+)", text, re.MULTILINE)) == {
        *typer.main.get_group(app).list_commands(typer.Context(typer.main.get_group(app)))
    }


def test_the_example_of_a_batch_is_what_the_fingerprinter_computes() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    articles = {article["id"]: article for article in sample.articles()}
    relation = relation_of(VERIFIED)
    chosen = [articles["sample-0414"]["text"], articles["sample-0456"]["text"]]
    signatures = Fingerprinter(VERIFIED).fingerprint(chosen).signatures
    for first, second in zip(*relation.simhashes(signatures).tolist(), strict=True):
        row = f"| `{first:016x}` | `{second:016x}` | {(first ^ second).bit_count()} |"
        assert row in text
    root, leaf = relation.ids(signatures)
    assert f'{{"fingerprint": "{leaf}"' in text
    assert f'"root": "{root}"' in text
    assert f'"length": {len(chosen[1])}' in text
