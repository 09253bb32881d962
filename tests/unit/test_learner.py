"""The learner of boilerplate: threads that share it, interruptions, and changes that no batch has made."""

import contextlib
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup._core import Changes as CoreChanges
from esdedup._core import Learner, Overrides
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes, bytes_of
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from esdedup.text.parsed import Passages
from tests.support.interrupts import Interrupted, Interrupts
from tests.support.learned import contents
from tests.support.pages import pages


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
        CoreChanges.of_columns([b""] * 14)


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


TEXTS = [page["text"] for page in pages(40)]
# In which blocks and periods end.
BATCHES = [
    next(Fingerprinter(VERIFIED).passages_and_pages(TEXTS[start : start + 10])) for start in range(0, 40, 10)
]


def is_learning(frame: FrameType) -> bool:
    module: str = frame.f_globals.get("__name__", "")
    return module.startswith("esdedup.boilerplate")


def learn(boilerplate: Boilerplate, batch: tuple[Passages, npt.NDArray[np.uint64]]) -> None:
    """Abandon a batch, and learn from it when it comes again."""
    for end in (boilerplate.undo, boilerplate.keep):
        boilerplate.begin()
        boilerplate.filter(*batch)
        end()


def taught(batches: list[tuple[Passages, npt.NDArray[np.uint64]]]) -> Boilerplate:
    boilerplate = Boilerplate(block_pages=5, period_records=40)
    for batch in batches:
        learn(boilerplate, batch)
    return boilerplate


def test_whenever_an_exception_comes_what_has_begun_can_be_undone() -> None:
    interrupts = Interrupts(is_learning)
    for count, batch in enumerate(BATCHES):
        before, expected = contents(taught(BATCHES[:count])), contents(taught(BATCHES[: count + 1]))
        is_learned = False
        while not is_learned:
            tried = taught(BATCHES[:count])
            with contextlib.suppress(Interrupted), interrupts.one():
                learn(tried, batch)
                is_learned = True
            assert not tried.is_torn
            is_open = tried.has_begun
            while tried.has_begun:
                tried.undo()
            assert contents(tried) in ([before] if is_open else [before, expected])
    assert taught(BATCHES).window.former_from > 1
    assert interrupts.functions >= {
        *("Boilerplate.begin", "Boilerplate.undo", "Boilerplate.keep", "Boilerplate.filter"),
    }


def test_a_copy_goes_on_after_a_look_up_that_failed() -> None:
    passages, ids = BATCHES[0]
    learned = LearnedCopy()
    expected = learned.filter(passages, ids).tolist()

    def fail(_: object) -> str:
        raise Interrupted

    with pytest.raises(Interrupted):
        learned.filter(passages, ids, sites=map(fail, [None]))
    assert not learned._boilerplate.has_begun
    assert learned.filter(passages, ids).tolist() == expected


Array = np.ndarray[Any, np.dtype[Any]]

MORE_TEXTS = [page["text"] for page in pages(60)]
FINGERPRINTER = Fingerprinter(VERIFIED)


def new_boilerplate() -> Boilerplate:
    return Boilerplate(block_pages=5, period_records=60)


def changes_of_batches(*, size: int) -> list[Changes]:
    """Return the changes of some batches of pages, in which blocks and a period end."""
    boilerplate, found = new_boilerplate(), []
    for start in range(0, len(MORE_TEXTS), size):
        boilerplate.begin()
        for passages, ids in FINGERPRINTER.passages_and_pages(MORE_TEXTS[start : start + size]):
            boilerplate.filter(passages, ids)
        found.append(boilerplate.changes())
        boilerplate.keep()
    assert boilerplate.window.former_from > 1
    assert len(boilerplate.learned()) > 5
    return found


CHANGES = changes_of_batches(size=9)


def at_last(value: int) -> Callable[[Array], Array]:
    def damage(array: Array) -> Array:
        changed = array.copy()
        changed.reshape(-1)[-1:] = value
        return changed

    return damage


DAMAGES: list[Callable[[Array], Array]] = [
    lambda array: array[:-1],
    lambda array: array[..., None],
    lambda array: np.concatenate((array, array)),
    lambda array: array.reshape(-1)[:0],
    lambda array: array.astype(np.float64),
    lambda array: array.astype(np.int8),
    lambda array: np.zeros((), array.dtype),
    lambda array: array.astype("U5"),
    *(at_last(value) for value in (0, 1, 10**6, 2**31 - 1)),
]


def archive_of(arrays: dict[str, Array]) -> bytes:
    """Return what forests of format 10 have."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


def test_what_forests_of_format_10_have_learned_is_read() -> None:
    for changes in CHANGES:
        assert Changes.of_bytes(archive_of(changes.arrays())).to_bytes() == changes.to_bytes()


@given(st.integers(0, len(CHANGES) - 1), st.sampled_from(DAMAGES), st.data())
def test_impossible_changes_are_refused_and_end_in_no_other_error(
    at: int, damage: Callable[[Array], Array], data: st.DataObject
) -> None:
    arrays = CHANGES[at].arrays()
    name = data.draw(st.sampled_from(sorted(arrays)))
    arrays[name] = damage(arrays[name])
    content = bytes_of([each.tobytes() for each in arrays.values()])
    if data.draw(st.booleans()):
        content = archive_of(arrays)
    boilerplate = new_boilerplate()
    with contextlib.suppress(ValueError):
        damaged = Changes.of_bytes(content)
        for number, changes in enumerate(CHANGES):
            boilerplate.apply(damaged if number == at else changes)
        # Where it is not noticed, that does no harm but to what was learned.
        filter_all(boilerplate)


def filter_all(boilerplate: Boilerplate) -> None:
    try:
        FINGERPRINTER.fingerprint(MORE_TEXTS, passage_filter=boilerplate.filter)
    except ValueError as error:
        raise AssertionError from error


@given(st.integers(0, len(CHANGES) - 1), st.data())
def test_bytes_that_were_changed_are_refused(at: int, data: st.DataObject) -> None:
    content = bytearray(CHANGES[at].to_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match="cannot be read"):
        Changes.of_bytes(bytes(content))


@pytest.mark.parametrize("missing", range(1, len(CHANGES) - 1))
def test_changes_after_a_gap_are_refused(missing: int) -> None:
    boilerplate = new_boilerplate()
    for changes in CHANGES[:missing]:
        boilerplate.apply(changes)
    with pytest.raises(ValueError, match="does not follow"):
        boilerplate.apply(CHANGES[missing + 1])
    with pytest.raises(ValueError, match="does not follow"):
        boilerplate.apply(CHANGES[missing - 1])


def test_passages_are_the_golden_vectors() -> None:
    """Documents name passages by these hashes: with a change, raise `FORMAT` (elastic/forest/meta.py)."""
    lines = (
        "Home",
        "Sign in",
        "It was said on 5 May 2026. \u201cNobody came.\u201d",
        "\u4e91\u9675\u5730\u94c1\u5f00\u901a\u3002 Read more...",
    )
    ((passages, _),) = FINGERPRINTER.passages_and_pages(["\n".join(lines)])
    found = list(
        zip(
            passages.hashes.tolist(),
            passages.alphanumerics.tolist(),
            passages.are_prose.tolist(),
            strict=True,
        )
    )
    assert found == [
        (0x09B581A3AAA61AAC, 4, False),
        (0x2C15B90A24455F65, 6, False),
        (0x2C3DA9573E3ABCCC, 19, True),
        (0x42D3052DD3132E81, 10, True),
        (0xD10663DDC3CE56D2, 6, True),
        (0xCE778DF4D553C8D0, 8, False),
    ]
