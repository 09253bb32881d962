"""Word files: weight tables (computed from articles), user dictionaries and stop-word lists."""

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from esdedup.ingest.files import ReadArticle, text_batches

from esdedup._core import normal_form
from esdedup.errors import ArticleRejected, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.document_frequencies import DocumentFrequencies
from esdedup.fingerprint.profile import Profile
from esdedup.text.hashing import get_token_hash
from esdedup.text.segmenters import JIEBA, Dictionary, Jieba, Segmenter, can_yield, get_segmenter
from esdedup.text.weights import WEIGHTINGS, StopWords, Weighting, WordTable

_BYTE_ORDER_MARK = "\ufeff"
_EXAMPLES = 3
_EXAMPLE_LENGTH = 60
_ADD_THEM = "add them to a dictionary of jieba, or choose another segmenter"


def with_words(
    profile: Profile,
    *,
    weights: str | None = None,
    segmenter: str | None = None,
    token_hash: str | None = None,
    dictionary: Path | None = None,
    stop_words: Path | None = None,
    zero_bit: int | None = None,
) -> Profile:
    """Return a profile that segments, weighs or hashes words differently; None keeps the profile's choice.

    `stop_words` has one word per line. Raises `SettingError` for an invalid file, or a profile without words.
    """
    weighting = None if weights is None else read_weights(weights)
    if stop_words is not None:
        words = list(filter(None, _lines(stop_words)))
        if not words:
            raise SettingError(f"{stop_words} has no words: leave it out")
        weighting = StopWords(words, profile.weighting if weighting is None else weighting)
    return profile.with_changes(
        weighting=weighting,
        segmenter=read_segmenter(segmenter, dictionary),
        token_hash=None if token_hash is None else get_token_hash(token_hash),
        zero_bit=zero_bit,
    )


def read_weights(weights: str) -> Weighting:
    """Return the weighting of the given name, or the weighting by the table in the given file.

    A table is a JSON object of words and their weights, where all other words have the weight 0; an object
    with such a table under ``words`` and the weight of other words under ``default``; or lines as in jieba's
    ``idf.txt``, where other words have the median weight. Raises `SettingError`.
    """
    if weights in WEIGHTINGS:
        return WEIGHTINGS[weights]
    try:
        text = text_of_file(Path(weights))
        is_json = text.lstrip()[:1] in {"{", "["}
        table: Any = (
            json.loads(text, object_pairs_hook=_without_contradictions) if is_json else _by_lines(text)
        )
    except SettingError as error:
        if not weights or isinstance(error.__cause__, FileNotFoundError):
            raise SettingError(f"the weights {weights!r} are neither tf-idf nor tf, nor a file") from error
        raise
    except (ValueError, RecursionError) as error:
        raise SettingError(f"cannot read the weights in {weights}: {error}") from error
    default = 0.0
    if isinstance(table, dict) and isinstance(table.get("words"), dict):
        if unknown := ", ".join(map(repr, sorted(table.keys() - {"words", "default", "articles"}))):
            raise SettingError(
                f"{weights} has {unknown} next to 'words', where only 'articles' and 'default' are allowed"
            )
        default = table.get("default", default)
        table = table["words"]
    if not isinstance(table, dict):
        raise SettingError(f"the weights in {weights} are not a JSON object of words and numbers")
    try:
        found = WordTable(table, default=default)
    except SettingError as error:
        raise SettingError(f"{weights}: {error}") from error
    if default == 0 and not any(table.values()):
        raise SettingError(f"{weights}: no word has a weight above 0, so no text would have a fingerprint")
    return found


def _by_lines(text: str) -> dict[str, Any]:
    """Return the table in lines of a word, a space and its weight, with the median weight for other words.

    Words that have the same normal form keep one weight: that of the word in normal form, or of the first.
    """
    weights: dict[str, float] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                word, weight = line.strip().rsplit(" ", 1)
                weights.setdefault(word, float(weight))
            except ValueError as error:
                kinds = "a JSON object nor lines of a word and its weight"
                raise ValueError(f"it is neither {kinds}: see line {number:,}") from error
    if not weights:
        raise ValueError("it has no words")
    words = {normal_form(word): weight for word, weight in reversed(weights.items())}
    words |= {word: weight for word, weight in weights.items() if word in words}
    return {"words": words, "default": statistics.median_high(weights.values())}


def _without_contradictions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise `ValueError` if a name has two values (Python would keep the last)."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found and found[name] != value:
            raise ValueError(f"{name!r} occurs twice, with different values")
        found[name] = value
    return found


def read_segmenter(name: str | None, dictionary: Path | None) -> Segmenter | None:
    """Return the segmenter of the given name, or jieba with the given dictionary; None if both are None."""
    segmenter = None if name is None else get_segmenter(name)
    if dictionary is None:
        return segmenter
    if segmenter not in {None, JIEBA}:
        raise SettingError(f"a dictionary applies to the segmenter jieba, not to {name}")
    return Jieba(Dictionary.of_lines(_lines(dictionary), name=str(dictionary)))


def words_never_cut(profile: Profile) -> list[str]:
    """Return a message for each file with words that the segmenter never yields, so they have no effect."""
    segmenter, weighting = profile.segmenter, profile.weighting
    lines = []
    if isinstance(weighting, StopWords):
        lines += _about(segmenter, "stop words", weighting.words, _ADD_THEM)
        weighting = weighting.weighting
    if isinstance(weighting, WordTable):
        lines += _about(segmenter, "words with a weight", weighting.words, _ADD_THEM)
    return lines + dictionary_words_never_cut(segmenter)


def dictionary_words_never_cut(segmenter: Segmenter) -> list[str]:
    """Return a message about a dictionary's words that the segmenter never yields, or an empty list."""
    if not isinstance(segmenter, Jieba) or segmenter.dictionary is None:
        return []
    words = [word for word, frequency in segmenter.dictionary.entries if frequency != 0]
    advice = "raise their frequencies; jieba splits at spaces, at most punctuation and letters beyond a to z"
    return _about(segmenter, "words of the dictionary", words, advice)


def _about(segmenter: Segmenter, what: str, words: Sequence[str], advice: str) -> list[str]:
    never = [word for word in words if any(map(str.isalnum, word)) and not can_yield(segmenter, word)]
    if not never:
        return []
    examples = ", ".join(
        f"{_clipped(repr(word))} (as {_clipped(' | '.join(segmenter.cut(word)))})"
        for word in never[:_EXAMPLES]
    )
    return [
        f"{len(never):,} of {len(words):,} {what} have no effect: the segmenter never yields them, for "
        f"example {examples}; {advice}"
    ]


def _clipped(text: str) -> str:
    # A line of the file may be as long as an article.
    return text if len(text) <= _EXAMPLE_LENGTH else f"{text[: _EXAMPLE_LENGTH - 1]}…"


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in text_of_file(path).split("\n")]


def text_of_file(path: Path) -> str:
    """Read a file of settings; raise `SettingError` if it is unreadable or not UTF-8."""
    try:
        return path.read_text("utf-8").removeprefix(_BYTE_ORDER_MARK)
    except OSError as error:
        raise SettingError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingError(f"cannot read {path}: it is not UTF-8 (byte {error.start + 1})") from error


def count_words(
    articles: Iterable[ReadArticle],
    frequencies: DocumentFrequencies,
    *,
    fields: Fields,
    on_rejected: Callable[[ArticleRejected], None],
    on_cut: Callable[[str], None] = lambda _: None,
) -> None:
    """Count the words of articles; call `on_cut` with the name of each truncated article."""
    for batch in text_batches(articles, fields, on_rejected):
        are_cut = frequencies.add([text for _, text in batch])
        for (article, _), is_cut in zip(batch, are_cut.tolist(), strict=True):
            if is_cut:
                on_cut(article.name)


def written_weights(table: WordTable, *, articles: int) -> str:
    """Return a table in the format of `read_weights`, one word per line, with the number of articles."""
    words = {word: table.weight(word) for word in sorted(table.words)}
    content = {"default": table.default, "articles": articles, "words": words}
    return json.dumps(content, ensure_ascii=False, indent=0) + "\n"
