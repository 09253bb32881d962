"""Print the files and lines of each package; fail if they exceed the budget in ARCHITECTURE.md.

`make static` runs ``python -m tests.budget``. Raise a budget in the commit that needs more, and say why.
The check also fails if the name of a test has more than nine words.
"""

import ast
import dataclasses
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
_ROW = re.compile(r"^\| `(?P<package>\w+)/?` \|.*\| (?P<files>[\d,]+) \| (?P<lines>[\d,]+) \|$", re.MULTILINE)
_TOTAL = re.compile(
    r"at most (?P<files>[\d,]+) files of Python with (?P<lines>[\d,]+) lines, (?P<code>[\d,]+) of them code"
)
_TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
_WORDS_OF_A_TEST = 9
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NOT_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


@dataclasses.dataclass(frozen=True)
class Size:
    files: int = 0
    lines: int = 0
    # Lines other than docstrings, comments and blank lines.
    code: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(self.files + other.files, self.lines + other.lines, self.code + other.code)


def code_lines(source: str) -> int:
    """Count the lines of Python that are neither docstrings nor comments nor blank."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {
        line
        for token in tokens
        if token.type not in _NOT_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - docstrings)


def rust_code_lines(source: str) -> int:
    """Count the lines of Rust that are neither comments nor blank, up to the tests at the end of the file."""
    code = source.partition("#[cfg(test)]\nmod tests")[0]
    return sum(bool(line.strip()) and not line.lstrip().startswith("//") for line in code.splitlines())


def sizes() -> dict[str, Size]:
    """Return the size of each package; the modules directly in `esdedup` count as a package `esdedup`."""
    counted: dict[str, Size] = {}
    for package, path in _files():
        source = path.read_text(encoding="utf-8")
        count = rust_code_lines if path.suffix == ".rs" else code_lines
        counted[package] = counted.get(package, Size()) + Size(1, len(source.splitlines()), count(source))
    return counted


def _files() -> Iterator[tuple[str, Path]]:
    for top in ("esdedup", "ingest", "mappings"):
        for path in (ROOT / top).rglob("*.py"):
            inner = path.relative_to(ROOT / "esdedup").parts if top == "esdedup" else (top, path.name)
            yield (inner[0] if len(inner) > 1 else "esdedup"), path
    for path in (ROOT / "core" / "src").rglob("*.rs"):
        yield "core", path


def _naming_failures() -> Iterator[str]:
    for path in (ROOT / "tests").rglob("*.py"):
        for name in _TEST.findall(path.read_text(encoding="utf-8")):
            if name.count("_") > _WORDS_OF_A_TEST:
                yield f"{path.relative_to(ROOT)}: the name of {name} has more than {_WORDS_OF_A_TEST} words"


def main() -> int:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    budgets = {row["package"]: (_number(row["files"]), _number(row["lines"])) for row in _ROW.finditer(text)}
    total_budget = _TOTAL.search(text)
    assert total_budget is not None, "ARCHITECTURE.md states no total budget"
    counted = sizes()
    failures = [f"ARCHITECTURE.md has no budget for {package}" for package in counted.keys() - budgets.keys()]
    for package, size in sorted(counted.items()):
        files, lines = budgets.get(package, (0, 0))
        # The crate is measured in lines of code, since its files also contain tests and long comments.
        measured = size.code if package == "core" else size.lines
        sys.stdout.write(
            f"{package:14}{size.files:5} of {files:<5}{measured:7,} of {lines:<7,}({size.code:,} code)\n"
        )
        if package in budgets and (size.files > files or measured > lines):
            failures.append(f"{package} exceeds its budget in ARCHITECTURE.md")
    total = sum((size for package, size in counted.items() if package != "core"), Size())
    sys.stdout.write(f"{'Python':14}{total.files:5}{total.lines:16,}{'':11}({total.code:,} code)\n")
    if any(getattr(total, name) > _number(value) for name, value in total_budget.groupdict().items()):
        failures.append(f"the Python code exceeds its budget: {total_budget[0]}")
    failures.extend(_naming_failures())
    for failure in sorted(failures):
        sys.stderr.write(f"{failure}\n")
    return bool(failures)


def _number(text: str) -> int:
    return int(text.replace(",", ""))


if __name__ == "__main__":
    sys.exit(main())
