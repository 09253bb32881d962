"""`esdedup fingerprint`: shows the fingerprint of a text, with or without a forest."""

import dataclasses
import functools
import itertools
import re
from typing import Annotated

import pydantic
import typer

from esdedup.boilerplate.boilerplate import untaught_filters
from esdedup.boilerplate.overrides import without_placeholders
from esdedup.cli import options, output
from esdedup.cli.command import command
from esdedup.cli.files import read_plain_text
from esdedup.cli.messages import say_cut
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.lookup import learned_copy
from esdedup.errors import SettingError
from esdedup.fingerprint import MAX_KEYWORDS
from esdedup.fingerprint.bands import ARTICLES
from esdedup.fingerprint.by_words import Feature
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.simhash import signed_sums
from esdedup.ingest.records import STANDARD_INPUT
from esdedup.neighbours.explainer import Explainer
from esdedup.neighbours.explanation import Representative
from esdedup.neighbours.relation import relation_of
from esdedup.reading.scope import Scope
from esdedup.sites import site_name
from esdedup.text.left_out import LeftOut
from esdedup.text.segmenters import CustomSegmenter
from esdedup.text.weights import WEIGHT_SCALE, WordTable

# Options that `--word-weights` replaces.
_HOW_TO_CUT = {"segmenter", "dictionary", "weights", "stop_words", "keywords"}


@command("fingerprint", example="echo 'A text of some length.' | esdedup fingerprint")
def fingerprint(
    *,
    index: str | None = None,
    site: str | None = None,
    steps: bool = False,
    word_weights: Annotated[str | None, typer.Option(metavar="WORD=WEIGHT...")] = None,
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
        steps: Show how classic and keywords add up the simhash: each word's hash, bit by bit, and what the
            word adds to each bit.
        word_weights: The words of a text with their weights, such as "CSDN=4 博客=5", instead of a text on
            standard input, for the profiles classic and keywords.
    """
    if index is None and forest != options.Forest():
        raise SettingError("--forest requires --index: without it, no forest is read")
    profile = fingerprinting.read_profile()
    if profile.agreement is not None and (steps or word_weights is not None):
        raise SettingError(
            f"--steps and --word-weights apply to the profiles classic and keywords, not to {profile.name}"
        )
    text = None
    if word_weights is not None:
        if _HOW_TO_CUT & fingerprinting.given().keys():
            raise SettingError("--word-weights names all words: leave out the options about words")
        text, profile = _with_word_weights(profile, word_weights)
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
    text = read_plain_text(STANDARD_INPUT) if text is None else text
    described = _described(text, name, explainer, steps=steps)
    if described.cut:
        say_cut("standard input")
    output.print_answer(described, functools.partial(_print_description, profile.min_letters), json=json)


def _with_word_weights(profile: Profile, given: str) -> tuple[str, Profile]:
    """Return a text of the given words, and a profile that divides it into these words with their weights."""
    words, weights = list[str](), dict[str, float]()
    for each in given.split():
        word, _, weight = each.partition("=")
        if not word or not re.fullmatch(r"\d+(\.\d+)?", weight):
            raise SettingError(f"--word-weights: {each!r} is not a word with its weight, such as ferry=4")
        if weights.setdefault(word, float(weight)) != float(weight):
            raise SettingError(f"--word-weights: {word!r} occurs twice, with different weights")
        words.append(word)
    if not any(weights.values()):
        raise SettingError("--word-weights has no word with a weight above 0")
    changed = profile.with_changes(
        segmenter=CustomSegmenter("given words", str.split), weighting=WordTable(weights)
    )
    # All words count, although the text may not look like one sentence.
    return " ".join(words), dataclasses.replace(
        changed, representation="keywords", keyword_count=MAX_KEYWORDS, min_letters=1
    )


class _Description(pydantic.BaseModel):
    """A text's fingerprint, and the data that it is computed from."""

    profile: str
    # None if the text has no fingerprint; the lists are then empty.
    fingerprint: str | None
    representatives: list[Representative]
    features: list[Feature]
    # The sum of the weights for each bit, the highest bit first; its sign is the fingerprint's bit.
    sums: list[float]
    # The hash of each word in 64 bits, the highest bit first; None unless the steps were requested.
    hashes: dict[str, str] | None
    # The bands stored with an article of this text, and the bands searched to find near articles.
    bands: list[str]
    asked_bands: list[str]
    # The boilerplate left out of the text; None if the profile keeps boilerplate.
    left_out: LeftOut | None
    # Whether the text was truncated for its fingerprint.
    cut: bool


def _described(text: str, site: str | None, explainer: Explainer, *, steps: bool) -> _Description:
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
        hashes={each.word: f"{profile.token_hash.of_bytes(each.word.encode()):064b}" for each in features}
        if steps
        else None,
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
    if found.hashes:
        added = [
            (
                each.word,
                _numbers([each.weight if bit == "1" else -each.weight for bit in found.hashes[each.word]]),
            )
            for each in found.features
        ]
        output.print_table("each word's hash", ("word", "bits"), found.hashes.items(), numbers=())
        title = "what each word adds: its weight for a 1, minus its weight for a 0"
        output.print_table(title, ("word", "weights"), added, numbers=())
    if found.features:
        output.show(f"sums         {_numbers(found.sums)}")
    if found.hashes:
        output.show(f"signs        {int(found.fingerprint, 16):064b}")


def _numbers(values: list[float]) -> str:
    return " ".join(f"{each:g}" for each in values)
