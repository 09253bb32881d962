"""Fingerprints in, roots out, for feeders that fingerprint articles in their own processes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from esdedup.fingerprint.profile import Profile
from esdedup.forest.model import Assignment
from esdedup.ingest.assign_format import (
    ANSWER_TYPE,
    ASK_TYPE,
    MOST_PAGES,
    PAGE,
    PASSAGE,
    AnswerHeader,
    AskHeader,
    Malformed,
    answer_bytes,
    outcome_dtype,
    read_ask,
    read_ask_header,
)
from esdedup.ingest.fingerprinted_pages import Bools, FingerprintedPages, PassagesOfPages
from esdedup.neighbours.relation import relation_of
from esdedup.serving.problems import described
from esdedup.sidecar.bounds import hold_unpacked
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_paths import RELAYED, is_of_peer
from esdedup.sidecar.refusals import RequestRefused
from esdedup.sidecar.request_body import unpacked

_ERRORS = described(
    s400="The body is not in the format.",
    s401="The token of the sidecar is missing.",
    s409="The forest or the profile is not the sidecar's, which `detail` names.",
    s413="The body is too large.",
    s415="The body has another content type.",
    s429="Too many articles wait; send the same again after the seconds in `Retry-After`.",
    s502="Elasticsearch does not answer.",
    s503="The process that owns the forest is not reached; `detail` names it. Send the same again after the "
    "seconds in `Retry-After`.",
)


class TakesFingerprints(Protocol):
    """A forest, as `Feeding` has it."""

    async def forecast(self, pages: PassagesOfPages) -> Bools:
        """Return which passages would be left out of pages if they came now."""

    async def assign_fingerprinted(self, pages: FingerprintedPages) -> Sequence[Assignment | Bools]:
        """Return their assignments, or what is to be left out of those that are passed over."""


class Relay(Protocol):
    """As `Forests.relay`."""

    def __call__(
        self, name: str, body: bytes, *, content_type: str, own: Callable[[], Awaitable[bytes]]
    ) -> Awaitable[bytes]:
        """Return what the owner of a forest answers."""


def assign_routes(
    forests: Mapping[str, TakesFingerprints],
    *,
    profile: Profile,
    metrics: Metrics,
    max_body_bytes: int,
    relay: Relay | None = None,
) -> APIRouter:
    """Return the routes: for feeders, and for sidecars that pass on what feeders have sent them.

    Args:
        forests: By their names.
        profile: Of all of them.
        metrics: Counts articles.
        max_body_bytes: Of a body that is unpacked.
        relay: Passes on what is for the owner of another forest; None: only this process decides.
    """
    router = APIRouter(tags=["assign"], responses=_ERRORS)

    def read(body: bytes) -> tuple[str, PassagesOfPages | FingerprintedPages]:
        try:
            header = read_ask_header(body)
            given = header.profile
            if header.forest not in forests:
                raise RequestRefused(
                    409,
                    "no_such_forest",
                    f"this sidecar has no forest {header.forest!r:.300}, but {' and '.join(forests)}: name "
                    "one of these",
                )
            if given != profile.label:
                raise RequestRefused(
                    409,
                    "profile_mismatch",
                    f"the fingerprints are of the profile {given:.100}, and those of this forest of "
                    f"{profile.label}: use that one",
                )
            return header.forest, read_ask(body, profile=profile)
        except Malformed as error:
            raise RequestRefused(400, "invalid_request", f"the body is not {ASK_TYPE}: {error}") from error

    async def assigned(forest: TakesFingerprints, pages: PassagesOfPages | FingerprintedPages) -> bytes:
        if isinstance(pages, PassagesOfPages):
            decided: list[Assignment | None] = [None] * len(pages)
            omitted = await forest.forecast(pages)
        else:
            outcomes = await forest.assign_fingerprinted(pages)
            decided = [each if isinstance(each, Assignment) else None for each in outcomes]
            omitted = _omitted(pages, outcomes)
        for each in decided:
            if each is not None:
                metrics.article(each.kind.value)
        return await asyncio.to_thread(answer_bytes, decided, omitted, profile=profile)

    @router.post(RELAYED, include_in_schema=False)
    @router.post(
        "/v1/assign",
        summary="Give fingerprints their roots",
        response_class=Response,
        description=_description(profile),
        responses={200: {"description": "What was decided.", "content": {ANSWER_TYPE: {"schema": _BINARY}}}},
        openapi_extra={"requestBody": {"required": True, "content": {ASK_TYPE: {"schema": _BINARY}}}},
    )
    async def assign_pages(request: Request) -> Response:
        if _media_type(request) != ASK_TYPE:
            raise RequestRefused(415, "unsupported_media_type", f"send Content-Type: {ASK_TYPE}")
        try:
            packed = await request.body()
        except ClientDisconnect:
            # Nobody reads it.
            return Response(status_code=400)
        body = unpacked(
            packed,
            encoding=request.headers.get("content-encoding"),
            most_bytes=max_body_bytes,
            hold=lambda size: hold_unpacked(request.scope, size),
        )
        # Large ones take long. Meanwhile others have their turn.
        name, pages = await asyncio.to_thread(read, body)

        async def own() -> bytes:
            return await assigned(forests[name], pages)

        if relay is None or is_of_peer(request.method, request.url.path):
            # What was passed on is passed on by nobody else, so that it goes in no circles.
            answer = await own()
        else:
            answer = await relay(name, body, content_type=ASK_TYPE, own=own)
        return Response(answer, media_type=ANSWER_TYPE)

    return router


_BINARY = {"type": "string", "format": "binary"}


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _omitted(pages: FingerprintedPages, outcomes: Sequence[Assignment | Bools]) -> Bools:
    """Return what is to be left out of pages: as it was, but for those that were passed over."""
    omitted = pages.omitted.copy()
    texts = pages.of.passages.texts
    for at, each in enumerate(outcomes):
        if not isinstance(each, Assignment):
            first, last = np.searchsorted(texts, (at, at + 1))
            omitted[first:last] = each
    return omitted


def _description(profile: Profile) -> str:
    return f"""
What is left out of a fingerprint as boilerplate depends on the pages before it, so it takes two
requests. The first has the passages of each page, and asks which are left out. The second has the
fingerprints as well, and says what was left out of them. Where that is wrong by now, because other
pages have come meanwhile, the page is not assigned, and nothing is learned from it; the answer says
what is right: send these pages again, with other fingerprints. All pages may be sent again: they get
the same roots.

Both bodies have the length of a header as a number of 4 bytes, the header as JSON, and then columns.
All numbers are little-endian. Of the request:

- the header: `{"`, `".join(AskHeader.model_fields)}`: the name of the forest, the label of the
  profile, how many pages there are (at most {MOST_PAGES:,}) and passages, whether fingerprints follow, and
  for each page its site and the id of its article, or null
- for each page {_fields(PAGE)}; the id is 0 for a page without letters and digits
- for each passage, page by page, {_fields(PASSAGE)}; of `flags`, 1 says that it ends as sentences do, 2
  that it has figures, 4 that it was left out of the fingerprint
- with `is_fingerprinted`, for each page a byte, 1 if it has a fingerprint; then for each page its
  signature of {profile.signature_dtype.itemsize} bytes (zeros if it has none)

Of the answer:

- the header: `{"`, `".join(AnswerHeader.model_fields)}`
- for each page {_fields(outcome_dtype(relation_of(profile)))}; `kind` is 0 for a page that is not
  assigned, 1 for a new root, 2 for one that has joined a cluster, 3 for one that was known, 4 for one
  without a fingerprint
- for each passage a bit, the highest of a byte first: whether it is left out

`Dedup(client, sidecar=…)` in Python does all this."""


def _fields(dtype: np.dtype[Any]) -> str:
    """Return in words what a record consists of."""
    return ", ".join(f"`{name}` ({dtype[name].itemsize} bytes)" for name in dtype.names or ())
