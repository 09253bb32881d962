"""How alike two articles are, from what they keep of their fingerprints."""

from typing import Any

import numpy as np

from esdedup.fields import Fields, signature_of, value_of
from esdedup.fingerprint.agreement import Comparison
from esdedup.fingerprint.profile import Profile, profile_labelled
from esdedup.reading.hits import Hit, values_of
from esdedup.reading.results import SimilarArticle


class Similarity:
    """Compares articles with one of them, or with a text."""

    def __init__(self, profile: Profile | None, signature: bytes) -> None:
        """Prepare.

        Args:
            profile: Of the article or the text; None compares nothing.
            signature: Of it, empty where it has none.
        """
        self._profile = profile
        self._signature = signature

    @classmethod
    def to(cls, hit: Hit, fields: Fields) -> "Similarity":
        """Compare with the article of a hit; with nothing, if this version does not know its profile."""
        label = value_of(hit["_source"], f"{fields.dedup}.profile")
        profile = profile_labelled(label) if isinstance(label, str) else None
        return cls(profile, signature_of(hit["_source"], fields))

    def articles(self, hits: list[Hit], fields: Fields) -> list[SimilarArticle]:
        """Return what a list shows of hits, and how alike they are."""
        found: list[dict[str, Any]] = [{} for _ in hits]
        comparable = [at for at, hit in enumerate(hits) if self._is_comparable(hit, fields)]
        if self._profile is not None and comparable:
            dtype, rules = self._profile.signature_dtype, self._profile.agreement
            signatures = [signature_of(hits[at]["_source"], fields) for at in comparable]
            one = np.frombuffer(self._signature * len(comparable), dtype)
            other = np.frombuffer(b"".join(signatures), dtype)
            if rules is None:
                name, values = "distance_bits", np.bitwise_count(one ^ other).tolist()
            else:
                name, values = "resemblance", Comparison.of(one, other, rules).resemblance.round(4).tolist()
            for at, value in zip(comparable, values, strict=True):
                found[at] = {name: value}
        return [
            SimilarArticle(**values_of(hit, fields), **alike) for hit, alike in zip(hits, found, strict=True)
        ]

    def _is_comparable(self, hit: Hit, fields: Fields) -> bool:
        if self._profile is None:
            return False
        size = self._profile.signature_dtype.itemsize
        label = value_of(hit["_source"], f"{fields.dedup}.profile")
        return (
            label == self._profile.label
            and len(self._signature) == len(signature_of(hit["_source"], fields)) == size
        )
