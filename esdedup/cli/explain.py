"""`esdedup explain`: why two articles are in one cluster or not."""

from pathlib import Path
from typing import Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.explanation_text import print_explanation, print_verdict
from esdedup.cli.files import read_text
from esdedup.ingest.records import check_readable
from esdedup.maintenance import Maintenance
from esdedup.reading.explanation import explain as explain_texts


@command("explain", example="esdedup explain one.txt other.txt, or: esdedup explain 4711 4712 --index news")
def explain(
    one: Annotated[str, typer.Argument(metavar="A", show_default=False)],
    other: Annotated[str, typer.Argument(metavar="B", show_default=False)],
    *,
    index: str | None = None,
    json: options.Json = False,
    fingerprinting: options.Fingerprinting,
    forest: options.Forest,
    field_names: options.FieldNames,
    server: options.Server,
) -> None:
    """Explain why two articles are in one cluster or not, stage by stage.

    Also shows what is left out of each as boilerplate: of articles of an index, what its forest has learned
    by now; of files, what `esdedup cluster` would leave out if these two were all.

    With --index, articles are compared by the profile they were indexed with, unless --profile names
    another one. The exit code does not depend on the answer.

    Options:
        one: A file with one article, plain text or JSON with the text field; - is standard input. With
            --index: an id.
        other: The other article.
        index: Index of the articles, or an alias; A and B are then ids.
    """
    overrides = fingerprinting.overrides()
    if index is None:
        fields = field_names.fields()
        paths = [Path(one), Path(other)]
        profile = fingerprinting.profile()
        check_readable(paths)
        one_text, other_text = (read_text(path, fields) for path in paths)
        sites = one_text.site, other_text.site
        compared = explain_texts(one_text.text, other_text.text, profile, overrides=overrides, sites=sites)
        if json:
            output.print_json(compared.model_dump(mode="json"))
        else:
            print_explanation(output.console(), compared)
        return
    given = fingerprinting.given_profile()
    with server.connect() as client:
        maintenance = Maintenance(client, forest=forest.name, fields=field_names.fields_of(client, index))
        indexed = maintenance.explain(index, one, other, profile=given, overrides=overrides)
    if json:
        output.print_json(indexed.model_dump(mode="json"))
    else:
        print_verdict(output.console(), indexed)
