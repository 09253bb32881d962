"""The file of results, and the documents that quote it."""

import dataclasses
import re
from pathlib import Path

import pytest

from benchmarks import render, results
from benchmarks.processes import machine
from benchmarks.results import ROOT, Measured, Result

# Shares, rates, sizes and durations.
FIGURE = re.compile(r"(?<![\d.])\d+(?:\.\d+)?%|\d[\d,.]*(?: \w+)?/s\b|\d[\d,.]* (?:bytes a node|µs|ms|MB)\b")
# In other documents these are thresholds, and bounds that a test holds.
DECIMAL = re.compile(r"(?<![\d.])\d\.\d{2,}(?![\d.])")
QUOTING = {
    ROOT / "README.md": (FIGURE, DECIMAL),
    ROOT / "benchmarks/README.md": (FIGURE, DECIMAL),
    **dict.fromkeys(sorted(ROOT.glob("docs/**/*.md")), (FIGURE,)),
    **dict.fromkeys((ROOT / "docs/quality.md", ROOT / "docs/costs.md"), (FIGURE, DECIMAL)),
}
# Versions, the level of intervals, and values of an option and of a query.
NOT_MEASURED = {"3.11", "8.19", "95%", "0.01", "50%"}
MEASURED = Measured(
    on="2026-01-02",
    machine="a machine",
    system="a system",
    versions={"numpy": "2"},
    code="c0de",
    took_s=7,
    seeds=2,
)


def quality(**precisions: str) -> Result:
    rows = [
        {
            "set": name,
            "method": "verified (default)",
            "threshold": "",
            "precision": precision,
            "recall": "0.5",
            "of edited pairs": "0.4",
        }
        for name, precision in precisions.items()
    ]
    return Result(measured=MEASURED, tables={"quality": rows})


def test_the_documents_are_made_from_the_file_of_results() -> None:
    kept = results.load(results.QUOTED)
    assert render.DOCUMENT.read_text() == render.document(kept)
    for path in render.QUOTING:
        assert path.read_text() == render.quoted(path.read_text(), kept)


@pytest.mark.parametrize("path", QUOTING, ids=lambda path: path.name)
def test_a_document_quotes_no_figure_that_is_not_in_the_file_of_results(path: Path) -> None:
    held = " ".join(
        cell
        for result in results.load(results.QUOTED).values()
        for rows in result.tables.values()
        for row in rows
        for cell in row.values()
    )
    for pattern in QUOTING[path]:
        found = set(pattern.findall(path.read_text()))
        assert found <= {*pattern.findall(held), *NOT_MEASURED}, found


def test_results_are_read_as_they_were_saved(tmp_path: Path) -> None:
    kept = {"quality": quality(zh_news="0.99 (0.9-1.0)")}
    results.save(kept, tmp_path / "results.json")
    assert results.load(tmp_path / "results.json") == kept
    assert results.load(tmp_path / "none.json") == {}


def test_results_of_other_code_or_another_machine_are_measured_again() -> None:
    measured = dataclasses.replace(MEASURED, code=results.code(), machine=machine())
    assert results.is_current(Result(measured=measured, tables={}))
    older, another = dataclasses.replace(measured, code="0"), dataclasses.replace(measured, machine="another")
    assert not results.is_current(Result(measured=older, tables={}))
    assert not results.is_current(Result(measured=another, tables={}))


def test_a_block_of_a_document_is_made_anew() -> None:
    text = "before\n<!-- results: quality -->\nold\n<!-- end of results -->\nafter\n"
    shown = render.quoted(text, {"quality": quality(zh_news="0.99", en_pages="0.93")})
    assert shown.startswith("before\n<!-- results: quality -->\n| method |")
    assert "| `verified` (default) | precision | 0.99 | 0.93 |" in shown
    assert shown.endswith("|\n<!-- end of results -->\nafter\n")
    assert render.quoted(shown, {"quality": quality(zh_news="0.99", en_pages="0.93")}) == shown


def test_all_results_say_how_they_were_measured() -> None:
    shown = render.document({"quality": quality(zh_news="0.99")})
    assert "`python -m benchmarks quality`, 2026-01-02, in 7 s, code c0de." in shown
    assert "a machine; a system; numpy 2." in shown
