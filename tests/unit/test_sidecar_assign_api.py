"""Feeders that fingerprint in their own processes: the endpoint, and the roots that it gives."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
from esdedup.ingest.arrive import Arrived, arrive
from esdedup.ingest.assign_format import ANSWER_TYPE, ASK_TYPE, ask_bytes, read_answer
from esdedup.ingest.fingerprinted_pages import Bools, FingerprintedPages, PassagesOfPages

from esdedup import VERIFIED, Profile
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.forest import Aging, Assignment, Forest
from esdedup.forest.memory import MemoryStore
from esdedup.forest.model import DEFAULT_RETENTION
from esdedup.neighbours.relation import relation_of
from esdedup.sidecar.app import create_app
from esdedup.sidecar.assign_api import Relay, assign_routes
from esdedup.sidecar.intake import Overloaded
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_endpoints import handle_errors
from esdedup.sidecar.own_paths import RELAYED
from esdedup.sidecar.upstream import Upstream
from esdedup.text.passages import Passages
from tests.support import asgi
from tests.support.learned import contents
from tests.support.pages import pages

TEXTS = [page["text"] for page in pages(300)]
FINGERPRINTER = Fingerprinter(VERIFIED)
MOST_BYTES = 300_000


class Sidecar:
    """Decides in memory."""

    def __init__(self, *, profile: Profile = VERIFIED, relay: Relay | None = None) -> None:
        store = MemoryStore(aging=Aging.of(retention=DEFAULT_RETENTION), relation=relation_of(profile))
        self.profile, self.store, self.metrics = profile, store, Metrics()
        self.forest = Forest(store)
        self.failure: Exception | None = None
        routes = assign_routes(
            {"own": self},
            profile=profile,
            metrics=self.metrics,
            max_body_bytes=MOST_BYTES,
            relay=relay,
        )
        self.app = create_app(Upstream(["http://localhost:9200"]), own=[routes])
        handle_errors(self.app, self.metrics)

    async def forecast(self, given: PassagesOfPages) -> Bools:
        return self.forest.forecast(given.passages, given.pages)

    async def assign_fingerprinted(self, given: FingerprintedPages) -> Sequence[Assignment | Bools]:
        if self.failure is not None:
            raise self.failure
        return self.arrive([], others=given).others

    def arrive(self, texts: list[str], others: FingerprintedPages | None = None) -> Arrived:
        return arrive(
            texts,
            times_ms=[0] * len(texts),
            fingerprinter=Fingerprinter(self.profile),
            forest=self.forest,
            now_ms=0,
            others=others,
        )

    def post(self, body: bytes, *, path: str = "/v1/assign", **headers: str) -> asgi.Response:
        named = {"content-type": ASK_TYPE} | {key.replace("_", "-"): value for key, value in headers.items()}
        request = asgi.Request(path=path, method="POST", headers=named, body=body)
        return asyncio.run(asgi.send(self.app, request))

    def decide(
        self, asked: PassagesOfPages, fingerprinted: FingerprintedPages | None
    ) -> tuple[list[Assignment | None], Bools]:
        answer = self.post(ask_bytes(asked, fingerprinted, forest="own", profile=self.profile))
        assert (answer.status, answer.headers["content-type"]) == (200, ANSWER_TYPE)
        return read_answer(answer.content, profile=self.profile)


def asked_of(texts: list[str]) -> PassagesOfPages:
    parsed = list(FINGERPRINTER.parsed(texts))
    return PassagesOfPages(
        passages=Passages.joined([each.passages for each in parsed]),
        pages=np.concatenate([each.pages for each in parsed]),
        sites=[None] * len(texts),
        articles=[None] * len(texts),
    )


def fingerprinted(texts: list[str], omitted: Bools) -> FingerprintedPages:
    found = FINGERPRINTER.fingerprints_of(list(FINGERPRINTER.parsed(texts)), omitted)
    return FingerprintedPages(
        of=asked_of(texts), omitted=omitted, signatures=found.signatures, exists=found.exists
    )


def test_the_roots_are_those_that_the_texts_get() -> None:
    sidecar, with_texts = Sidecar(), Sidecar()
    for start in range(0, len(TEXTS), 100):
        texts = TEXTS[start : start + 100]
        _, omitted = sidecar.decide(asked_of(texts), None)
        sent = fingerprinted(texts, omitted)
        decided, again = sidecar.decide(sent.of, sent)
        # A forecast holds if nobody else comes.
        assert np.array_equal(again, omitted)
        assert decided == with_texts.arrive(texts).decided.assignments
    assert omitted.any()
    assert contents(sidecar.store.boilerplate) == contents(with_texts.store.boilerplate)
    # What comes again is known by its page, whatever was left out of it.
    texts = TEXTS[:100]
    sent = fingerprinted(texts, np.zeros(len(asked_of(texts).passages.hashes), bool))
    decided, omitted = sidecar.decide(sent.of, sent)
    sent = fingerprinted(texts, omitted)
    decided, _ = sidecar.decide(sent.of, sent)
    roots = [each.root for each in with_texts.arrive(texts).decided.assignments]
    assert [each and each.root for each in decided] == roots
    assert contents(sidecar.store.boilerplate) == contents(with_texts.store.boilerplate)


def test_a_page_is_passed_over_of_which_something_else_is_left_out_by_now() -> None:
    sidecar, replay = Sidecar(), Sidecar()
    texts = TEXTS[200:]
    _, omitted = sidecar.decide(asked_of(texts), None)
    # Meanwhile, others teach.
    order = TEXTS[:200]
    roots = [each.root for each in sidecar.arrive(TEXTS[:200]).decided.assignments]
    rounds = 0
    while texts:
        sent = fingerprinted(texts, omitted)
        decided, right = sidecar.decide(sent.of, sent)
        order += [text for text, each in zip(texts, decided, strict=True) if each is not None]
        roots += [each.root for each in decided if each is not None]
        is_left = np.array([each is None for each in decided])
        texts = [text for text, each in zip(texts, decided, strict=True) if each is None]
        omitted = right[is_left[sent.of.passages.texts]]
        rounds += 1
    assert rounds == 2
    assert len(order) == len(TEXTS)
    # Nothing was learned from those that were passed over, and from none twice.
    assert [each.root for each in replay.arrive(order).decided.assignments] == roots
    assert contents(sidecar.store.boilerplate) == contents(replay.store.boilerplate)


def test_what_cannot_be_taken_is_told_as_a_problem() -> None:
    sidecar = Sidecar()
    body = ask_bytes(asked_of(TEXTS[:3]), None, forest="own", profile=VERIFIED)
    other = VERIFIED.with_changes(max_text_length=1_000)
    for wrong, status, kind, said in [
        (sidecar.post(body, content_type="application/json"), 415, "unsupported_media_type", ASK_TYPE),
        (sidecar.post(body[:-1]), 400, "invalid_request", "bytes follow the header"),
        (sidecar.post(b""), 400, "invalid_request", "no header"),
        (
            sidecar.post(ask_bytes(asked_of(TEXTS[:3]), None, forest="own", profile=other)),
            409,
            "profile_mismatch",
            "and those of this forest of verified-3: use that one",
        ),
        (
            sidecar.post(ask_bytes(asked_of(TEXTS[:3]), None, forest="other", profile=VERIFIED)),
            409,
            "no_such_forest",
            "this sidecar has no forest 'other', but own: name one",
        ),
        (sidecar.post(gzip.compress(bytes(2 * MOST_BYTES)), content_encoding="gzip"), 413, "", "unpacked"),
    ]:
        assert (wrong.status, wrong.headers["content-type"]) == (status, "application/problem+json")
        assert kind in wrong.json["type"]
        assert said in wrong.json["detail"]
    packed = sidecar.post(gzip.compress(body), content_encoding="gzip")
    decided, _ = read_answer(packed.content, profile=VERIFIED)
    assert decided == [None] * 3
    sidecar.failure = Overloaded("wait")
    sent = fingerprinted(TEXTS[:3], np.zeros(len(asked_of(TEXTS[:3]).passages.hashes), bool))
    full = sidecar.post(ask_bytes(sent.of, sent, forest="own", profile=VERIFIED))
    assert (full.status, full.headers["retry-after"]) == (429, "1")


def test_a_profile_that_keeps_boilerplate_needs_one_request() -> None:
    profile = VERIFIED.with_changes(keep_boilerplate=True)
    sidecar, with_texts = Sidecar(profile=profile), Sidecar(profile=profile)
    sent = fingerprinted(TEXTS, np.zeros(len(asked_of(TEXTS).passages.hashes), bool))
    decided, _ = sidecar.decide(sent.of, sent)
    assert decided == with_texts.arrive(TEXTS).decided.assignments


def test_the_description_names_every_field() -> None:
    described = Sidecar().app.openapi()["paths"]["/v1/assign"]["post"]
    assert ASK_TYPE in described["requestBody"]["content"]
    assert ANSWER_TYPE in described["responses"]["200"]["content"]
    for field in ("`is_fingerprinted`", "`hash` (8 bytes)", "`signature` (144 bytes)", "144 bytes (zeros"):
        assert field in described["description"], field


def test_what_another_sidecar_has_passed_on_is_passed_on_by_nobody_else() -> None:
    given = []

    async def relay(
        name: str, body: bytes, *, content_type: str, own: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        given.append((name, body, content_type))
        return b"of the owner of " + name.encode()

    sidecar = Sidecar(relay=relay)
    body = ask_bytes(asked_of(TEXTS[:2]), None, forest="own", profile=VERIFIED)
    assert sidecar.post(gzip.compress(body), content_encoding="gzip").content == b"of the owner of own"
    assert given == [("own", body, ASK_TYPE)]
    decided, _ = read_answer(sidecar.post(body, path=RELAYED).content, profile=VERIFIED)
    assert decided == [None, None]
    assert len(given) == 1
    # What cannot be read is passed on to nobody.
    assert sidecar.post(b"x").status == 400
    assert len(given) == 1
