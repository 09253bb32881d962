"""How similar two articles are, computed from the signatures stored with them."""

from typing import Any

import numpy as np

from esdedup.fields import Fields, signature_of, value_of
from esdedup.fingerprint.agreement import Comparison
from esdedup.fingerprint.profile import Profile, profile_labelled
from esdedup.reading.queries import Hit, values_of
from esdedup.reading.results import SimilarArticle


class Similarity:
    """Compares articles with a given article or text."""

    def __init__(self, profile: Profile | None, signature: bytes) -> None:
        """Compare with the signature of an article or text.

        Args:
            profile: The profile of the signature; None compares nothing.
            signature: May be empty, which compares nothing.
        """
        self._profile = profile
        # Calculated from the whole profile, and compared with that of each article.
        self._label = None if profile is None else profile.label
        self._signature = signature

    @classmethod
    def to(cls, hit: Hit, fields: Fields) -> "Similarity":
        """Compare with the article of a hit, unless this version does not know its profile."""
        label = value_of(hit["_source"], f"{fields.dedup}.profile")
        profile = profile_labelled(label) if isinstance(label, str) else None
        return cls(profile, signature_of(hit["_source"], fields))

    def articles(self, hits: list[Hit], fields: Fields) -> tuple[SimilarArticle, ...]:
        """Return the articles of hits, each with how similar it is if that can be computed."""
        return tuple(
            SimilarArticle(**values_of(hit, fields), **measure)
            for hit, measure in zip(hits, self.measures(hits, fields), strict=True)
        )

    def most_different(self, hits: list[Hit], fields: Fields) -> tuple[Hit, dict[str, Any]] | None:
        """Return the hit whose text differs most, and how similar it is; None if none can be compared."""
        measured = [pair for pair in zip(hits, self.measures(hits, fields), strict=True) if pair[1]]
        return min(measured, key=lambda pair: _likeness(**pair[1]), default=None)

    def measures(self, hits: list[Hit], fields: Fields) -> list[dict[str, Any]]:
        """Return how similar each hit is, as values of `SimilarArticle`; empty if that cannot be computed."""
        measures: list[dict[str, Any]] = [{} for _ in hits]
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
                measures[at] = {name: value}
        return measures

    def _is_comparable(self, hit: Hit, fields: Fields) -> bool:
        if self._profile is None:
            return False
        size = self._profile.signature_dtype.itemsize
        label = value_of(hit["_source"], f"{fields.dedup}.profile")
        return (
            label == self._label and len(self._signature) == len(signature_of(hit["_source"], fields)) == size
        )


def _likeness(*, resemblance: float = 0.0, distance_bits: int = 0) -> float:
    """Return a number that is larger for texts that are more alike; both are measures of one profile."""
    return resemblance - distance_bits
