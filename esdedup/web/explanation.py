"""Why two articles are in one cluster or not, in words: for the page that compares them, and as JSON."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from esdedup.messages import translatable
from esdedup.neighbours.explanation import Explanation, Rule, Text
from esdedup.reading.results import Result, example
from esdedup.reading.verdict import RULES, IndexedExplanation, Outcome, verdict
from esdedup.web.api import ERRORS, NOT_FOUND, PREFIX, Id, InIndex
from esdedup.web.formats import bounded, cut
from esdedup.web.languages import Language
from esdedup.web.rendering import language_of
from esdedup.web.site import CurrentSite

_MOST_PASSAGES = 6
_LONGEST_PASSAGE = 200
_REASONS = {
    Rule.NO_FINGERPRINT: translatable("One of them has too little text to be compared."),
    Rule.EQUAL: translatable("Their wording is the same."),
    Rule.NOTHING_IN_COMMON: translatable("They have no characteristic passage in common."),
    Rule.WITHIN_DISTANCE: translatable("They have a characteristic passage in common."),
    Rule.RESEMBLE: translatable("Their wording is alike enough."),
    Rule.CONTAINED: translatable("The shorter one is contained in the longer one."),
    Rule.IN_THE_FIRST: translatable("B is no more than a part of A, and A came first."),
    Rule.UNLIKE: translatable(
        "They have a characteristic passage in common, but their wording is not alike enough."
    ),
}
"""What each rule means for readers, if it is what decided."""


class Fact(Result, frozen=True):
    """What was measured."""

    name: str
    value: str


class ExplanationInWords(Result, frozen=True):
    """Why two articles are in one cluster or not, in words for people."""

    model_config = example(
        is_one_cluster=True,
        verdict="Both are in one cluster: the second joined the first when it arrived.",
        rule="They share a sentence, and their whole texts agree.",
        shared=["the harbour council voted on monday to buy a second ferry"],
        more_shared=3,
        facts=[{"name": "Wording in common", "value": "98% by estimate, 97% counted"}],
    )

    is_one_cluster: bool
    verdict: str
    """What became of the two."""
    rule: str
    """What the comparison of the two alone says."""
    shared: tuple[str, ...]
    """Sentences that both have, or nearly, as they are compared: without punctuation and case."""
    more_shared: int
    """How many further ones there are."""
    facts: tuple[Fact, ...]


class ExplanationForReaders(ExplanationInWords, frozen=True):
    """The same, as the page shows it."""

    reason: str
    """Why, in plain words if the two alone decided it."""


router = APIRouter(prefix=PREFIX, responses=ERRORS)


@router.get("/explanation", summary="Why two articles are in one cluster or not", responses=NOT_FOUND)
async def explanation(
    request: Request,
    response: Response,
    site: CurrentSite,
    id: Id,  # noqa: A002
    other: Annotated[
        str, Query(min_length=1, description="The id of the other article.", examples=["en-17-4"])
    ],
    index: InIndex = None,
    other_index: InIndex = None,
) -> ExplanationInWords:
    """In the language that the header `Accept-Language` wishes for: English or Chinese."""
    language = language_of(request)
    found = await site.reader.explain(site.index, id, other, in_index=index, other_in_index=other_index)
    response.headers.update({"Content-Language": language.code, "Vary": "Accept-Language, Cookie"})
    words = explained(found, language)
    return bounded(
        ExplanationInWords(**{name: getattr(words, name) for name in ExplanationInWords.model_fields})
    )


def explained(found: IndexedExplanation, language: Language) -> ExplanationForReaders:
    """Put an explanation into words."""
    _, comparison = language.gettext, found.comparison
    shared = _shared(comparison)
    facts = [
        *_in_common(comparison, language),
        *_whole_texts(comparison, language),
        *_left_out(comparison, language),
    ]
    return ExplanationForReaders(
        is_one_cluster=found.same_cluster,
        verdict=_("One story.") if found.same_cluster else _("Two stories."),
        reason=_reason(found, language),
        rule=_(RULES[comparison.rule]),
        shared=tuple(cut(passage, _LONGEST_PASSAGE) for passage in shared[:_MOST_PASSAGES]),
        more_shared=max(0, len(shared) - _MOST_PASSAGES),
        facts=tuple(Fact(name=name, value=value) for name, value in facts),
    )


def _reason(found: IndexedExplanation, language: Language) -> str:
    match found.outcome:
        case Outcome.TOGETHER | Outcome.APART:
            return language.gettext(_REASONS[found.comparison.rule])
        case Outcome.ONE_NODE:
            return language.gettext(_REASONS[Rule.EQUAL])
        case Outcome.NO_FINGERPRINT:
            return language.gettext(_REASONS[Rule.NO_FINGERPRINT])
        case _:
            return verdict(found, language.gettext)


def _shared(comparison: Explanation) -> list[str]:
    """Return the sentences of the first text that have a near one in the second, each once."""
    representatives = comparison.one.representatives
    found = (representatives[pair.one].passage for pair in comparison.pairs)
    return list(dict.fromkeys(passage for passage in found if passage is not None))


def _in_common(comparison: Explanation, language: Language) -> list[tuple[str, str]]:
    """Return how many representatives are in common, or how far the nearest are apart."""
    if comparison.nearest is None:
        return []
    name = language.gettext("Representatives in common")
    if not comparison.pairs:
        bits = comparison.nearest.distance_bits
        nearest = language.gettext("none; the nearest differ in %(bits)s of 64 bits", bits=bits)
        return [(name, nearest)]
    ours, theirs = ({pair.one for pair in comparison.pairs}, {pair.other for pair in comparison.pairs})
    words = language.gettext(
        "%(ours)s of %(all_ours)s in A, %(theirs)s of %(all_theirs)s in B",
        ours=len(ours),
        all_ours=len(comparison.one.representatives),
        theirs=len(theirs),
        all_theirs=len(comparison.other.representatives),
    )
    return [(name, words)]


def _whole_texts(comparison: Explanation, language: Language) -> list[tuple[str, str]]:
    """Return how much the whole texts resemble each other, and what is needed for one cluster."""
    whole = comparison.whole_texts
    if whole is None:
        return []
    _, percent = language.gettext, language.percent
    resemblance = _("%(share)s by estimate", share=percent(whole.resemblance))
    if whole.exact_resemblance is not None:
        resemblance = _(
            "%(share)s by estimate, %(exact)s counted",
            share=percent(whole.resemblance),
            exact=percent(whole.exact_resemblance),
        )
    facts = [
        (_("Wording in common"), resemblance),
        (_("Needed at this length"), percent(whole.needed)),
    ]
    if whole.contained_counts:
        contained = _(
            "%(share)s of the smaller text is in the other; %(needed)s counts as contained",
            share=percent(whole.contained),
            needed=percent(whole.contained_needed),
        )
        facts.append((_("Contained"), contained))
    return facts


def _left_out(comparison: Explanation, language: Language) -> list[tuple[str, str]]:
    """Return how much of each text is left out as boilerplate, if any is."""

    def words(text: Text) -> str:
        left_out = text.left_out
        if left_out is None or not left_out.passages:
            return language.gettext("nothing")
        return language.gettext(
            "%(passages)s of %(of_passages)s passages, %(share)s of the text",
            passages=language.number(left_out.passages),
            of_passages=language.number(left_out.of_passages),
            share=language.percent(left_out.letters / left_out.of_letters),
        )

    texts = {"A": comparison.one, "B": comparison.other}
    if not any(text.left_out is not None and text.left_out.passages for text in texts.values()):
        return []
    return [
        (language.gettext("Left out of %(name)s as boilerplate", name=name), words(text))
        for name, text in texts.items()
    ]
