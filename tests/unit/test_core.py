"""The crate through its boundary: what it computes of hostile texts, its errors, and threads."""

import dataclasses
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup import CLASSIC, KEYWORDS, VERIFIED, Profile, _core, sample
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.signature import Fingerprints
from esdedup.text.left_out import LocatedPassages
from esdedup.text.normalise import normal_beginnings, visible_text
from esdedup.text.parsed import ParsedTexts
from tests.support.pages import pages

# Invented texts, and what the last version in numpy made of each alone.
VECTORS = Path(__file__).parents[1] / "fixtures" / "core" / "texts.jsonl"


def vectors() -> list[dict[str, Any]]:
    return [json.loads(line) for line in VECTORS.read_text().splitlines()]


def seen(text: str, max_length: int) -> dict[str, Any]:
    """Return what a vector holds."""
    fingerprinter = Fingerprinter(dataclasses.replace(VERIFIED, max_text_length=max_length))
    found = fingerprinter.fingerprint([text])
    located = LocatedPassages.of(text, max_length=max_length)
    (normal,), are_cut = normal_beginnings([text], max_length=max_length)
    columns = (
        [f"{each:016x}" for each in located.passages.hashes.tolist()],
        *(each.tolist() for each in (located.passages.letters, located.passages.are_prose)),
        *(each.tolist() for each in (located.passages.have_figures, located.starts, located.ends)),
    )
    return {
        "text": text,
        "max_length": max_length,
        "normal": normal,
        "cut": bool(are_cut[0]),
        "page": f"{found.pages[0]:016x}",
        "letters": int(found.letters[0]),
        "signature": found.signatures.tobytes().hex() if found.exists[0] else None,
        "passages": [list(passage) for passage in zip(*columns, strict=True)],
    }


def test_hostile_texts_have_the_bits_that_they_had() -> None:
    for vector in vectors():
        assert seen(vector["text"], vector["max_length"]) == vector


def test_a_batch_has_the_bits_of_its_texts() -> None:
    texts = [vector["text"] for vector in vectors()]
    together = Fingerprinter(VERIFIED).fingerprint(texts)
    for at, text in enumerate(texts):
        alone = Fingerprinter(VERIFIED).fingerprint([text])
        for column in ("signatures", "exists", "letters", "are_cut", "pages"):
            assert getattr(together, column)[at] == getattr(alone, column)[0]


@given(st.text(), st.text())
def test_a_lone_surrogate_parts_words_as_a_control_character_does(before: str, after: str) -> None:
    texts = [f"{before}\ud800{after}", f"{before}\x01{after}"]
    found = Fingerprinter(VERIFIED).fingerprint(texts)
    assert found.signatures[0] == found.signatures[1]
    assert found.pages[0] == found.pages[1]
    assert visible_text(f"{before}\x01{after}").count("\x01") == visible_text(texts[0]).count(
        "\ud800"
    ) - before.count("\ud800") - after.count("\ud800") + (before + after).count("\x01")


def test_readers_get_lone_surrogates_back() -> None:
    assert visible_text("<b>a\udfff</b>\U00040001&lt;\ud800") == "a\udfff\U00040001<\ud800"


def test_flags_that_do_not_fit_are_refused() -> None:
    parsed = ParsedTexts.of(["One sentence. Another one."], max_length=100)
    with pytest.raises(ValueError, match="3 flags for 2 passages"):
        parsed.core.signatures(bytes(3), 6, 2_000, 5)
    with pytest.raises(ValueError, match="do not fit"):
        _core.weighted_simhashes(bytes(16), bytes(8), bytes(8))


@pytest.mark.parametrize("profile", [VERIFIED, CLASSIC, KEYWORDS], ids=lambda profile: profile.name)
def test_the_results_are_the_same_however_many_threads_there_are(profile: Profile) -> None:
    texts = [page["text"] for page in pages(300)] + ["", "short", "x " * 150_000]

    def found(threads: int) -> list[Fingerprints]:
        fingerprinter, boilerplate = Fingerprinter(profile, threads=threads), Boilerplate(block_pages=8)
        # What was learned decides about later pages, so the order counts.
        return [fingerprinter.fingerprint(some, omit=boilerplate.omit) for some in (texts, texts[:40], [])]

    for one, four in zip(found(1), found(4), strict=True):
        for column in dataclasses.fields(Fingerprints):
            np.testing.assert_array_equal(getattr(one, column.name), getattr(four, column.name))


def test_several_threads_fingerprint_at_once() -> None:
    texts = [article["text"] for article in sample.articles(200)]
    expected = Fingerprinter(VERIFIED).fingerprint(texts).signatures.tobytes()
    found: list[bytes] = []

    def work() -> None:
        found.append(Fingerprinter(VERIFIED).fingerprint(texts).signatures.tobytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


@given(st.lists(st.text(st.sampled_from("ab1 2.,:中文。\n<p>&"), max_size=30), max_size=5), st.randoms())
def test_what_is_left_out_changes_nothing_else(batch: list[str], chance: Any) -> None:
    parsed = ParsedTexts.of(batch, max_length=1_000)
    omitted = np.array([chance.random() < 0.3 for _ in range(parsed.passage_count)], bool)
    found = Fingerprinter(VERIFIED).fingerprint(batch, omit=lambda *_: omitted)
    kept = np.bincount(parsed.passages.texts, parsed.passages.letters * ~omitted, len(batch))
    assert found.letters.tolist() == kept.tolist()
    assert found.exists.tolist() == (kept >= VERIFIED.min_letters).tolist()
