"""How alike two articles are, from what they keep of their fingerprints."""

from typing import Any

import numpy as np

from esdedup.agreement import Comparison
from esdedup.fields import Fields, signature_of, value_of
from esdedup.profile import Profile, profile_labelled
from esdedup.reading.hits import Hit, values_of
from esdedup.results import SimilarArticle


class Alike:
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
    def to(cls, hit: Hit, fields: Fields) -> "Alike":
        """Compare with the article of a hit; with nothing, if this version does not know its profile."""
        label = value_of(hit["_source"], f"{fields.dedup}.profile")
        profile = profile_labelled(label) if isinstance(label, str) else None
        return cls(profile, signature_of(hit["_source"], fields))

    def articles(self, hits: list[Hit], fields: Fields) -> list[SimilarArticle]:
        """Return what a list shows of hits, and how alike they are."""
        return [SimilarArticle(**values_of(hit, fields), **self._values(hit, fields)) for hit in hits]

    def _values(self, hit: Hit, fields: Fields) -> dict[str, Any]:
        if self._profile is None:
            return {}
        label = value_of(hit["_source"], f"{fields.dedup}.profile")
        signature = signature_of(hit["_source"], fields)
        dtype = self._profile.signature_dtype
        if label != self._profile.label or not len(signature) == len(self._signature) == dtype.itemsize:
            return {}
        one, other = (np.frombuffer(each, dtype) for each in (self._signature, signature))
        rules = self._profile.agreement
        if rules is not None:
            return {"resemblance": round(float(Comparison.of(one, other, rules).resemblance[0]), 4)}
        return {"distance_bits": int(np.bitwise_count(one[0] ^ other[0]))}
