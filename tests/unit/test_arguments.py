"""Arguments of a wrong type are refused by name, before anything is done with them."""

import inspect
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, cast

import numpy as np
import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup import CLASSIC, AsyncDedup, AsyncReader, Dedup, Maintenance, Reader, SettingError

ADDRESS = "http://127.0.0.1:9"
TAKERS: list[Callable[..., Any]] = [Dedup, AsyncDedup, Reader, AsyncReader, Maintenance]


class Other:
    """Nothing that anybody takes."""


@pytest.fixture
def client() -> Iterator[Elasticsearch]:
    with Elasticsearch(ADDRESS) as client:
        yield client


def client_for(taker: Callable[..., Any]) -> Any:
    return (AsyncElasticsearch if taker in {AsyncDedup, AsyncReader} else Elasticsearch)(ADDRESS)


@pytest.mark.parametrize(
    ("taker", "name"),
    [(taker, name) for taker in TAKERS for name in inspect.signature(taker).parameters],
)
def test_every_argument_of_a_wrong_type_is_named(taker: Callable[..., Any], name: str) -> None:
    usual: dict[str, Any] = {
        each.name: each.default
        for each in inspect.signature(taker).parameters.values()
        if each.default is not inspect.Parameter.empty
    }
    with pytest.raises(SettingError, match=f"^{name} is an Other; .* needs "):
        taker(**({"client": client_for(taker)} | usual | {name: Other()}))


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("retention", 7, "retention is an int; Dedup needs a timedelta or None"),
        ("profile", 3, "profile is an int; Dedup needs a Profile or a str"),
        ("batch_size", "100", "batch_size is a str; Dedup needs an int"),
        ("batch_size", True, "batch_size is a bool; Dedup needs an int"),
        ("batch_size", 1.5, "batch_size is a float; Dedup needs an int"),
        ("lookup", 1, "lookup is an int; Dedup needs 'memory' or 'search' or None"),
        ("sidecar", [1], "sidecar is a list; Dedup needs a str or a list of str or None"),
        ("sidecar_ca_certs", "ca.pem", "sidecar_ca_certs is a str; Dedup needs a Path or None"),
        ("lookup", "disk", "lookup is 'disk'; it must be 'memory' or 'search'"),
        ("profile", "modern", "no profile 'modern'; there are classic, keywords, verified"),
    ],
)
def test_what_is_needed_is_said(client: Elasticsearch, name: str, given: object, message: str) -> None:
    with pytest.raises(SettingError) as told:
        Dedup(client, **{name: cast("Any", given)})
    assert str(told.value) == message


def test_a_standard_profile_may_be_given_by_its_name(client: Elasticsearch) -> None:
    for taker in (Dedup, Reader):
        assert taker(client, profile="classic") is not None
    assert Dedup(client, profile="classic")._profile == CLASSIC


def test_numbers_of_other_types_are_taken(client: Elasticsearch) -> None:
    Dedup(client, batch_size=int(np.int64(10)), wait_s=1)
    Dedup(client, batch_size=cast("int", np.int64(10)), wait_s=float(np.float32(1)), retention=timedelta(1))


def test_methods_name_what_they_need(client: Elasticsearch) -> None:
    with pytest.raises(
        SettingError, match=r"retention is an int; Maintenance\.rebuild needs a timedelta or None"
    ):
        Maintenance(client).rebuild(["news"], retention=cast("timedelta", 7))
    with pytest.raises(SettingError, match="client is an Elasticsearch; AsyncReader needs an AsyncElast"):
        AsyncReader(client_for(AsyncReader)).with_client(cast("AsyncElasticsearch", client))
