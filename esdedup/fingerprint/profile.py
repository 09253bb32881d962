"""Profiles: everything that determines a fingerprint, as named and versioned values.

A profile's label is stored with the data. Fingerprints of different profiles are never compared.
"""

import dataclasses
import hashlib
from typing import Any, Literal, get_args

import numpy as np

from esdedup.errors import SettingError
from esdedup.fingerprint import (
    DEFAULT_PROFILE,
    LEAST_RESEMBLANCE,
    LONGEST_TEXT_LENGTH,
    MAX_DISTANCE_BITS,
    MAX_KEYWORDS,
    MAX_TEXT_LENGTH,
    MOST_RESEMBLANCE,
)
from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.bands import PAIRS
from esdedup.fingerprint.signature import SIGNATURE
from esdedup.text.hashing import MURMUR3, TOKEN_HASHES, TokenHash
from esdedup.text.segmenters import JIEBA, Segmenter, segmenter_named
from esdedup.text.weights import TF_IDF, WEIGHTINGS, Weighting

Representation = Literal["halves", "longest-sentence", "keywords"]
"""The representation of a text: the longest sentence of each half, with minhashes of the wording; the longest
sentence of the text, which is edited least in reprints; or the heaviest words."""

_KEYWORD_COUNT = 80


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Profile:
    """Everything that determines a fingerprint.

    `verified` represents a text by the longest sentence of each half, and also compares whole texts by their
    sketches. `classic` represents a text by its longest sentence, `keywords` by its heaviest words. Their
    segmenter, weighting and hash can be replaced; the names of replacements are part of the label.

    Change a profile with `with_changes`, or with `dataclasses.replace`.

    Raises:
        SettingError: A value is out of range, or two values contradict each other.
    """

    # Part of the label; not empty.
    name: str
    # Incremented with every change that may alter a bit of a fingerprint; from 1.
    version: int
    representation: Representation
    # The number of heaviest words, 1 to 10,000; only for "keywords".
    keyword_count: int = _KEYWORD_COUNT
    # The weights of words; not for "halves", which does not weigh words.
    weighting: Weighting = TF_IDF
    # Divides texts into words; not for "halves", which has no words.
    segmenter: Segmenter = JIEBA
    # Hashes words; not for "halves".
    token_hash: TokenHash = MURMUR3
    # The value of a simhash bit whose weights add up to zero, 0 or 1; not for "halves".
    zero_bit: int = 0
    # The maximum distance (inclusive) between near simhashes, 0 to 3.
    max_distance_bits: int = MAX_DISTANCE_BITS
    # The rules by which whole texts agree; only for "halves", and required there.
    agreement: Agreement | None = None
    # The minimum number of letters and digits in a text with a fingerprint, from 1.
    min_letters: int = 6
    # The maximum number of characters of a sentence that are hashed; for "halves", the number of words or
    # East Asian characters; 1 to 65,535.
    max_sentence_length: int = 2_000
    # The maximum number of characters of the visible text to fingerprint; from `min_letters` to 10,000,000.
    max_text_length: int = MAX_TEXT_LENGTH
    # Whether to fingerprint whole texts, and neither learn nor omit boilerplate.
    keep_boilerplate: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise SettingError("the name of a profile must not be empty")
        if self.representation not in get_args(Representation):
            known = ", ".join(get_args(Representation))
            raise SettingError(f"representation is {self.representation!r}; it must be one of {known}")
        if self.representation == "halves" and self.agreement is None:
            raise SettingError(
                "the representation 'halves' needs an agreement: a sentence in common is not enough; "
                "give one, such as Agreement(), or use 'longest-sentence'"
            )
        if self.representation != "halves" and self.agreement is not None:
            raise SettingError(
                f"an agreement contradicts the representation {self.representation!r}, which keeps no "
                "sketches to compare; leave it None, or use 'halves'"
            )
        self._check_ranges()
        self._check_words()

    def _check_ranges(self) -> None:
        ranges: dict[str, tuple[int, float]] = {
            "version": (1, float("inf")),
            "keyword_count": (1, MAX_KEYWORDS),
            "zero_bit": (0, 0 if self.representation == "halves" else 1),
            "max_distance_bits": (0, MAX_DISTANCE_BITS),
            "min_letters": (1, float("inf")),
            "max_sentence_length": (1, 65_535),
            "max_text_length": (self.min_letters, LONGEST_TEXT_LENGTH),
        }
        for name, (least, most) in ranges.items():
            value = getattr(self, name)
            if not least <= value <= most:
                allowed = f"at least {least}" if most == float("inf") else f"from {least} to {most:,}"
                raise SettingError(f"{name} is {value}; it must be {allowed if least < most else least}")

        # For "halves" the two limits are not comparable, since `max_sentence_length` counts words.
        if self.representation != "halves" and self.max_sentence_length < self.min_letters:
            raise SettingError(
                f"max_sentence_length is {self.max_sentence_length}; it must be at least min_letters, "
                f"{self.min_letters}"
            )

    def _check_words(self) -> None:
        if self.representation != "keywords" and self.keyword_count != _KEYWORD_COUNT:
            raise SettingError(
                f"keyword_count contradicts the representation {self.representation!r}, which has no "
                "keywords; leave it out, or use 'keywords'"
            )
        weighting, segmenter, token_hash = self.weighting, self.segmenter, self.token_hash
        parts: tuple[tuple[str, Any, Any, Any, str], ...] = (
            ("weighting", weighting, TF_IDF, WEIGHTINGS.get(weighting.name), "does not weigh words"),
            ("segmenter", segmenter, JIEBA, segmenter_named(segmenter.name), "does not use words"),
            ("hash", token_hash, MURMUR3, TOKEN_HASHES.get(token_hash.name), "does not hash words"),
        )
        for part, value, default, standard, reason in parts:
            if self.representation == "halves" and value != default:
                raise SettingError(
                    f"the {part} {value.name!r} contradicts the representation 'halves', which {reason}; "
                    "leave it out, or use 'longest-sentence' or 'keywords'"
                )
            # The label contains only the name.
            if standard is not None and value != standard:
                raise SettingError(f"the {part} {value.name!r} already exists: give yours another name")

    def __repr__(self) -> str:
        return f"Profile({self.label!r})"

    @property
    def label(self) -> str:
        """The name stored with the data: ``NAME-VERSION``, and a digest unless it is a standard profile."""
        standard = PROFILES.get(self.name)
        label = f"{self.name}-{self.version}"
        if standard is not None and standard._description() == self._description():
            return label
        return f"{label}-{hashlib.blake2b(self._description().encode(), digest_size=4).hexdigest()}"

    @property
    def signature_dtype(self) -> np.dtype[Any]:
        """The dtype of a text's signature: a simhash, or `SIGNATURE`."""
        return np.dtype("<u8") if self.agreement is None else SIGNATURE

    def with_changes(
        self,
        *,
        keyword_count: int | None = None,
        weighting: Weighting | None = None,
        segmenter: Segmenter | None = None,
        token_hash: TokenHash | None = None,
        zero_bit: int | None = None,
        max_distance_bits: int | None = None,
        resemblance: float | None = None,
        max_text_length: int | None = None,
        keep_boilerplate: bool | None = None,
    ) -> "Profile":
        """Return a changed copy of the profile; None keeps a value.

        `resemblance` is the resemblance that long texts need to agree, 0.4 to 0.95; short texts need more.

        Raises:
            SettingError: A value is out of range, or contradicts the profile.
        """
        changes: dict[str, Any] = {name: each for name, each in locals().items() if each is not None}
        del changes["self"]
        if resemblance is not None:
            if self.agreement is None:
                raise SettingError(f"a resemblance applies to the profile verified, not to {self.name}")
            if not LEAST_RESEMBLANCE <= resemblance <= MOST_RESEMBLANCE:
                allowed = f"from {LEAST_RESEMBLANCE} to {MOST_RESEMBLANCE}"
                raise SettingError(f"resemblance is {resemblance}; it must be {allowed}")
            changes["agreement"] = dataclasses.replace(self.agreement, resemblance=changes.pop("resemblance"))
        return dataclasses.replace(self, **changes)

    def _description(self) -> str:
        keyword_count = self.keyword_count if self.representation == "keywords" else None
        hashed = self.token_hash
        return repr(
            (
                self.version,
                self.representation,
                keyword_count,
                self.weighting.name,
                # Nodes have other keys now, but the labels of profiles must not change.
                PAIRS.tables,
                self.max_distance_bits,
                self.min_letters,
                self.max_sentence_length,
                self.max_text_length,
                *((self.agreement,) if self.agreement else ()),
                *(("zero bit",) if self.zero_bit else ()),
                *(("keep boilerplate",) if self.keep_boilerplate else ()),
                *((("segmenter", self.segmenter.name),) if self.segmenter != JIEBA else ()),
                *((("hash", hashed.name, hashed.bits),) if hashed != MURMUR3 else ()),
            )
        )


VERIFIED = Profile(name="verified", version=5, representation="halves", agreement=Agreement())
CLASSIC = Profile(name="classic", version=4, representation="longest-sentence")
KEYWORDS = Profile(name="keywords", version=4, representation="keywords")
PROFILES = {profile.name: profile for profile in (VERIFIED, CLASSIC, KEYWORDS)}
DEFAULT = PROFILES[DEFAULT_PROFILE]


def get_profile(name: str | Profile) -> Profile:
    """Return the given profile, or the standard one of this name; raise `SettingError` if there is none."""
    if isinstance(name, Profile):
        return name
    if name not in PROFILES:
        raise SettingError(f"no profile {name!r}; there are {', '.join(sorted(PROFILES))}")
    return PROFILES[name]


def profile_labelled(label: str) -> Profile | None:
    """Return the standard profile with the given label, or None."""
    return next((profile for profile in PROFILES.values() if profile.label == label), None)
