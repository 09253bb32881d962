"""Reads files that contain plain text or an article in JSON, and opens files that a command writes."""

import contextlib
import csv
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from esdedup.errors import ArticleRejected, SettingError
from esdedup.fields import Fields, term_of, text_of
from esdedup.ingest import parquet
from esdedup.ingest.csv_rows import TO_UTF8
from esdedup.ingest.records import MAX_ARTICLE_BYTES, OPENERS, STANDARD_INPUT, input_name
from esdedup.sites import Provenance, RawPage

if TYPE_CHECKING:
    from esdedup.ingest.files import FileArticle

_CSV, _PARQUET = ".csv", ".parquet"
ROWS = (".jsonl", ".ndjson", ".json", _CSV, _PARQUET)
"""The ends of the names of files that rows are written to, in a format that depends on it."""
# Texts that begin like this are parsed as JSON.
_JSON_OBJECT = re.compile(r'\s*\{\s*["}]')
_JSON_ARRAY = re.compile(r'\s*\[\s*\{\s*["}]')
_ONE_A_FILE = (
    "only one article per file is allowed: put each into its own file, or index them and pass ids with "
    "--index"
)


def read_text(path: Path, fields: Fields) -> RawPage:
    """Read a file with plain text or an article in JSON; raises `ArticleRejected` or `SettingError`."""
    name, text = input_name(path), read_plain_text(path)
    if _JSON_ARRAY.match(text):
        raise SettingError(f"{name} is a JSON array of articles; {_ONE_A_FILE}")
    if not _JSON_OBJECT.match(text):
        return RawPage(text)
    try:
        article = json.loads(text)
    except json.JSONDecodeError as error:
        # A brace after a complete object begins another article.
        if text.startswith("{", error.pos) and error.msg == "Extra data":
            raise SettingError(
                f"{name} has several articles, the second on line {error.lineno} (JSON Lines); {_ONE_A_FILE}"
            ) from error
        raise _no_object(name, f"{error.msg} at character {error.pos + 1}") from error
    except (ValueError, RecursionError) as error:
        raise _no_object(name, error) from error
    site, _, origin = Provenance.of(article, fields, term_of(article, "id"))
    return RawPage(text_of(article, fields, name=name), site, origin=origin)


def read_plain_text(path: Path) -> str:
    """Read a file as plain text; raises the same errors as `read_text`."""
    name = input_name(path)
    if path == STANDARD_INPUT and sys.stdin is None:
        raise SettingError("standard input is closed")
    try:
        with sys.stdin.buffer if path == STANDARD_INPUT else path.open("rb") as stream:
            content = stream.read(MAX_ARTICLE_BYTES + 1)
    except OSError as error:
        raise SettingError(f"cannot read {name}: {error.strerror}") from error
    if len(content) > MAX_ARTICLE_BYTES:
        raise ArticleRejected(name, f"is longer than {MAX_ARTICLE_BYTES:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ArticleRejected(name, f"is not UTF-8 (byte {error.start + 1}); {TO_UTF8}") from error


def _no_object(name: str, reason: object) -> ArticleRejected:
    return ArticleRejected(name, f"begins like a JSON object but is not valid JSON: {reason}")


@contextlib.contextmanager
def opened_output(
    path: Path | None, inputs: list[Path], *, endings: Collection[str] = ROWS
) -> Iterator[IO[str]]:
    """Open a file for writing, and rename it into place when complete; None or - means standard output.

    The file's name must have no ending, or one of `endings`. JSON Lines become Parquet if the name says so.
    """
    if path is None or path == STANDARD_INPUT:
        yield sys.stdout
        return
    for each in inputs:
        if path.resolve() == each.resolve() or (each.exists() and path.exists() and path.samefile(each)):
            raise SettingError(f"{path} is also an input file: write to another file")
    ending, opener = _ending(path), OPENERS.get(path.suffix, open)
    if ending not in {"", *endings} or (ending == _PARQUET and opener is not open):
        raise SettingError(
            f"{path}: known endings are {', '.join(endings)}; except after {_PARQUET}, {', '.join(OPENERS)} "
            "may follow"
        )
    if ending == _PARQUET:
        parquet.require_pyarrow()
    scratch = path if path.exists() and not path.is_file() else path.with_name(f".{path.name}.{os.getpid()}")
    try:
        target = opener(scratch, "w+t" if ending == _PARQUET else "wt", encoding="utf-8")
    except OSError as error:
        raise SettingError(f"cannot write to {path}: {error.strerror}") from error
    try:
        with target:
            yield target
            if ending == _PARQUET:
                scratch.unlink()
                parquet.write(target, scratch)
        if scratch != path:
            scratch.replace(path)
    except BaseException:
        if scratch != path:
            scratch.unlink(missing_ok=True)
        raise


def _ending(path: Path) -> str:
    """Return the end of a file's name without the end that stands for compression."""
    return (path.with_suffix("") if path.suffix in OPENERS else path).suffix


def row_writer(
    target: IO[str], path: Path | None, columns: Iterable[str]
) -> Callable[[dict[str, Any]], object]:
    """Return a function that writes a row, as CSV or JSON by the file's name; in CSV, lists are JSON."""
    if path is None or _ending(path) != _CSV:
        return lambda row: target.write(json.dumps(row) + "\n")
    rows = csv.DictWriter(target, list(columns), lineterminator="\n")
    rows.writeheader()
    return lambda row: rows.writerow(
        {name: json.dumps(each) if isinstance(each, dict | list) else each for name, each in row.items()}
    )


@contextlib.contextmanager
def refused_file(path: Path | None) -> Iterator[Callable[["FileArticle"], None]]:
    """Yield a function that writes articles to a new file, which is deleted if it stays empty."""
    if path is None:
        yield lambda _: None
        return
    if path == STANDARD_INPUT:
        raise SettingError("--refused names a file for articles alone: - cannot be used")
    try:
        target = path.open("x", encoding="utf-8")
    except OSError as error:
        raise SettingError(f"cannot create {path} for refused articles: {error.strerror}") from error
    with target:

        def write(article: "FileArticle") -> None:
            # Flush every line, so that none is lost, however this process exits.
            print(json.dumps(article.fields), file=target, flush=True)

        try:
            yield write
        finally:
            if not target.tell():
                path.unlink()
