"""Statuses of items are counted, however the answer is cut."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from esdedup.sidecar.bulk import ItemStatuses

ANSWER = orjson.dumps(
    {
        "errors": True,
        "took": 200,
        "items": [
            {"index": {"_id": "1", "status": 201}},
            {"index": {"_id": '"status":404', "status": 400, "error": {"reason": 'x "status":500 y'}}},
            {"create": {"_id": "2", "status": 409}},
            {"delete": {"_id": "3", "status": 409}},
        ],
    },
)


@given(st.lists(st.integers(1, 40), min_size=1))
def test_each_item_is_counted_once(sizes: list[int]) -> None:
    statuses, start = ItemStatuses(), 0
    while start < len(ANSWER):
        for size in sizes:
            statuses.read(ANSWER[start : start + size])
            start += size
    assert statuses.counts == {201: 1, 400: 1, 409: 2}
    pretty = ItemStatuses()
    pretty.read(orjson.dumps(orjson.loads(ANSWER), option=orjson.OPT_INDENT_2))
    assert pretty.counts == statuses.counts
