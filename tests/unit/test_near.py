import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.bands import FIVE_CHOOSE_TWO, FOUR_BLOCKS, TWO_LEVEL, Layout
from esdedup.forest.near import HammingIndex

values = st.lists(
    st.one_of(
        st.integers(0, 2**64 - 1),
        st.sets(st.integers(0, 63), max_size=4).map(lambda bits: sum(1 << b for b in bits)),
    ),
    max_size=40,
)


@pytest.mark.parametrize("layout", [FOUR_BLOCKS, FIVE_CHOOSE_TWO, TWO_LEVEL], ids=lambda layout: layout.name)
@given(added=st.lists(values, max_size=6), asked=values)
def test_finds_what_exhaustive_search_finds(layout: Layout, added: list[list[int]], asked: list[int]) -> None:
    index = HammingIndex(layout=layout)
    for batch in added:
        index.add(np.array(batch, np.uint64))
    everything = [value for batch in added for value in batch]
    queries, rows = index.search(np.array(asked, np.uint64))
    found = list(zip(queries.tolist(), rows.tolist(), strict=True))
    assert found == [
        (query, row)
        for query, one in enumerate(asked)
        for row, other in enumerate(everything)
        if (one ^ other).bit_count() <= 3
    ]
    assert len(index) == len(everything)


def test_runs_stay_few() -> None:
    index = HammingIndex()
    for value in range(1000):
        index.add(np.array([value], np.uint64))
    assert len(index._runs) <= 10
