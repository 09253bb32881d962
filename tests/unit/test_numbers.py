"""Numbers that are given out again."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from esdedup.neighbours.numbers import Numbers


@given(st.lists(st.tuples(st.integers(0, 20), st.sets(st.integers(0, 60)))))
def test_no_number_is_given_out_twice(steps: list[tuple[int, set[int]]]) -> None:
    numbers, taken, most = Numbers(), set[int](), 0
    for count, given_back in steps:
        new = numbers.take(count).tolist()
        assert len(set(new)) == count
        assert not taken & set(new)
        taken |= set(new)
        most = max(most, len(taken))
        assert (len(numbers), numbers.end) == (len(taken), most)
        numbers.give_back(np.array(sorted(given_back & taken), np.int64))
        taken -= given_back


def test_they_begin_in_order() -> None:
    numbers = Numbers()
    assert [*numbers.take(3), *numbers.take(2)] == [0, 1, 2, 3, 4]
