"""Profiles: everything that decides a fingerprint, as named, versioned values.

A profile is stored with the data it made. Fingerprints of two profiles are never compared.
"""

import dataclasses
import hashlib
from typing import Any, Literal

import numpy as np

from esdedup.errors import SettingError
from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.bands import FIVE_CHOOSE_TWO, Layout
from esdedup.fingerprint.signature import SIGNATURE
from esdedup.text.words import TF_IDF, Weighting


@dataclasses.dataclass(frozen=True, kw_only=True)
class Profile:
    """What decides a fingerprint.

    `verified` takes the longest sentence of each half of an article and two minhashes of its wording, and
    looks again at the whole text: at a sketch of it. `classic` takes the longest sentence, which survives
    reprinting better than the rest; `keywords` takes the heaviest words of the whole text.
    """

    name: str
    # Goes up with every change that may change a bit.
    version: int
    # Where the features come from.
    representation: Literal["halves", "longest-sentence", "keywords"]
    # How many of the heaviest words `keywords` takes.
    keyword_count: int = 80
    weighting: Weighting = TF_IDF
    # The band keys that are written to the index.
    layout: Layout = FIVE_CHOOSE_TWO
    # Two fingerprints are near up to this distance, inclusive.
    max_distance_bits: int = 3
    # When two whole texts agree; None: that nobody asks.
    agreement: Agreement | None = None
    # A text with fewer letters and digits tells nothing, and gets no fingerprint.
    min_letters: int = 6
    # A sentence is cut after so many characters; in `verified` after so many words or wide characters.
    max_sentence_length: int = 2_000

    def __post_init__(self) -> None:
        if not 1 <= self.keyword_count <= 10_000:
            raise SettingError(f"keyword_count is {self.keyword_count}; it must be from 1 to 10,000")
        if self.min_letters < 1 or self.max_sentence_length < 1:
            raise SettingError("min_letters and max_sentence_length must be at least 1")

    @property
    def label(self) -> str:
        """The name under which the data is stored: ``NAME-VERSION``, and a digest of what was changed."""
        standard = PROFILES.get(self.name)
        label = f"{self.name}-{self.version}"
        if standard is not None and standard._description() == self._description():
            return label
        return f"{label}-{hashlib.blake2b(self._description().encode(), digest_size=4).hexdigest()}"

    @property
    def signature_dtype(self) -> np.dtype[Any]:
        """What is kept of a text: a simhash, or those of its sentences and a sketch."""
        return np.dtype("<u8") if self.agreement is None else SIGNATURE

    def with_changes(
        self, *, keyword_count: int | None = None, weighting: Weighting | None = None
    ) -> "Profile":
        """Return the profile with another number of keywords, or another weighting.

        Raises:
            SettingError: The profile has no words to weigh.
        """
        if weighting is not None and self.agreement is not None:
            raise SettingError(f"the profile {self.name} does not weigh words")
        return dataclasses.replace(
            self,
            keyword_count=self.keyword_count if keyword_count is None else keyword_count,
            weighting=self.weighting if weighting is None else weighting,
        )

    def _description(self) -> str:
        keyword_count = self.keyword_count if self.representation == "keywords" else None
        return repr(
            (
                self.version,
                self.representation,
                keyword_count,
                self.weighting.name,
                self.layout.tables,
                self.max_distance_bits,
                self.min_letters,
                self.max_sentence_length,
                *(() if self.agreement is None else (self.agreement,)),
            )
        )


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(name="verified", version=1, representation="halves", agreement=Agreement()),
        Profile(name="classic", version=1, representation="longest-sentence"),
        Profile(name="keywords", version=1, representation="keywords"),
    )
}
VERIFIED = PROFILES["verified"]
CLASSIC = PROFILES["classic"]
KEYWORDS = PROFILES["keywords"]
DEFAULT = VERIFIED


def get_profile(name: str) -> Profile:
    """Return the profile of that name.

    Raises:
        SettingError: There is none.
    """
    try:
        return PROFILES[name]
    except KeyError:
        raise SettingError(f"no profile {name!r}; there are {', '.join(sorted(PROFILES))}") from None


def profile_labelled(label: str) -> Profile | None:
    """Return the profile that data with that label was made with; None for one that was changed."""
    return next((profile for profile in PROFILES.values() if profile.label == label), None)
