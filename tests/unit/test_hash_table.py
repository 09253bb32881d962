"""The hash table against a dictionary."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from esdedup.neighbours.hash_table import _MIXER, HashTable

# Few, so that they come again; or anything.
_keys = st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1))
_values = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
_INVERSE = pow(int(_MIXER), -1, 2**64)


def _uint64(keys: list[int]) -> np.ndarray:
    return np.array(keys, np.uint64)


@given(st.lists(st.dictionaries(_keys, _values, max_size=60), max_size=8), st.lists(_keys))
# Keys whose own slot is the last one: what does not fit there goes on at the first.
@example([{(2**64 - 1 - each) * _INVERSE % 2**64: (each, 7) for each in range(9)}], [0])
def test_it_holds_what_a_dictionary_holds(
    batches: list[dict[int, tuple[int, int]]], others: list[int]
) -> None:
    table, model = HashTable(2), dict[int, tuple[int, int]]()
    for batch in batches:
        table.put(_uint64(list(batch)), np.array(list(batch.values()), np.uint32).reshape(-1, 2))
        model |= batch
        keys = [*model, *others]
        found, values = table.get(_uint64(keys))
        assert found.tolist() == [key in model for key in keys]
        assert values.tolist() == [list(model.get(key, (0, 0))) for key in keys]
        assert len(table) == len(model)


def test_many_keys_take_the_memory_that_is_promised() -> None:
    table, random = HashTable(2), np.random.default_rng(1)
    keys = random.permutation(np.arange(200_000, dtype=np.uint64) << np.uint64(20))
    for some in np.split(keys, 100):
        table.put(some, np.stack((some, some >> np.uint64(8)), axis=1).astype(np.uint32))
        assert table.size_bytes <= max(1_000, 28 * len(table))
    found, values = table.get(keys)
    assert found.all()
    assert (values[:, 0] == keys.astype(np.uint32)).all()
    assert not table.get(keys + np.uint64(1))[0].any()
