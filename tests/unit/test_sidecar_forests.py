"""Articles are decided by whoever owns their forest, and other sidecars are asked for it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigned import Assigned
from hypothesis import given
from hypothesis import strategies as st

from esdedup.errors import EsdedupError, ForestBusy, ForestMissing, ForestOwner
from esdedup.forest import Assignment, Kind
from esdedup.sidecar import forests as module
from esdedup.sidecar import peers as peers_module
from esdedup.sidecar.decided_form import ToDecide, read_decisions, written_articles, written_decisions
from esdedup.sidecar.forest_choice import ForestChoice
from esdedup.sidecar.forests import Forests
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.owner import NotOwner, OwnerFailed, Ownership
from esdedup.sidecar.peers import Peers
from esdedup.sidecar.problems import problem_of
from esdedup.sidecar.sharing import wanted
from tests.support.wire import Connection, ScriptedServer, answer, closed_port

TOKEN = "a-token-of-all-sidecars"
Decide = Callable[[str, str, Sequence[ArticleAction]], Awaitable[list[Assigned]]]
BYTES_64 = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ARTICLES = st.builds(
    ArticleAction,
    action=st.builds(dict, _id=TEXTS.filter(bool)) | st.just({}),
    name=TEXTS,
    text=TEXTS,
    dated_ms=st.none() | BYTES_64,
    site=st.none() | TEXTS,
)


def article(text: str) -> ArticleAction:
    return ArticleAction(action={"_id": text, "_source": {"text": text}}, name=text, text=text, dated_ms=None)


def assigned(each: ArticleAction, **changes: Any) -> Assigned:
    assignment = Assignment(Kind.JOINED, f"n-{each.text}", f"r-{each.text}", 3, 4, b"\0\xff")
    values: dict[str, Any] = {"fingerprint": {"bands": ["a"]}, "letters": 2, "profile": "p-1"} | changes
    return Assigned(each, assignment, is_backfill=False, **values)


class Others:
    """The other sidecars, which answer as a test says."""

    def __init__(self, decide: Decide | None = None, *, releases: bool = True) -> None:
        self._decide = decide
        self._releases = releases
        self.asked: list[tuple[str, str, int]] = []

    async def decide(self, url: str, forest: str, articles: Sequence[ArticleAction]) -> list[Assigned]:
        assert self._decide is not None
        return await self._decide(url, forest, articles)

    async def relay(self, url: str, forest: str, body: bytes, *, content_type: str) -> bytes:
        return f"{url} {forest} {content_type} ".encode() + body

    async def release(self, url: str, forest: str, *, owned: int) -> bool:
        self.asked.append((url, forest, owned))
        return self._releases


class Forest:
    """Owned by this process, or by one at an address."""

    def __init__(self, url: str | None) -> None:
        self.url = url
        self.given: list[str] = []

    @property
    def ownership(self) -> Ownership:
        if self.url is None:
            return Ownership(is_owner=True)
        since = datetime(2026, 1, 1, tzinfo=UTC)
        owner = ForestOwner(host="h", pid=1, since=since, released=False, url=self.url)
        return Ownership(reason=ForestBusy("owned", forest="f", owner=owner))

    async def assign(self, articles: Sequence[ArticleAction]) -> Sequence[Assigned]:
        if self.url is not None and articles:
            raise NotOwner(self.ownership.reason)
        self.given += [each.text for each in articles]
        return [assigned(each) for each in articles]

    async def hand_over(self) -> bool:
        self.url = "http://asker"
        return True

    async def take(self) -> None:
        self.url = None


def one(forest: Forest, decide: Decide) -> Forests:
    return Forests({"f": forest}, choice=ForestChoice("f"), peers=Others(decide))


async def refuses(_url: str, _forest: str, _articles: Sequence[ArticleAction]) -> list[Assigned]:
    raise OwnerFailed("away", kind="owner_refuses")


def test_the_owner_is_asked_unless_a_standby_refuses() -> None:
    async def answers(url: str, forest: str, articles: Sequence[ArticleAction]) -> list[Assigned]:
        assert (url, forest) == ("http://a", "f")
        return [assigned(each, letters=7) for each in articles]

    articles = [article("one")]
    (found,) = asyncio.run(one(Forest("http://a"), answers).assign(articles))
    assert (found.letters, found.article) == (7, articles[0])
    (found,) = asyncio.run(one(Forest(None), refuses).assign(articles))
    assert found.letters == 2
    with pytest.raises(NotOwner, match="owned"):
        asyncio.run(Forests({"f": Forest("http://a")}, choice=ForestChoice("f"), peers=None).assign(articles))
    with pytest.raises(OwnerFailed, match="away"):
        asyncio.run(one(Forest("http://a"), refuses).assign(articles))


def test_fingerprints_are_passed_on_to_the_owner() -> None:
    async def own() -> bytes:
        return b"own"

    def relayed(url: str | None, peers: Others | None) -> bytes:
        forests = Forests({"f": Forest(url)}, choice=ForestChoice("f"), peers=peers)
        return asyncio.run(forests.relay("f", b"body", content_type="a/b", own=own))

    assert relayed("http://a", Others()) == b"http://a f a/b body"
    assert relayed(None, Others()) == relayed("http://a", None) == b"own"


def test_nobody_waits_for_an_owner_that_is_none_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.01)
    ended = []

    async def run() -> Sequence[Assigned]:
        forest = Forest("http://a")

        async def hangs(url: str, _: str, articles: Sequence[ArticleAction]) -> list[Assigned]:
            # First another takes the forest, then this process.
            forest.url = {"http://a": "http://b", "http://b": None}[url]
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(url)
            raise AssertionError(articles)

        async with asyncio.timeout(5):
            return await one(forest, hangs).assign([article("one")])

    assert [each.assignment.root for each in asyncio.run(run())] == ["r-one"]
    assert ended == ["http://a", "http://b"]


def test_callers_wait_while_a_forest_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if its owner says that it is none any more, before this process has seen who is."""
    monkeypatch.setattr(module, "_FIRST_PAUSE_S", 0.001)
    forest, asked = Forest("http://a"), []

    async def hands_over(url: str, _: str, articles: Sequence[ArticleAction]) -> list[Assigned]:
        asked.append(url)
        if len(asked) == 4:
            return [assigned(each) for each in articles]
        kinds = ("owner_unreachable", "not_owner", "shutting_down")
        raise OwnerFailed("hands it over", kind=kinds[len(asked) % 3])

    async def run(forests: Forests) -> Sequence[Assigned]:
        async with asyncio.timeout(5):
            return await forests.assign([article("one")])

    assert len(asyncio.run(run(one(forest, hands_over)))) == 1
    assert asked == ["http://a"] * 4
    monkeypatch.setattr(module, "_NEXT_OWNER_S", 0.01)
    asked[:] = ["http://a"] * 10
    with pytest.raises(OwnerFailed, match="hands it over"):
        asyncio.run(run(one(forest, hands_over)))


LANGUAGES = ForestChoice("f", "meta.lang", ("zh", "en"))
UPDATE = {"_op_type": "update"}


@pytest.mark.parametrize(
    ("action", "forest"),
    [
        ({"_source": {"meta": {"lang": "zh"}}}, "f-zh"),
        ({"_source": {"meta.lang": "en"}}, "f-en"),
        # What is not declared, no string, or missing.
        ({"_source": {"meta": {"lang": "ZH"}}}, "f"),
        ({"_source": {"meta": {"lang": "../../x"}}}, "f"),
        ({"_source": {"meta": {"lang": ["zh"]}}}, "f"),
        ({"_source": {"meta": {"lang": None}}}, "f"),
        ({"_source": {"meta": "zh"}}, "f"),
        ({"_source": {}}, "f"),
        (UPDATE | {"_source": {"doc": {"meta.lang": "zh"}, "upsert": {"meta.lang": "en"}}}, "f-zh"),
        (UPDATE | {"_source": {"doc": {"text": "x"}, "upsert": {"meta.lang": "en"}}}, "f-en"),
        (UPDATE | {"_source": {"doc": {"text": "x"}, "meta.lang": "en"}}, "f"),
    ],
)
def test_an_article_belongs_to_the_forest_of_its_value(action: dict[str, Any], forest: str) -> None:
    given = ArticleAction(action=action, name="a", text="x", dated_ms=None)
    assert LANGUAGES.of(given) == forest
    assert ForestChoice("f").of(given) == "f"
    assert forest in LANGUAGES.names


def of_language(text: str, language: str | None) -> ArticleAction:
    source = {"meta": {"lang": language}}
    return ArticleAction(action={"_source": source}, name=text, text=text, dated_ms=None)


def test_articles_of_several_forests_come_back_in_their_order() -> None:
    async def answers(_url: str, forest: str, articles: Sequence[ArticleAction]) -> list[Assigned]:
        # Later than those that are decided here.
        await asyncio.sleep(0.01)
        return [assigned(each, profile=forest) for each in articles]

    forests = {"f": Forest(None), "f-zh": Forest("http://a"), "f-en": Forest("http://b")}
    given = [
        of_language(text, {"z": "zh", "e": "en", "o": "other", "n": None}[text[0]])
        for text in ("z1", "o1", "e1", "z2", "n1", "e2", "z3")
    ]
    found = asyncio.run(Forests(forests, choice=LANGUAGES, peers=Others(answers)).assign(given))
    assert [each.assignment.root for each in found] == [f"r-{each.text}" for each in given]
    assert [each.article for each in found] == given
    assert [each.profile for each in found] == ["f-zh", "p-1", "f-en", "f-zh", "p-1", "f-en", "f-zh"]
    assert forests["f"].given == ["o1", "n1"]
    with pytest.raises(OwnerFailed, match="away"):
        asyncio.run(Forests(forests, choice=LANGUAGES, peers=Others(refuses)).assign(given))
    # The others were awaited.
    assert forests["f"].given == ["o1", "n1"] * 2


def shares(*, me: str = "me", **forests: str) -> dict[str, Ownership]:
    """Forests by name: `me` owns one, another sidecar, or `nobody`."""
    return {
        name: Ownership() if owner == "nobody" else Forest(None if owner == me else owner).ownership
        for name, owner in forests.items()
    }


@pytest.mark.parametrize(
    ("owned", "expected"),
    [
        (shares(a="me"), None),
        (shares(a="x"), None),
        (shares(a="x", b="me"), None),
        (shares(a="x", b="x"), ("x", "b", 0)),
        (shares(a="x", b="x", c="me"), None),
        (shares(a="x", b="x", c="x", d="me"), ("x", "c", 1)),
        (shares(a="x", b="y", c="y"), ("y", "c", 0)),
        (shares(a="x", b="x", c="nobody"), None),
    ],
)
def test_who_owns_two_fewer_asks_for_one(
    owned: dict[str, Ownership], expected: tuple[str, str, int] | None
) -> None:
    assert wanted(owned) == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_shares_become_equal_and_stay_so(owners: list[int]) -> None:
    """Of four sidecars, of which those that own nothing are there as well."""
    owned = {f"f{at:02}": str(owner) for at, owner in enumerate(owners)}
    for _ in range(len(owned) + 1):
        asked = [(me, found) for me in "0123" if (found := wanted(shares(me=me, **owned)))]
        if not asked:
            break
        me, found = asked[0]
        assert owned[found.forest] == found.url
        owned[found.forest] = me
    counts = [[*owned.values()].count(each) for each in "0123"]
    assert max(counts) - min(counts) <= 1


def test_a_sidecar_asks_for_its_share_and_gives_others_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SHARE_EVERY_S", 0.001)

    async def run() -> None:
        others = Others()
        owned = {"f": Forest("http://a"), "f-zh": Forest("http://a"), "f-en": Forest("http://a")}
        async with Forests(owned, choice=LANGUAGES, peers=others) as forests, asyncio.timeout(5):
            while not any(each.is_owner for each in forests.ownerships.values()):
                await asyncio.sleep(0.001)
            # Now one and two.
            await asyncio.sleep(0.02)
            assert others.asked == [("http://a", "f-zh", 0)]
            # It has no more than its share.
            assert not await forests.release("f-zh", asker_owns=0)
            assert not await forests.release("f", asker_owns=0)
            owned["f"].url = owned["f-en"].url = None
            assert not await forests.release("f", asker_owns=2)
            assert await forests.release("f", asker_owns=1)
            assert not owned["f"].ownership.is_owner

    asyncio.run(run())


def test_for_others_only_the_own_forest_decides() -> None:
    """So nothing goes in circles, whatever addresses are advertised."""
    for articles in ([article("one")], []):
        with pytest.raises(NotOwner):
            asyncio.run(one(Forest("http://a"), refuses).decide("f", articles))
    with pytest.raises(ForestMissing, match="no forest 'g'"):
        asyncio.run(one(Forest(None), refuses).decide("g", [article("one")]))


@given(st.lists(ARTICLES, max_size=3), BYTES_64, st.booleans(), st.sampled_from(["", "src/tokens.rs:7"]))
def test_what_sidecars_write_each_other_is_read_as_it_was(
    articles: list[ArticleAction], number: int, is_cut: bool, fault: str
) -> None:
    there = ToDecide.model_validate_json(written_articles("f", articles))
    assert there.forest == "f"
    given = [each.article() for each in there.articles]
    assert given == [
        ArticleAction(
            action={} if each.id is None else {"_id": each.id},
            name=each.name,
            text=each.text,
            dated_ms=each.dated_ms,
            site=each.site,
        )
        for each in articles
    ]
    assignment = Assignment(Kind.WITHOUT_FINGERPRINT, None, None, number, number, b"")
    decided = [
        Assigned(
            ArticleAction(**vars(each) | {"is_cut": is_cut}),
            assignment,
            {"page": "x"},
            number,
            "p",
            False,
            fault,
        )
        for each in given
    ]
    back = read_decisions(written_decisions(decided), articles)
    assert [each.article.is_cut for each in back] == [is_cut] * len(articles)
    assert [each.article.action for each in back] == [each.action for each in articles]
    assert [vars(each) | {"article": None} for each in back] == [
        vars(each) | {"article": None} for each in decided
    ]


async def ask(url: str, *texts: str, **settings: Any) -> list[Assigned]:
    limits = {"connect_timeout_s": 5.0, "max_connections": 5, "max_body_bytes": 10**6}
    async with Peers(token=TOKEN, ca_certs=None, **limits | settings) as peers:
        return await peers.decide(url, "f", [article(each) for each in texts])


def answered(status: int, body: Any, *, headers: str = "") -> bytes:
    content = json.dumps(body).encode()
    return f"HTTP/1.1 {status} X\r\ncontent-length: {len(content)}\r\n{headers}\r\n".encode() + content


def problem(kind: str) -> dict[str, str]:
    return {"type": f"urn:esdedup:problem:{kind}", "detail": "what it says"}


@pytest.mark.parametrize(
    ("script", "status", "kind", "detail"),
    [
        (answer(answered(429, problem("queue_full"))), 429, "queue_full", "what it says"),
        (answer(answered(503, problem("not_owner"))), 503, "not_owner", "what it says"),
        (answer(answered(502, problem("elasticsearch_error"))), 502, "elasticsearch_error", "what it says"),
        # A fault of the sidecars, not of the caller.
        (answer(answered(401, problem("token"))), 503, "owner_refuses", "the same token"),
        (answer(answered(421, problem("host"))), 503, "owner_refuses", "what it says"),
        (answer(answered(502, "nonsense")), 503, "owner_refuses", "status 502"),
        (answer(answered(302, {}, headers="location: /\r\n")), 503, "owner_refuses", "status 302"),
        (answer(answered(200, {})), 503, "owner_refuses", "something else than roots"),
        (answer(answered(200, {"decided": []})), 503, "owner_refuses", "something else than roots"),
        (answer(answered(200, {"decided": 1})[:-3]), 503, "owner_unreachable", "does not answer"),
        (lambda _: None, 503, "owner_unreachable", "does not answer"),
    ],
)
def test_what_an_owner_refuses_or_says_otherwise_is_told(
    script: Callable[[Connection], None], status: int, kind: str, detail: str
) -> None:
    metrics = Metrics()
    with ScriptedServer(script).running() as server, pytest.raises(EsdedupError, match=detail) as failed:
        asyncio.run(ask(server.url, "one", metrics=metrics))
    said = problem_of(failed.value)
    assert (said.status, said.kind, said.retry_after_s) == (status, kind, 1)
    assert server.url in said.detail


def test_an_owner_that_is_not_there_is_told() -> None:
    metrics = Metrics()
    with pytest.raises(OwnerFailed, match="does not answer: Cannot connect"):
        asyncio.run(ask(f"http://127.0.0.1:{closed_port()}", "one", metrics=metrics))
    count = metrics.registry.get_sample_value
    assert count("esdedup_forwarded_requests_total", {"status": "none"}) == 1


@pytest.mark.parametrize(
    ("status", "refused"), [(200, None), (429, None), (401, "the same token"), (421, "--advertise")]
)
def test_an_owner_is_reached_if_it_lets_this_process_in(status: int, refused: str | None) -> None:
    """Its health would tell only that it is there, not that it takes articles of ours."""
    metrics = Metrics()

    async def check(url: str) -> None:
        bounds: dict[str, int] = {"connect_timeout_s": 5, "max_connections": 1, "max_body_bytes": 1_000}
        async with Peers(token=TOKEN, ca_certs=None, metrics=metrics, **bounds) as peers:
            await peers.check(url, "f")

    def script(connection: Connection) -> None:
        head = connection.head()
        assert head.startswith(b"POST /v1/decide ")
        assert f"X-Esdedup-Token: {TOKEN}".encode() in head
        assert json.loads(connection.until(b"}")) == {"forest": "f", "articles": []}
        connection.send(answered(status, {"decided": []}))

    with ScriptedServer(script).running() as server:
        if refused is None:
            asyncio.run(check(server.url))
        else:
            with pytest.raises(OwnerFailed, match=refused):
                asyncio.run(check(server.url))
    # It had no articles.
    assert not any(
        sample.value
        for family in metrics.registry.collect()
        if family.name == "esdedup_forwarded_requests"
        for sample in family.samples
        if sample.name.endswith("_total")
    )


def test_owners_are_asked_in_parts_with_the_token_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_module, "_MOST_ARTICLES", 2)
    heads: list[bytes] = []
    bodies: list[Any] = []

    def script(connection: Connection) -> None:
        heads.append(connection.head())
        bodies.append(json.loads(connection.until(b"]}")))
        given = ToDecide.model_validate(bodies[-1]).articles
        content = written_decisions([assigned(each.article()) for each in given])
        head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(content)
        connection.send(head + content)

    with ScriptedServer(script).running() as server:
        found = asyncio.run(ask(server.url, "a", "b", "c", "d" * 5, metrics=Metrics(), max_body_bytes=30))
    assert [each.assignment.root for each in found] == ["r-a", "r-b", "r-c", "r-ddddd"]
    assert [[each["text"] for each in body["articles"]] for body in bodies] == [["a", "b"], ["c"], ["ddddd"]]
    assert all(f"X-Esdedup-Token: {TOKEN}".encode() in head for head in heads)
    assert not any(b"authorization" in head.lower() for head in heads)
