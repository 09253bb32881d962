"""`esdedup fingerprint`: the fingerprint of a text, without Elasticsearch."""

import dataclasses
import itertools
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.messages import say_cut
from esdedup.cli.texts import read_plain_text
from esdedup.fingerprint.by_words import Feature
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.simhash import from_hex
from esdedup.ingest.opening import STANDARD_INPUT
from esdedup.neighbours.explainer import Explainer
from esdedup.neighbours.explanation import Representative


@command("fingerprint", example="echo 'A text of some length.' | esdedup fingerprint")
def fingerprint(
    *,
    json: options.Json = False,
    fingerprinting: options.Fingerprinting,
) -> None:
    """Show the fingerprint of a text on standard input, and its representatives.

    Two texts are compared when a simhash of one is within three bits of a simhash of the other; such
    simhashes share a band.
    """
    profile = fingerprinting.profile()
    described = _Description.of(read_plain_text(STANDARD_INPUT), profile)
    if described.is_cut:
        say_cut("standard input")
    if json:
        output.print_json(described.for_programs())
    else:
        described.print(output.console())


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Description:
    """A text's fingerprint, and what it is made of."""

    profile: Profile
    # None if the text has no fingerprint; then the rest is empty.
    fingerprint: str | None
    representatives: list[Representative]
    features: list[Feature]
    bands: list[str]
    # Whether only the beginning of the text is compared.
    is_cut: bool

    @classmethod
    def of(cls, text: str, profile: Profile) -> "_Description":
        """Describe a raw text."""
        explainer, fingerprinter = Explainer(profile), Fingerprinter(profile)
        representatives = explainer.representatives(text)
        terms = profile.layout.terms(from_hex(each.simhash for each in representatives))
        return cls(
            profile=profile,
            fingerprint=explainer.fingerprint(text),
            representatives=representatives,
            features=fingerprinter.features(text),
            # Simhashes may share a band.
            bands=list(dict.fromkeys(itertools.chain.from_iterable(terms))),
            is_cut=bool(fingerprinter.fingerprint([text]).are_cut[0]),
        )

    def for_programs(self) -> dict[str, Any]:
        """Return the description as JSON values."""
        return {
            "profile": self.profile.label,
            "fingerprint": self.fingerprint,
            "representatives": [each.model_dump() for each in self.representatives],
            "features": [
                {"word": each.word, "count": each.count, "weight": each.weight} for each in self.features
            ],
            "bands": self.bands,
            "cut": self.is_cut,
        }

    def print(self, screen: Console) -> None:
        """Print the description for people."""
        screen.print(f"profile      {self.profile.label}")
        if self.fingerprint is None:
            screen.print(
                "fingerprint  none: the text has no words, or fewer than "
                f"{self.profile.min_letters} letters and digits"
            )
            return
        screen.print(f"fingerprint  {self.fingerprint}")
        for each in self.representatives:
            shown = f"{each.kind:<12} {each.simhash}  {each.passage or ''}"
            # Printed as it is: no emoji for `:cat:`, and a final backslash stays.
            screen.print(shown.rstrip(), markup=False, emoji=False)
        screen.print(f"bands        {' '.join(self.bands)}  ({self.profile.layout.name})")
        if self.features:
            screen.print(_feature_table(self.features))


def _feature_table(features: list[Feature]) -> Table:
    table = Table(box=None, pad_edge=False, title="features", title_justify="left")
    table.add_column("weight", justify="right")
    table.add_column("count", justify="right")
    table.add_column("word")
    for feature in features:
        table.add_row(f"{feature.weight:.3f}", str(feature.count), escape(feature.word))
    return table
