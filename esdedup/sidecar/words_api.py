"""An endpoint that returns the words of a text and their weights, for programs that need the same words."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field

from esdedup.fingerprint.by_words import Feature
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import CLASSIC, KEYWORDS, Profile
from esdedup.fingerprint.simhash import to_hex
from esdedup.reading.results import Result
from esdedup.serial_thread import SerialThread
from esdedup.serving.problems import described
from esdedup.sidecar.bodies import JSON, read_object
from esdedup.sidecar.bulk_request import RequestRefused

_PROFILE = (
    "The profile whose words are returned. By default, the sidecar's own profile, or `keywords` if that is "
    "`verified`, which does not weigh words."
)
_TEXT = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "examples": ["The harbour council voted on Monday to …"]}},
}
_ERRORS = described(
    s400="The body is not a JSON object with a text.",
    s401="The token of the sidecar is missing.",
    s413="The body is too large.",
    s415="The content type or encoding of the body is not supported.",
)


class Words(Result, frozen=True):
    """The words of a text."""

    profile: str
    """The label of the profile."""
    fingerprint: Annotated[str | None, Field(examples=["17eb79a4c10a3319"])]
    """The simhash of the words; null if the text has too few letters and digits."""
    words: list[Feature]
    """The words that determine the simhash, heaviest first; each weight is that of all occurrences."""
    is_cut: bool
    """Whether only the beginning of the text was read."""


def words_routes(own: Profile, *, max_body_bytes: int) -> APIRouter:
    """Return the route; `own` is the sidecar's profile."""
    router = APIRouter(prefix="/v1", tags=["words"], responses=_ERRORS)
    # One text at a time, so that long texts do not delay the assignment of articles by several threads.
    thread = SerialThread("esdedup-words")
    profiles = {each.name: each for each in (CLASSIC, KEYWORDS, own) if each.agreement is None}
    usual = KEYWORDS.name if own.agreement is not None else own.name

    def words_of(text: str, profile: Profile) -> Words:
        fingerprinter = Fingerprinter(profile)
        found = fingerprinter.fingerprint([text]).checked()
        return Words(
            profile=profile.label,
            fingerprint=to_hex(found.signatures)[0] if found.exists[0] else None,
            words=fingerprinter.features(text),
            is_cut=bool(found.are_cut[0]),
        )

    @router.post(
        "/words",
        summary="Divide a text into weighted words",
        openapi_extra={"requestBody": {"required": True, "content": {JSON: {"schema": _TEXT}}}},
    )
    async def words(
        request: Request,
        profile: Annotated[Literal["classic", "keywords"] | None, Query(description=_PROFILE)] = None,
    ) -> Words:
        """The words are those of the profile's segmenter, with the profile's weights.

        Nothing is stored, and no boilerplate is left out. A standby answers too.
        """
        _, given = await read_object(request, most_bytes=max_body_bytes)
        text = given.get("text")
        if not isinstance(text, str):
            raise RequestRefused(400, "invalid_request", "the body has no 'text', or it is not a string")
        names = (given.keys() - {"text"}) | (request.query_params.keys() - {"profile"})
        if others := ", ".join(sorted(map(repr, names))):
            taken = "the body takes only 'text', and the address 'profile'"
            raise RequestRefused(400, "invalid_request", f"{others} would be ignored: {taken}")
        return await asyncio.wrap_future(thread.begin(words_of, text, profiles[profile or usual]))

    return router
