"""The real articles that benchmarks measure with, and their labels; they are not part of the project."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

_WORD = re.compile(r"\w+")

Records = Mapping[frozenset[str], str]
"""The label of each pair of ids, such as ``pos`` or ``grey``."""


def folder() -> Path:
    """Return the folder with the sets; exit with code 2 and a message if there is none."""
    given = os.environ.get("ESDEDUP_SHARED")
    if not given:
        typer.echo("ESDEDUP_SHARED does not name the folder with real articles", err=True)
        raise typer.Exit(2)
    return Path(given) / "data"


def labelled_sets() -> list[str]:
    return sorted(path.name.removesuffix(".labels.tsv") for path in folder().glob("*.labels.tsv"))


def path_of(name: str) -> Path:
    return folder() / f"{name}.jsonl"


def articles_of(name: str) -> dict[str, dict[str, Any]]:
    """Return articles by id, in the order of arrival."""
    with path_of(name).open(encoding="utf-8") as lines:
        return {article["id"]: article for article in map(json.loads, lines)}


def shingles_of(article: Mapping[str, Any]) -> frozenset[str]:
    """Return the shingles that the labels were made from: 6 letters and digits of Chinese, or 4 words."""
    if article["lang"] == "zh":
        parts: Sequence[str] = [each for each in article["text"] if each.isalnum()]
        length = 6
    else:
        parts, length = _WORD.findall(article["text"].lower()), 4
    between = "" if article["lang"] == "zh" else " "
    return frozenset(between.join(parts[at : at + length]) for at in range(max(1, len(parts) - length + 1)))


def labels_of(name: str, *, edited_only: bool = False) -> Records:
    """Return the labels of a set.

    Args:
        name: Of the set.
        edited_only: Whether pairs with the same shingles, which are copies, become ``grey``.
    """
    with (folder() / f"{name}.labels.tsv").open(encoding="utf-8") as lines:
        next(lines)
        rows = (line.rstrip("\n").split("\t") for line in lines)
        return {
            frozenset((one, other)): "grey" if edited_only and float(jaccard) == 1 else label
            for one, other, label, jaccard, *_ in rows
        }
