"""Loads the real articles that benchmarks use, and their labels. The data is not part of the project."""

import gzip
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

SETS = {
    "zh_news": "long Chinese news",
    "zh_short": "Chinese bulletins",
    "en_wire": "English wire",
    "zh_pages": "Chinese pages",
    "en_pages": "English pages",
}
"""The labelled sets, with a description of each."""
MORE = {
    "zh_fin": "Chinese financial news",
    "zh_weibo": "Chinese posts",
    "ar": "Arabic news",
    "en_real": "English wire within the boilerplate of sites",
}
"""Further sets, which only some benchmarks use."""
AS_THEY_COME = {
    "h_daniel_en": "English pages, their visible text, and the article",
    "h_daniel_en_raw": "these English pages as HTML",
    "h_daniel_ru": "Russian pages, their visible text, and the article",
    "h_daniel_ru_raw": "these Russian pages as HTML",
    "bund2_de": "bulletins of a German administration",
    "ne_news": "Nepali pages, many with lists of other articles",
    "extractors": "one article as extracted by twelve programs",
    "c_fa": "Persian news with edits of 20 kinds",
    "c_tr": "Turkish news with these edits",
    "c_el": "Greek news with these edits",
    "c_fr": "French news with these edits",
    "c_th": "Thai news with these edits",
}
"""Texts as feeds and crawlers deliver them, edited texts, and texts in several spellings."""
SITES = {"zh_pages": 30, "en_pages": 25}
"""The number of sites of each set of pages."""
CHINESE = tuple(name for name in SETS if name.startswith("zh"))

_WORD = re.compile(r"\w+")

SHINGLE_LETTERS, SHINGLE_WORDS = 6, 4
"""The length of the shingles that labels are made from: characters in Chinese, words in English."""

Article = Mapping[str, Any]
Articles = Mapping[str, Article]
"""Articles by id, in the order of arrival."""
Records = Mapping[frozenset[str], str]
"""The label of each pair of ids, such as ``pos`` or ``grey``."""


def folder() -> Path:
    """Return the folder with the sets; exit with code 2 and a message if there is none."""
    given = os.environ.get("ESDEDUP_SHARED")
    if not given:
        typer.echo("ESDEDUP_SHARED does not name the folder with real articles", err=True)
        raise typer.Exit(2)
    return Path(given)


def labels_path(name: str) -> Path:
    return _folder_of(name) / f"{name}.labels.tsv"


def _folder_of(name: str) -> Path:
    if name in AS_THEY_COME:
        return folder() / "more4"
    return folder() / ("pages" if name in SITES else "more" if name in MORE else "data")


def articles_of(name: str) -> Articles:
    path = _folder_of(name) / f"{name}.jsonl"
    held = path.read_bytes() if path.exists() else gzip.decompress(path.with_suffix(".jsonl.gz").read_bytes())
    # `str.splitlines` would also split at line separators within articles.
    lines = held.rstrip(b"\n").split(b"\n")
    return {article["id"]: article for article in map(json.loads, lines)}


def texts_of(name: str) -> list[str]:
    return [article["text"] for article in articles_of(name).values()]


def shingles_of(text: str, *, is_chinese: bool) -> Sequence[str]:
    """Return the shingles that labels are made from: Chinese characters and digits, or words."""
    if is_chinese:
        letters = "".join(filter(str.isalnum, text))
        starts = range(max(1, len(letters) - SHINGLE_LETTERS + 1))
        return [letters[at : at + SHINGLE_LETTERS] for at in starts]
    words = _WORD.findall(text.lower())
    starts = range(max(1, len(words) - SHINGLE_WORDS + 1))
    return [" ".join(words[at : at + SHINGLE_WORDS]) for at in starts]


def labels_of(name: str, *, edited_only: bool = False) -> Records:
    """Return the labels of a set.

    Args:
        name: The name of the set.
        edited_only: Whether pairs with the same shingles, which are copies, become ``grey``.
    """
    with labels_path(name).open(encoding="utf-8") as lines:
        next(lines)
        rows = (line.rstrip("\n").split("\t") for line in lines)
        return {
            frozenset((one, other)): "grey" if edited_only and float(jaccard) == 1 else label
            for one, other, label, jaccard, *_ in rows
        }
