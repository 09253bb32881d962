"""`esdedup fingerprint`: shows the fingerprint of a text, with or without a forest."""

import functools
import itertools

import pydantic

from esdedup.boilerplate.boilerplate import untaught_filters
from esdedup.boilerplate.overrides import without_placeholders
from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.files import read_plain_text
from esdedup.cli.messages import say_cut
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.lookup import learned_copy
from esdedup.errors import SettingError
from esdedup.fingerprint.bands import ARTICLES
from esdedup.fingerprint.by_words import Feature
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.simhash import signed_sums
from esdedup.ingest.records import STANDARD_INPUT
from esdedup.neighbours.explainer import Explainer
from esdedup.neighbours.explanation import Representative
from esdedup.neighbours.relation import relation_of
from esdedup.reading.scope import Scope
from esdedup.sites import site_name
from esdedup.text.left_out import LeftOut
from esdedup.text.weights import WEIGHT_SCALE


@command("fingerprint", example="echo 'A text of some length.' | esdedup fingerprint")
def fingerprint(
    *,
    index: str | None = None,
    site: str | None = None,
    json: options.Json = False,
    fingerprinting: options.Fingerprinting,
    forest: options.Forest,
    server: options.Server,
) -> None:
    """Show the fingerprint of a text on standard input, its representatives, and the boilerplate left out.

    Two texts are compared if they have a minhash in common, or if two of their simhashes differ in at most
    three bits (or --max-distance-bits); such simhashes share a band. Without --index, no boilerplate has been
    learned, as for the first article of `esdedup cluster`.

    Options:
        index: Index of articles, whose forest's learned boilerplate is left out.
        site: The site of the text, as a name or an address; the site's boilerplate is left out.
    """
    if index is None and forest != options.Forest():
        raise SettingError("--forest requires --index: without it, no forest is read")
    profile = fingerprinting.read_profile()
    overrides = fingerprinting.overrides()
    filter_on = untaught_filters(overrides)
    if index is not None:
        with server.connect() as client:
            execute(client, Scope().fields_of(index))
            learned = execute(client, learned_copy(forest.forest_of(client, index), profile))
            filter_on = functools.partial(learned.filter_on, overrides=overrides)
    without = functools.partial(without_placeholders, overrides)
    explainer = Explainer(profile, filter_on=filter_on, without=without)
    name = None if site is None else site_name(site)
    described = _described(read_plain_text(STANDARD_INPUT), name, explainer)
    if described.cut:
        say_cut("standard input")
    output.print_answer(described, functools.partial(_print_description, profile.min_letters), json=json)


class _Description(pydantic.BaseModel):
    """A text's fingerprint, and the data that it is computed from."""

    profile: str
    # None if the text has no fingerprint; the lists are then empty.
    fingerprint: str | None
    representatives: list[Representative]
    features: list[Feature]
    # The sum of the weights for each bit, the highest bit first; its sign is the fingerprint's bit.
    sums: list[float]
    # The bands stored with an article of this text, and the bands searched to find near articles.
    bands: list[str]
    asked_bands: list[str]
    # The boilerplate left out of the text; None if the profile keeps boilerplate.
    left_out: LeftOut | None
    # Whether the text was truncated for its fingerprint.
    cut: bool


def _described(text: str, site: str | None, explainer: Explainer) -> _Description:
    profile, signature = explainer.profile, explainer.signature(text, site)
    relation = relation_of(profile)
    stored = [] if signature is None else relation.terms(signature.tobytes(), ARTICLES, are_indexed=False)
    features = explainer.features(text, site)
    weighed = ((each.word, round(each.weight * WEIGHT_SCALE)) for each in features)
    return _Description(
        profile=profile.label,
        fingerprint=None if signature is None else relation.ids(signature)[0],
        representatives=explainer.representatives(text, site),
        features=features,
        sums=[each / WEIGHT_SCALE for each in signed_sums(weighed, token_hash=profile.token_hash.of_bytes)]
        if features
        else [],
        # Several simhashes may share a band; list it once.
        bands=list(dict.fromkeys(itertools.chain(*stored))),
        asked_bands=[] if signature is None else relation.search_terms(signature, ARTICLES),
        left_out=explainer.left_out(text, site),
        cut=bool(Fingerprinter(profile).fingerprint([text]).are_cut[0]),
    )


def _print_description(min_letters: int, found: _Description) -> None:
    output.show(f"profile      {found.profile}")
    for line in [] if found.left_out is None else output.left_out_lines(found.left_out):
        output.show(f"left out     {line}", markup=False)
    if found.fingerprint is None:
        output.show(
            "fingerprint  none: what remains of the text has no words, or fewer than "
            f"{min_letters} letters and digits"
        )
        return
    output.show(f"fingerprint  {found.fingerprint}")
    for each in found.representatives:
        shown = f"{each.kind:<12} {each.simhash}  {each.passage or ''}"
        # Without markup, `:cat:` does not become an emoji, and a final backslash is printed.
        output.show(shown.rstrip(), markup=False)
    output.show(f"bands        {' '.join(found.bands)}")
    if found.features:
        rows = [(f"{each.weight:.3f}", each.count, each.word) for each in found.features]
        output.print_table("features", ("weight", "count", "word"), rows, numbers=(0, 1))
        output.show(f"sums         {' '.join(f'{each:g}' for each in found.sums)}")
