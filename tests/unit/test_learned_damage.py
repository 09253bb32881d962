"""Changes that no batch has made: they are refused, whatever is wrong with them."""

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes, bytes_of
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from tests.support.pages import pages

Array = np.ndarray[Any, np.dtype[Any]]

TEXTS = [page["text"] for page in pages(60)]
FINGERPRINTER = Fingerprinter(VERIFIED)


def new_boilerplate() -> Boilerplate:
    return Boilerplate(block_pages=5, period_records=60)


def changes_of_batches(*, size: int) -> list[Changes]:
    """Return the changes of some batches of pages, in which blocks and a period end."""
    boilerplate, found = new_boilerplate(), []
    for start in range(0, len(TEXTS), size):
        boilerplate.begin()
        for passages, ids in FINGERPRINTER.passages_and_pages(TEXTS[start : start + size]):
            boilerplate.omit(passages, ids)
        found.append(boilerplate.changes())
        boilerplate.keep()
    assert boilerplate.window.former_from > 1
    assert len(boilerplate.learned()) > 5
    return found


BATCHES = changes_of_batches(size=9)


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
    for changes in BATCHES:
        assert Changes.of_bytes(archive_of(changes.arrays())).to_bytes() == changes.to_bytes()


@given(st.integers(0, len(BATCHES) - 1), st.sampled_from(DAMAGES), st.data())
def test_impossible_changes_are_refused_and_end_in_no_other_error(
    at: int, damage: Callable[[Array], Array], data: st.DataObject
) -> None:
    arrays = BATCHES[at].arrays()
    name = data.draw(st.sampled_from(sorted(arrays)))
    arrays[name] = damage(arrays[name])
    content = bytes_of([each.tobytes() for each in arrays.values()])
    if data.draw(st.booleans()):
        content = archive_of(arrays)
    boilerplate = new_boilerplate()
    with contextlib.suppress(ValueError):
        damaged = Changes.of_bytes(content)
        for number, changes in enumerate(BATCHES):
            boilerplate.apply(damaged if number == at else changes)
        # Where it is not noticed, that does no harm but to what was learned.
        omit_all(boilerplate)


def omit_all(boilerplate: Boilerplate) -> None:
    try:
        FINGERPRINTER.fingerprint(TEXTS, omit=boilerplate.omit)
    except ValueError as error:
        raise AssertionError from error


@given(st.integers(0, len(BATCHES) - 1), st.data())
def test_bytes_that_were_changed_are_refused(at: int, data: st.DataObject) -> None:
    content = bytearray(BATCHES[at].to_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match="cannot be read"):
        Changes.of_bytes(bytes(content))


@pytest.mark.parametrize("missing", range(1, len(BATCHES) - 1))
def test_changes_after_a_gap_are_refused(missing: int) -> None:
    boilerplate = new_boilerplate()
    for changes in BATCHES[:missing]:
        boilerplate.apply(changes)
    with pytest.raises(ValueError, match="does not follow"):
        boilerplate.apply(BATCHES[missing + 1])
    with pytest.raises(ValueError, match="does not follow"):
        boilerplate.apply(BATCHES[missing - 1])


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
        zip(passages.hashes.tolist(), passages.letters.tolist(), passages.are_prose.tolist(), strict=True)
    )
    assert found == [
        (0x09B581A3AAA61AAC, 4, False),
        (0x2C15B90A24455F65, 6, False),
        (0x2C3DA9573E3ABCCC, 19, True),
        (0x42D3052DD3132E81, 10, True),
        (0xD10663DDC3CE56D2, 6, True),
        (0xCE778DF4D553C8D0, 8, False),
    ]
