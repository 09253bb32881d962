"""Who owns a forest: what the next one is told, and what the one before cannot do any more."""

import os
import subprocess
import sys
import time

import pytest
from elasticsearch import Elasticsearch

from esdedup import Dedup, ForestBusy, ForestLost, IndexNotReady
from esdedup.elastic.forest.lease import LEASE_ID
from esdedup.elastic.forest.store import ElasticStore
from esdedup.fingerprint.profile import CLASSIC
from esdedup.forest import Forest
from tests.support.arrivals import AGING, NOW_MS, Arrival, as_batch
from tests.support.forests import TEXT
from tests.support.names import Names


def test_a_second_writer_is_refused_with_the_owner(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    with Dedup(es, forest=forest) as first:
        list(first.enrich([{"_id": "1", "text": TEXT}]))
        with pytest.raises(ForestBusy, match=r"process \d+ on .* has owned it since") as refused:
            list(Dedup(es, forest=forest).enrich([{"_id": "2", "text": TEXT}]))
        assert (refused.value.forest, refused.value.owner.pid) == (forest, os.getpid())
        # Reading never needs the forest.
        with pytest.raises(IndexNotReady):
            Dedup(es, forest=forest).list(index_name("none"))
    with Dedup(es, forest=forest) as second:
        assert len(list(second.enrich([{"_id": "2", "text": TEXT}]))) == 1


def test_a_process_that_died_gives_way_at_once(
    es: Elasticsearch, index_name: Names, elasticsearch_url: str
) -> None:
    forest = index_name("forest")
    program = f"""
import os, signal
from elasticsearch import Elasticsearch
from esdedup import Dedup
from esdedup.elastic.client import connect
dedup = Dedup(connect({elasticsearch_url!r}), forest={forest!r})
for action in dedup.enrich([{{"_id": "1", "text": {TEXT!r}}}]):
    print(action["_source"]["dedup"]["root"], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    died = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60
    )
    assert died.returncode == -9
    started = time.monotonic()
    with Dedup(es, forest=forest) as dedup:
        (again,) = dedup.enrich([{"_id": "2", "text": TEXT}])
    assert time.monotonic() - started < 15
    assert again["_source"]["dedup"]["root"] == died.stdout.strip()
    assert again["_source"]["dedup"]["seq"] == 2


def test_a_process_that_lost_the_forest_cannot_write(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    stale = ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, lookup="search")
    Forest(stale).assign(as_batch([Arrival("0" * 16, 0)]), now_ms=NOW_MS)
    # As if its time were over: another process may take the forest now.
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | {"renewed_s": 0.0}})
    owner = ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING)
    with pytest.raises(ForestLost, match="lost the forest"):
        Forest(stale).assign(as_batch([Arrival("f" * 16, 0)]), now_ms=NOW_MS)
    with pytest.raises(ForestLost):
        stale.begin()
    (known,) = Forest(owner).assign(as_batch([Arrival("0" * 16, 0)]), now_ms=NOW_MS)
    assert known.kind.value == "known"
    es.indices.refresh(index=forest)
    assert es.count(index=forest, query={"exists": {"field": "seq"}})["count"] == 1
    owner.close()
    stale.close()


def test_a_process_that_lost_the_forest_may_take_it_again(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    dedup = Dedup(es, forest=forest)
    list(dedup.enrich([{"_id": "1", "text": TEXT}]))
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | {"renewed_s": 0.0}})
    with Dedup(es, forest=forest) as other:
        list(other.enrich([{"_id": "2", "text": TEXT}]))
    with pytest.raises(ForestLost):
        list(dedup.enrich([{"_id": "3", "text": TEXT}]))
    (again,) = dedup.enrich([{"_id": "3", "text": TEXT}])
    assert again["_source"]["dedup"]["seq"] == 3
    dedup.close()
