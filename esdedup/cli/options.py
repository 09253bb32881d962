"""The options that several commands share, and what becomes of them."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from elasticsearch import Elasticsearch

from esdedup.elastic.client import connect
from esdedup.errors import SettingError
from esdedup.fingerprint.profile import DEFAULT, Profile, get_profile
from esdedup.text.words import Tf, TfIdf, Weighting, WordTable

_SERVER = "Server"
_FIELDS = "Field names"
_FINGERPRINT = "Fingerprint"

Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar=["ELASTICSEARCH_URL", "ES_URL"],
        help="Address of Elasticsearch; may hold user and password. Several: separated by commas.",
        rich_help_panel=_SERVER,
        show_default=True,
    ),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        envvar=["ES_API_KEY", "ELASTICSEARCH_API_KEY"],
        help="API key, as Elasticsearch gave it (base64).",
        rich_help_panel=_SERVER,
    ),
]
CaCerts = Annotated[
    Path | None,
    typer.Option(
        "--ca-certs",
        envvar=["ES_CA_CERTS", "ELASTICSEARCH_CA_CERTS"],
        help="Certificate of the authority that signed the server's.",
        rich_help_panel=_SERVER,
    ),
]
DEFAULT_URL = "http://localhost:9200"

Index = Annotated[str, typer.Option("--index", help="Index of the articles, or an alias.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
PageNumber = Annotated[int, typer.Option("--page", min=1, help="Which page.")]
PageSize = Annotated[int, typer.Option("--size", min=1, max=1_000, help="How many on a page.")]
After = Annotated[
    str | None, typer.Option("--after", help="The cursor of the page before, which knows no limit of depth.")
]

TextField = Annotated[
    str, typer.Option("--text-field", help="What is fingerprinted.", rich_help_panel=_FIELDS)
]
TitleField = Annotated[str, typer.Option("--title-field", rich_help_panel=_FIELDS)]
TimeField = Annotated[
    str, typer.Option("--time-field", help="When it was published.", rich_help_panel=_FIELDS)
]
SourceField = Annotated[
    str, typer.Option("--source-field", help="Who published it.", rich_help_panel=_FIELDS)
]
LinkField = Annotated[
    str, typer.Option("--link-field", help="Its address on the web.", rich_help_panel=_FIELDS)
]
IdField = Annotated[str, typer.Option("--id-field", rich_help_panel=_FIELDS)]

ProfileName = Annotated[
    str, typer.Option("--profile", help="How texts are fingerprinted.", rich_help_panel=_FINGERPRINT)
]
KeywordCount = Annotated[
    int | None,
    typer.Option(
        "--keywords", help="How many words the profile keywords takes.", rich_help_panel=_FINGERPRINT
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        help="Of classic and keywords: tf-idf (if not given), tf, or a JSON file with an object of words "
        "and their weights.",
        rich_help_panel=_FINGERPRINT,
    ),
]
RetentionDays = Annotated[
    float | None,
    typer.Option(
        "--retention-days",
        min=0.001,
        help="How long a cluster stays open after its last article; as before if not given, first 30.",
        show_default=False,
    ),
]
DedupField = Annotated[str, typer.Option("--dedup-field", help="The object that esdedup wrote.")]
ForestName = Annotated[str, typer.Option("--forest", help="Name of the forest's index.")]
Wait = Annotated[
    float, typer.Option("--wait", min=0, help="Seconds to wait for another process that owns the forest.")
]

DEFAULT_PROFILE = DEFAULT.name


def client(url: str, api_key: str | None, ca_certs: Path | None) -> Elasticsearch:
    """Connect as the options say."""
    return connect(url, api_key=api_key, ca_certs=ca_certs)


def profile(name: str, keyword_count: int | None, weights: str | None) -> Profile:
    """Return the profile that the options describe."""
    chosen = get_profile(name)
    if keyword_count is not None and chosen.representation != "keywords":
        raise SettingError(f"--keywords goes with the profile keywords, not with {name}")
    if weights is not None and chosen.agreement is not None:
        raise SettingError(f"--weights goes with the profiles classic and keywords, not with {name}")
    weighting = None if weights is None else _weighting(weights)
    return chosen.with_changes(keyword_count=keyword_count, weighting=weighting)


def retention(days: float | None) -> timedelta | None:
    """Return the retention as a duration, None if none is given."""
    if days is None:
        return None
    try:
        return timedelta(days=days)
    except OverflowError:
        raise SettingError(f"--retention-days {days} is too long") from None


def _weighting(weights: str) -> Weighting:
    for weighting in (TfIdf(), Tf()):
        if weights == weighting.name:
            return weighting
    try:
        table = json.loads(Path(weights).read_text("utf-8"))
    except FileNotFoundError:
        raise SettingError(f"--weights {weights!r} is neither tf-idf nor tf, nor a file") from None
    except (OSError, ValueError) as error:
        raise SettingError(f"cannot read the weights in {weights}: {error}") from error
    if not isinstance(table, dict):
        raise SettingError(f"the weights in {weights} are no JSON object of words and numbers")
    return WordTable(table)
