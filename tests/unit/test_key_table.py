"""A table of keys in arrays against a dict."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from esdedup.neighbours.key_table import KeyTable
from esdedup.text.hashing import mixed

# Few different low bits, so that keys collide.
keys = st.integers(0, 300).map(lambda number: (number % 7) | (number << 32))
batches = st.lists(
    st.dictionaries(keys, st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60), max_size=8
)


@given(batches)
def test_a_table_holds_what_a_dict_holds(puts: list[dict[int, tuple[int, int]]]) -> None:
    table, expected = KeyTable(columns=2), dict[int, tuple[int, int]]()
    for each in puts:
        before = [list(expected.get(key, (0, 0))) for key in each]
        keys = np.array(list(each), np.uint64)
        assert table.put(keys, np.array(list(each.values()), np.uint32).reshape(-1, 2)).tolist() == before
        expected |= each
        sought = [*expected, 17, 2**64 - 1]
        found, values = table.get(np.array(sought, np.uint64))
        assert found.tolist() == [key in expected for key in sought]
        assert values.tolist() == [list(expected.get(key, (0, 0))) for key in sought]
        assert len(table) == len(expected)


def test_a_table_grows() -> None:
    table, many = KeyTable(columns=1), mixed(np.arange(100_000, dtype=np.uint64))
    for some in np.array_split(many, 7):
        table.put(some, (some % np.uint64(1000) + np.uint64(1)).astype(np.uint32)[:, None])
    found, values = table.get(many)
    assert found.all()
    assert (values[:, 0] == many % np.uint64(1000) + np.uint64(1)).all()
    assert len(table) == len(many)
    assert table.size_bytes / len(many) < 12 / 0.3
