"""What travels between a feeder and a sidecar: whatever is sent comes back, or is refused."""

import dataclasses
import json
import struct

import numpy as np
import pytest
from esdedup.ingest.arrive import arrive
from esdedup.ingest.assign_format import (
    Malformed,
    answer_bytes,
    ask_bytes,
    read_answer,
    read_ask,
    read_ask_header,
)
from esdedup.ingest.fingerprinted_pages import FingerprintedPages, PassagesOfPages
from hypothesis import given, settings
from hypothesis import strategies as st

from esdedup import CLASSIC, VERIFIED, Profile
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.forest import Aging, Assignment, Forest, Kind
from esdedup.forest.memory import MemoryStore
from esdedup.forest.model import DEFAULT_RETENTION
from esdedup.neighbours.relation import relation_of
from esdedup.text.passages import Passages

PROFILES = [VERIFIED, CLASSIC]
numbers = st.integers(1, 2**64 - 1)
pages_of_passages = st.lists(
    st.tuples(
        numbers,
        st.lists(st.tuples(numbers, st.integers(0, 2**31 - 1), *[st.booleans()] * 3), max_size=4),
        st.none() | st.sampled_from(["a.example", "bücher.example"]),
        st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        st.booleans(),
    ),
    max_size=5,
)


def pages_of(drawn: list, profile: Profile, filling: bytes) -> FingerprintedPages:  # type: ignore[type-arg]
    flat = [passage for page in drawn for passage in page[1]]
    hashes, letters, prose, figures, omitted = zip(*flat, strict=True) if flat else [()] * 5
    exists = np.array([page[4] for page in drawn], bool)
    size = profile.signature_dtype.itemsize * len(drawn)
    signatures = np.frombuffer((filling * (size // len(filling) + 1))[:size], profile.signature_dtype).copy()
    signatures[~exists] = np.zeros(1, signatures.dtype)
    if signatures.dtype.names:
        signatures["indexed"] = 0
    return FingerprintedPages(
        of=PassagesOfPages(
            passages=Passages(
                hashes=np.array(hashes, np.uint64),
                letters=np.array(letters, np.int64),
                are_prose=np.array(prose, bool),
                have_figures=np.array(figures, bool),
                texts=np.repeat(np.arange(len(drawn)), [len(page[1]) for page in drawn]),
                text_count=len(drawn),
            ),
            pages=np.array([page[0] for page in drawn], np.uint64),
            sites=[page[2] for page in drawn],
            articles=[page[3] for page in drawn],
        ),
        omitted=np.array(omitted, bool),
        signatures=signatures,
        exists=exists,
    )


def assert_same(one: PassagesOfPages, other: PassagesOfPages) -> None:
    for name in ("hashes", "letters", "are_prose", "have_figures", "texts"):
        assert np.array_equal(getattr(one.passages, name), getattr(other.passages, name)), name
    assert one.passages.text_count == other.passages.text_count
    assert np.array_equal(one.pages, other.pages)
    assert (one.sites, one.articles) == (other.sites, other.articles)


@pytest.mark.parametrize("profile", PROFILES, ids=str)
@settings(max_examples=40)
@given(pages_of_passages, st.binary(min_size=1, max_size=200))
def test_what_is_sent_is_read(profile: Profile, drawn: list, filling: bytes) -> None:  # type: ignore[type-arg]
    given_pages = pages_of(drawn, profile, filling)
    asked = read_ask(ask_bytes(given_pages.of, None, forest="f", profile=profile), profile=profile)
    assert isinstance(asked, PassagesOfPages)
    assert_same(asked, given_pages.of)
    content = ask_bytes(given_pages.of, given_pages, forest="f", profile=profile)
    assert read_ask_header(content).profile == profile.label
    found = read_ask(content, profile=profile)
    assert isinstance(found, FingerprintedPages)
    assert_same(found.of, given_pages.of)
    for name in ("omitted", "signatures", "exists"):
        assert np.array_equal(getattr(found, name), getattr(given_pages, name)), name


@pytest.mark.parametrize("profile", PROFILES, ids=str)
@given(
    st.lists(st.none() | st.tuples(st.sampled_from(list(Kind)), st.integers(1, 2**62)), max_size=6),
    st.lists(st.booleans(), max_size=20),
)
def test_what_is_answered_is_read(
    profile: Profile,
    drawn: list[tuple[Kind, int] | None],
    bits: list[bool],
) -> None:
    relation = relation_of(profile)
    digits, size = 2 * relation.id_bytes, relation.dtype.itemsize
    decided = [
        None
        if each is None
        else Assignment(
            kind=each[0],
            node=None if each[0] is Kind.WITHOUT_FINGERPRINT else f"{each[1]:0{digits}x}",
            root=None if each[0] is Kind.WITHOUT_FINGERPRINT else "a0" * relation.id_bytes,
            seq=each[1],
            time_ms=-each[1],
            signature=bytes(size) if each[0] is Kind.WITHOUT_FINGERPRINT else b"\x07" * size,
        )
        for each in drawn
    ]
    content = answer_bytes(decided, np.array(bits, bool), profile=profile)
    found, omitted = read_answer(content, profile=profile)
    assert (found, omitted.tolist()) == (decided, bits)


@settings(max_examples=150, deadline=None)
@given(pages_of_passages, st.binary(min_size=1, max_size=9), st.data())
def test_what_is_changed_on_the_way_is_refused_or_decided(
    drawn: list,  # type: ignore[type-arg]
    filling: bytes,
    data: st.DataObject,
) -> None:
    """Whatever can be read can be given roots: nobody can break a forest with what he sends."""
    pages = pages_of(drawn, VERIFIED, filling)
    content = bytearray(ask_bytes(pages.of, pages, forest="f", profile=VERIFIED))
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    changed = bytes(content[: data.draw(st.none() | st.integers(0, len(content)))])
    try:
        read_ask_header(changed)
        found = read_ask(changed, profile=VERIFIED)
    except Malformed:
        return
    store = MemoryStore(aging=Aging.of(retention=DEFAULT_RETENTION), relation=relation_of(VERIFIED))
    if isinstance(found, PassagesOfPages):
        Forest(store).forecast(found.passages, found.pages, sites=found.sites, articles=found.articles)
        return
    for _ in range(2):
        arrived = arrive(
            [],
            times_ms=[],
            fingerprinter=Fingerprinter(VERIFIED),
            forest=Forest(store),
            now_ms=0,
            others=found,
        )
        assert len(arrived.others) == len(found)


def test_a_message_that_lies_is_refused() -> None:
    pages = pages_of([(7, [(1, 2, True, False, False)], None, "a", True)], VERIFIED, b"x")
    content = ask_bytes(pages.of, pages, forest="f", profile=VERIFIED)
    (length,) = struct.unpack_from("<I", content)
    header, rest = json.loads(content[4 : 4 + length]), content[4 + length :]

    def message(after: bytes = rest, **changed: object) -> bytes:
        own = json.dumps(header | changed).encode()
        return struct.pack("<I", len(own)) + own + after

    assert read_ask(message(), profile=VERIFIED)
    for wrong, said in [
        (b"", "0 bytes, and no header"),
        (struct.pack("<I", 2**32 - 1) + b"{}", "4,294,967,295 bytes, which are not all there"),
        (message(articles=[]), "as many sites and articles as pages"),
        (message(sites=["\ud800"]), "its header cannot be read"),
        (message(pages=5_001), "less than or equal to 5000"),
        (message(passages=2**70), "bytes follow the header"),
        (message(more=1), "more: Extra inputs"),
        (message(rest + b"x"), "bytes follow the header, which speaks of"),
        (message(rest[:8] + struct.pack("<I", 2) + rest[12:]), "the pages have 2 passages"),
        (message(bytes(8) + rest[8:]), "has the id 0"),
        (message(rest[:24] + b"\xff" + rest[25:]), "unknown flag"),
        (message(rest[:25] + b"\x02" + rest[26:]), "has a fingerprint"),
    ]:
        with pytest.raises(Malformed, match=said):
            read_ask(wrong, profile=VERIFIED)
    answer = answer_bytes([None], np.zeros(9, bool), profile=CLASSIC)
    with pytest.raises(Malformed, match="of the profile classic-2"):
        read_answer(answer, profile=VERIFIED)
    # A later version may have more kinds.
    kind = len(answer) - 2 - dataclasses.replace(CLASSIC).signature_dtype.itemsize - 2 * 8 - 16 - 1
    with pytest.raises(Malformed, match="a kind that is not known"):
        read_answer(answer[:kind] + b"\x09" + answer[kind + 1 :], profile=CLASSIC)
