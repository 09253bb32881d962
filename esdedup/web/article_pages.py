"""The pages of an article and of a comparison of two articles, and the comparison as JSON.

The page of an article shows its text, and the other articles of its story by time or by source.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse

from esdedup.errors import ArticleNotFound, EsdedupError, ServerUnavailable, SettingError
from esdedup.messages import translatable
from esdedup.neighbours.explanation import Explanation, Rule
from esdedup.reading.results import FullArticle, Result
from esdedup.reading.verdict import RULES, IndexedExplanation, Outcome, facts, verdict
from esdedup.web.api import ERRORS, NOT_FOUND, PREFIX, Id, InIndex, OptionalText
from esdedup.web.bar_charts import draw
from esdedup.web.context import Context, ContextDep
from esdedup.web.form import SubmittedForm
from esdedup.web.formats import bounded, cut
from esdedup.web.languages import Language, language_of
from esdedup.web.rendering import render
from esdedup.web.shown_text import MAX_TOKENS, shown_text

LONGEST_LISTED = 16_000
"""Maximum length of the query string in the link back to the list; most of it may be search terms."""
_VERSIONS_ON_A_PAGE = 20
_SOURCES_ON_A_PAGE = 24

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/article")
async def article_page(
    context: ContextDep,
    id: Annotated[str, Query(min_length=1)],  # noqa: A002
    index: str | None = None,
    view: Literal["oldest", "newest", "source"] = "oldest",
    page: Annotated[int, Query(ge=1)] = 1,
    other_sources: bool = False,
    listed: Annotated[str, Query(max_length=LONGEST_LISTED)] = "",
) -> HTMLResponse:
    """Show an article; `listed` is the query of the list to link back to."""
    article = await context.article(id, in_index=index)
    timeline = await context.reader.timeline(context.index, article.root or "")
    has_sources = await context.reader.source_field(context.index) is not None
    options: dict[str, Any] = {"in_index": article.index, "other_sources": other_sources, "page": page}
    if view == "source" and has_sources:
        sources = await context.reader.sources(context.index, article.id, size=_SOURCES_ON_A_PAGE, **options)
        versions, similar = None, sources.total
    else:
        options |= {"sort": "newest" if view == "newest" else "oldest", "size": _VERSIONS_ON_A_PAGE}
        versions = await context.reader.versions(context.index, article.id, **options)
        sources, similar = None, versions.total - (not other_sources)
    return render(
        "article.html",
        context,
        article=article,
        shown=await shown_text(context, article),
        similar=similar,
        timeline=timeline,
        drawing=draw(timeline, language_of(context)),
        versions=versions,
        sources=sources,
        story=sources or versions,
        has_sources=has_sources,
        view=view,
        other_sources=other_sources,
        form=SubmittedForm.of_address(listed),
        listed=listed,
        named=(await context.names()).get(article.root or ""),
        notice=await context.notice(),
    )


_MOST_PASSAGES = 6
_LONGEST_PASSAGE = 200
_REASONS = {
    Rule.NO_FINGERPRINT: translatable("One of them has too little text to be compared."),
    Rule.EQUAL: translatable("Their wording is the same."),
    Rule.NOTHING_IN_COMMON: translatable("They have no characteristic passage in common."),
    Rule.WITHIN_DISTANCE: translatable("They have a characteristic passage in common."),
    Rule.RESEMBLE: translatable("Their wording is similar enough."),
    Rule.EXCERPT: translatable("The shorter text is an excerpt of the longer text."),
    Rule.VERSION: translatable("The later text is a new version of the earlier text, at the same address."),
    Rule.PART: translatable("The shorter text is part of the longer text, but too small or edited too much."),
    Rule.UNLIKE: translatable(
        "They have a characteristic passage in common, but their wording is not similar enough."
    ),
    Rule.OTHER_FIGURES: translatable("Their wording is similar enough, but they differ in too many figures."),
    Rule.OTHER_NAMES: translatable("They are the same form, filled in with different names."),
}
"""The sentence that readers see for each rule."""

Place = Annotated[str, Query(min_length=1)]

api_router = APIRouter(prefix=PREFIX, responses=ERRORS)


class Fact(Result, frozen=True):
    """A measurement."""

    name: str
    value: str


class ExplanationInWords(Result, frozen=True):
    """Why two articles are in one cluster or not, in words."""

    is_one_cluster: bool
    verdict: str
    """The outcome for the two articles."""
    rule: str
    """The result of comparing the two texts alone."""
    shared: tuple[str, ...]
    """Sentences that both texts contain, exactly or nearly, ignoring punctuation and case."""
    more_shared: int
    """How many further sentences they share."""
    facts: tuple[Fact, ...]


class ExplanationForReaders(ExplanationInWords, frozen=True):
    """An explanation as the page shows it."""

    reason: str
    """The reason, in plain words if no other articles influenced it."""


@api_router.get("/explanation", summary="Why two articles are in one cluster or not", responses=NOT_FOUND)
async def explanation(
    response: Response,
    context: ContextDep,
    id: Id,  # noqa: A002
    other: Annotated[
        str, Query(min_length=1, description="The id of the other article.", examples=["en-17-4"])
    ],
    index: InIndex = None,
    other_index: Annotated[
        OptionalText, Query(description="The index to read the other article from.")
    ] = None,
) -> ExplanationInWords:
    """The explanation is in English or Chinese, as the header `Accept-Language` requests."""
    language = language_of(context)
    found = await context.reader.explain(context.index, id, other, in_index=index, other_in_index=other_index)
    response.headers.update({"Content-Language": language.code, "Vary": "Accept-Language, Cookie"})
    # The annotated model determines the fields of the response.
    return bounded(explained(found, language))


@router.get("/compare")
async def comparison_page(
    context: ContextDep,
    one: Place,
    other: Place,
    listed: Annotated[str, Query(max_length=LONGEST_LISTED)] = "",
) -> HTMLResponse:
    """Compare two articles, called A and B; `read_place` describes the values of both parameters."""
    first, second = await article_at(context, one), await article_at(context, other)
    is_one_article = (first.index, first.id) == (second.index, second.id)
    return render(
        "comparison.html",
        context,
        articles={"A": first, "B": second},
        is_one_article=is_one_article,
        shown=None if is_one_article else await shown_text(context, first, second),
        max_words=MAX_TOKENS,
        explained=None if is_one_article else await _explained(context, first, second),
        form=SubmittedForm.of_address(listed),
        listed=listed,
    )


async def article_at(context: Context, place: str) -> FullArticle:
    """Return the article that a form names; `read_place` parses the form's value."""
    index, article_id = read_place(place)
    if index is not None or article_id != place:
        try:
            return await context.article(article_id, in_index=index)
        except (ArticleNotFound, SettingError):
            # An id may contain slashes too, or be an address.
            pass
    return await context.article(place)


def read_place(text: str) -> tuple[str | None, str]:
    """Read the index (None if not named) and the id from ``INDEX/ID``, an id, or a page address."""
    path, _, query = text.strip().partition("?")
    if path.startswith(("http:", "https:", "/")) and path.endswith("/article"):
        parameters = dict(parse_qsl(query.partition("#")[0]))
        return parameters.get("index"), parameters.get("id", "")
    # The name of an index has no slash; an id may contain slashes.
    index, slash, article_id = text.partition("/")
    return (index, article_id) if slash else (None, text)


async def _explained(context: Context, one: FullArticle, other: FullArticle) -> ExplanationForReaders | str:
    """Explain two articles in words, or return the reason why that is impossible."""
    try:
        found = await context.reader.explain(
            context.index, one.id, other.id, in_index=one.index, other_in_index=other.index
        )
    except ServerUnavailable:
        # The error's message may contain addresses.
        raise
    except EsdedupError as error:
        return str(error)
    return explained(found, language_of(context))


def explained(found: IndexedExplanation, language: Language) -> ExplanationForReaders:
    """Put an explanation into words."""
    _, comparison = language.gettext, found.comparison
    # The distinct sentences of the first text that are near a sentence of the second.
    near = (comparison.one.representatives[pair.one].passage for pair in comparison.pairs)
    shared = list(dict.fromkeys(passage for passage in near if passage is not None))
    measured = facts(comparison, language.gettext, language.number, language.percent)
    found_facts = [*measured, *_boilerplate_facts(comparison, language)]
    return ExplanationForReaders(
        is_one_cluster=found.same_cluster,
        verdict=_("One story.") if found.same_cluster else _("Two stories."),
        reason=_reason(found, language),
        rule=_(RULES[comparison.rule]),
        shared=tuple(cut(passage, _LONGEST_PASSAGE) for passage in shared[:_MOST_PASSAGES]),
        more_shared=max(0, len(shared) - _MOST_PASSAGES),
        facts=tuple(Fact(name=name, value=value) for name, value in found_facts),
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


def _boilerplate_facts(comparison: Explanation, language: Language) -> Iterator[tuple[str, str]]:
    """Yield how much of both texts was left out as boilerplate, if any was."""
    _, percent = language.gettext, language.percent
    one, other = comparison.one, comparison.other
    if any(text.left_out and text.left_out.passages for text in (one, other)):
        for name, text in (("A", one), ("B", other)):
            left_out, words = text.left_out, _("nothing")
            if left_out is not None and left_out.passages:
                words = _(
                    "%(passages)s of %(of_passages)s passages, %(share)s of the text",
                    passages=language.number(left_out.passages),
                    of_passages=language.number(left_out.of_passages),
                    share=percent(left_out.letters / left_out.of_letters),
                )
            yield _("Left out of %(name)s as boilerplate", name=name), words
