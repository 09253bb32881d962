"""`esdedup explain`: why two articles are in one cluster, or are not."""

import json as jsonlib
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.explained import print_explanation
from esdedup.cli.verdict import print_verdict
from esdedup.errors import ArticleRejected, SettingError
from esdedup.explanation import explain as explain_texts
from esdedup.fields import Fields, text_of
from esdedup.ingest.articles import STANDARD_INPUT, check_readable
from esdedup.upkeep import Upkeep

# Nobody's prose begins like that.
_JSON_OBJECT = re.compile(r'\s*\{\s*["}]')
_JSON_ARRAY = re.compile(r'\s*\[\s*\{\s*["}]')
_ONE_A_FILE = (
    "explain takes one article a file: put each into a file of its own, or index them and name two ids "
    "with --index"
)


def explain(
    one: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="A file with one article, plain text or JSON with the text field; - is standard input. "
            "With --index: an id.",
            show_default=False,
        ),
    ],
    other: Annotated[str, typer.Argument(metavar="B", help="Another one.", show_default=False)],
    index: Annotated[
        str | None,
        typer.Option(
            "--index", help="Index of the articles, or an alias: A and B are ids.", show_default=False
        ),
    ] = None,
    json: options.Json = False,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            help=f"How texts are fingerprinted: {options.DEFAULT_PROFILE}, or as the index's were.",
            rich_help_panel="Fingerprint",
            show_default=False,
        ),
    ] = None,
    keywords: options.KeywordCount = None,
    weights: options.Weights = None,
    forest: options.ForestName = "esdedup-forest",
    text_field: options.TextField = "text",
    dedup_field: options.DedupField = "dedup",
    url: options.Url = options.DEFAULT_URL,
    api_key: options.ApiKey = None,
    ca_certs: options.CaCerts = None,
) -> None:
    """Tell why two articles are in one cluster, or are not: every stage of the decision, in words.

    Whether they are makes no difference to the exit code.
    """
    fields = Fields(text=text_field, dedup=dedup_field)
    if index is None:
        chosen = options.profile(profile or options.DEFAULT_PROFILE, keywords, weights)
        paths = [Path(one), Path(other)]
        check_readable(paths)
        found = explain_texts(_read_text(paths[0], fields), _read_text(paths[1], fields), chosen)
        if json:
            output.print_json(found.model_dump(mode="json"))
        else:
            print_explanation(output.console(), found)
        return
    if profile is None and (keywords is not None or weights is not None):
        raise SettingError("with --index, --keywords and --weights go with --profile")
    wanted = None if profile is None else options.profile(profile, keywords, weights)
    with options.client(url, api_key, ca_certs) as client:
        upkeep = Upkeep(client, forest=forest, fields=fields)
        indexed = upkeep.explain(index, one, other, profile=wanted)
    if json:
        output.print_json(indexed.model_dump(mode="json"))
    else:
        print_verdict(output.console(), indexed)


def _read_text(path: Path, fields: Fields) -> str:
    """Read a text from a file, or from an article in it.

    Raises:
        ArticleRejected: It is not UTF-8, or an article without its text.
        SettingError: It cannot be read, or has several articles.
    """
    name = "standard input" if path == STANDARD_INPUT else str(path)
    try:
        content = sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
    except OSError as error:
        raise SettingError(f"cannot read {name}: {error.strerror}") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ArticleRejected(name, f"is not UTF-8 (byte {error.start + 1})") from error
    if _JSON_ARRAY.match(text):
        raise SettingError(f"{name} is a JSON array of articles; {_ONE_A_FILE}")
    if not _JSON_OBJECT.match(text):
        return text
    try:
        article = jsonlib.loads(text)
    except jsonlib.JSONDecodeError as error:
        # Only after an object that is complete can another one begin.
        if text.startswith("{", error.pos) and error.msg == "Extra data":
            raise SettingError(
                f"{name} has several articles, the second on line {error.lineno} (JSON Lines); {_ONE_A_FILE}"
            ) from error
        raise _no_object(name, f"{error.msg} at character {error.pos + 1}") from error
    except (ValueError, RecursionError) as error:
        raise _no_object(name, error) from error
    return text_of(article, fields, name=name)


def _no_object(name: str, reason: object) -> ArticleRejected:
    return ArticleRejected(name, f"begins like a JSON object, but is not one: {reason}")
