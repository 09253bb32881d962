"""Nodes and pages in packed form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.elastic.forest.documents import agrees, documents, search_body, stored_of
from esdedup.elastic.forest.stored import Packing, Stored, StoredNode, StoredPage
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from esdedup.forest.model import NO_TIME
from esdedup.neighbours.relation import relation_of

PROFILES = (CLASSIC, VERIFIED)


@st.composite
def profiles_and_stored(draw: st.DrawFn) -> tuple[Profile, Stored]:
    profile = draw(st.sampled_from(PROFILES))
    relation = relation_of(profile)
    node_ids = st.binary(min_size=relation.id_bytes, max_size=relation.id_bytes).map(bytes.hex)
    pages = st.integers(1, 2**64 - 1).map("{:016x}".format)
    times = st.just(NO_TIME) | st.integers(-(2**62), 2**62)
    size = relation.dtype.itemsize
    nodes = st.builds(
        StoredNode,
        id=node_ids,
        root=node_ids,
        signature=st.binary(min_size=size, max_size=size),
        seq=st.integers(0, 2**63 - 1),
        made_ms=times,
        seen_ms=times,
        page=st.just("") | pages,
        page_seen_ms=times,
    )
    lone = st.builds(StoredPage, page=pages, node=st.none() | node_ids, seen_ms=times)
    return profile, draw(nodes | lone)


@given(profiles_and_stored())
def test_what_is_packed_is_read_again(drawn: tuple[Profile, Stored]) -> None:
    profile, stored = drawn
    packing = Packing(relation_of(profile))
    packed = packing.pack(stored)
    assert packing.unpack(packed) == stored
    # In base 64; cut short, it is nothing.
    assert packing.unpack(packed[:-4]) != stored


@given(profiles_and_stored())
def test_a_document_agrees_with_its_own_node_and_page_only(drawn: tuple[Profile, Stored]) -> None:
    profile, stored = drawn
    relation = relation_of(profile)
    ((name, body),) = documents([stored], relation)
    hit = {"_id": name, "fields": {field: [value] for field, value in body.items() if field != "keys"}}
    assert stored_of([hit], relation) == [stored]
    assert agrees(hit, stored)
    assert not agrees(hit, stored._replace(seen_ms=12_345 if stored.seen_ms != 12_345 else 12_346))
    assert stored_of([hit | {"_id": "another"}], relation) == []


@pytest.mark.parametrize("values", [[], ["AA=="], ["", ""]])
def test_a_document_without_a_readable_value_is_no_node(values: list[str]) -> None:
    assert stored_of([{"fields": {"packed": values}}], relation_of(VERIFIED)) == []


def test_a_search_asks_for_one_value_of_each_document() -> None:
    """Eight fields, or a document's id, take the server ten times as long."""
    body = search_body({"match_all": {}}, size=10)
    assert body["docvalue_fields"] == ["packed"]
    assert body["stored_fields"] == "_none_"
    assert "_source" not in body
