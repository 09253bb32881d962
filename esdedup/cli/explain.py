"""`esdedup explain`: why two articles are in one cluster, or are not."""

from pathlib import Path
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.explanation_text import print_explanation
from esdedup.cli.texts import read_text
from esdedup.cli.verdict_text import print_verdict
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.ingest.files import check_readable
from esdedup.maintenance import Maintenance
from esdedup.neighbours.explainer import explain as explain_texts


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
    forest: options.ForestName = DEFAULT_FOREST,
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
        found = explain_texts(read_text(paths[0], fields), read_text(paths[1], fields), chosen)
        if json:
            output.print_json(found.model_dump(mode="json"))
        else:
            print_explanation(output.console(), found)
        return
    if profile is None and (keywords is not None or weights is not None):
        raise SettingError("with --index, --keywords and --weights go with --profile")
    wanted = None if profile is None else options.profile(profile, keywords, weights)
    with options.client(url, api_key, ca_certs) as client:
        maintenance = Maintenance(client, forest=forest, fields=fields)
        indexed = maintenance.explain(index, one, other, profile=wanted)
    if json:
        output.print_json(indexed.model_dump(mode="json"))
    else:
        print_verdict(output.console(), indexed)
