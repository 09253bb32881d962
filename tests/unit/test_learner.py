"""The learner behind the boundary to the crate: what Python may give it, and threads."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from esdedup._core import Changes, Learner, Overrides


def learner() -> Learner:
    return Learner(
        block_pages=2, end_passages=9, least_article_bits=7, most_foreign_pages=9, period_records=99
    )


def number(value: int) -> bytes:
    return value.to_bytes(8, "little")


PAGE = (number(1 << 40), number(60), b"\x01", b"\x00", number(0))


def test_columns_that_do_not_fit_are_refused() -> None:
    for at in range(5):
        columns = tuple(each * 2 if place == at else each for place, each in enumerate(PAGE))
        with pytest.raises(ValueError, match="differ in length"):
            learner().filter(columns, number(1), [None], [None], Overrides([]))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="differ in length"):
        learner().filter(PAGE, number(1), [], [None], Overrides([]))
    with pytest.raises(ValueError, match="no step has begun"):
        learner().changes()
    with pytest.raises(ValueError, match="differ in length"):
        Changes.of_columns([b""] * 14)


def test_names_may_have_lone_surrogates() -> None:
    overrides = Overrides([(1 << 40, "\ud800", True)])
    for site, is_left_out in (("\ud800", b"\x01"), ("\ud801", b"\x00"), (None, b"\x00")):
        assert learner().filter(PAGE, number(1), [site], ["\udfff"], overrides) == is_left_out


def test_threads_wait_for_each_other() -> None:
    shared = learner()

    def see(page: int) -> bytes:
        assert shared.size_bytes >= 0
        return shared.filter(PAGE, number(page), [None], [None], Overrides([]))

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(see, range(1, 401))) == {b"\x00"}
    assert shared.last_page == 400
