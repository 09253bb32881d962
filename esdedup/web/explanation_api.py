"""Why two articles are in one cluster or not, as JSON: the words of the page that compares them."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from esdedup.reading.results import Result, example
from esdedup.web.api import ERRORS, NOT_FOUND, PREFIX, Id, InIndex
from esdedup.web.bounds import bounded
from esdedup.web.explained import explained
from esdedup.web.rendering import language_of
from esdedup.web.state import CurrentSite


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
    words = explained(found, language)
    response.headers.update({"Content-Language": language.code, "Vary": "Accept-Language, Cookie"})
    return bounded(
        ExplanationInWords(
            is_one_cluster=words.is_one_cluster,
            verdict=words.verdict,
            rule=words.rule,
            shared=tuple(words.shared),
            more_shared=words.more_shared,
            facts=tuple(Fact(name=name, value=value) for name, value in words.facts),
        )
    )
