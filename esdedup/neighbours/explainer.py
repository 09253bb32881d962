"""Works out why two texts are neighbours or not."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.agreement import Agreement, Comparison
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.overlap import Overlap
from esdedup.fingerprint.profile import DEFAULT, Profile
from esdedup.fingerprint.simhash import distance_bits, to_hex
from esdedup.neighbours.explanation import (
    NEAR,
    Explanation,
    Pair,
    Representative,
    Rule,
    Text,
    WholeTextComparison,
)
from esdedup.neighbours.relation import relation_of
from esdedup.text.characters import classes
from esdedup.text.normalise import NormalTexts
from esdedup.text.sentences import Sentences

Signatures = npt.NDArray[Any]


class Explainer:
    """Compares texts as a forest of one profile does. Not thread-safe."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._fingerprinter = Fingerprinter(profile)
        self._relation = relation_of(profile)

    def fingerprint(self, text: str) -> str | None:
        """Return the fingerprint of a raw text, None if it has none."""
        signature = self._signature(text)
        return None if signature is None else self._relation.ids(signature)[0]

    def page(self, text: str) -> int:
        """Return the id of a raw text's page."""
        return int(self._fingerprinter.fingerprint([text]).pages[0])

    def representatives(self, text: str) -> list[Representative]:
        """Return the representatives of a raw text, each simhash once; none if it has no fingerprint."""
        signature = self._signature(text)
        return [] if signature is None else self._representatives(text, signature)

    def explain(self, one: str, other: str) -> Explanation:
        """Compare two raw texts. Every stage is worked out, even after an earlier one has decided."""
        signatures = self._signature(one), self._signature(other)
        overlap, whole_texts = self._compare_whole_texts((one, other), signatures)
        shares = (None, None) if overlap is None else overlap.number_shares
        first = self._describe(one, signatures[0], shares[0])
        second = self._describe(other, signatures[1], shares[1])
        pairs = _pairs(first, second)
        near_pairs = [pair for pair in pairs if pair.distance_bits <= self.profile.max_distance_bits]
        rule = _rule(first, second, near_pairs, whole_texts)
        return Explanation(
            profile=self.profile.label,
            one=first,
            other=second,
            max_distance_bits=self.profile.max_distance_bits,
            min_letters=self.profile.min_letters,
            pairs=tuple(near_pairs),
            nearest=pairs[0] if pairs else None,
            whole_texts=whole_texts,
            rule=rule,
            near=rule in NEAR,
            may_join=rule is not Rule.NO_FINGERPRINT and (whole_texts is None or whole_texts.may_join),
        )

    def _points(self, *texts: str) -> npt.NDArray[np.uint32]:
        return NormalTexts.of(texts, max_length=self.profile.max_text_length).points

    def _signature(self, text: str) -> Signatures | None:
        """Return the signature of a raw text, ``(1,)``, None if it has no fingerprint."""
        found = self._fingerprinter.fingerprint([text])
        return found.signatures if found.exists[0] else None

    def _compare_whole_texts(
        self, texts: tuple[str, str], signatures: tuple[Signatures | None, Signatures | None]
    ) -> tuple[Overlap, WholeTextComparison] | tuple[None, None]:
        """Compare whole texts if both have a fingerprint and the profile compares whole texts."""
        rules, (one, other) = self.profile.agreement, signatures
        if rules is None or one is None or other is None:
            return None, None
        points = self._points(*texts)
        overlap = Overlap.of(points, classes()[points], number_weight=rules.number_weight)
        return overlap, compare_whole_texts(one, other, rules, overlap=overlap)

    def _describe(self, text: str, signature: Signatures | None, number_share: float | None) -> Text:
        points = self._points(text)
        letters = Sentences.of(points, classes()[points]).letters_of_texts
        return Text(
            letters=int(letters[0]),
            fingerprint=None if signature is None else self._relation.ids(signature)[0],
            representatives=() if signature is None else tuple(self._representatives(text, signature)),
            number_share=number_share,
        )

    def _representatives(self, text: str, signature: Signatures) -> list[Representative]:
        kind: Literal["words", "sentence"]
        if self.profile.representation == "keywords":
            kind, passages = "words", [" ".join(each.word for each in self._fingerprinter.features(text))]
        else:
            kind, passages = "sentence", self._fingerprinter.passages(text)
        simhashes = to_hex(self._relation.simhashes(signature)[0])
        return [
            Representative(simhash=simhash, kind=kind, passage=passages[place])
            if place < len(passages)
            else Representative(simhash=simhash, kind="minhash", passage=None)
            for place, simhash in enumerate(simhashes)
            # A text with few sentences and words repeats its first simhash.
            if simhash not in simhashes[:place]
        ]


def explain(one: str, other: str, profile: Profile = DEFAULT) -> Explanation:
    """Explain why two raw texts are near each other under a profile, or why they are not."""
    return Explainer(profile).explain(one, other)


def compare_whole_texts(
    one: Signatures, other: Signatures, rules: Agreement, *, overlap: Overlap | None = None
) -> WholeTextComparison:
    """Compare two signatures, each ``(1,)``; `overlap` adds what was counted in the texts."""
    # Only `may_join` has a direction: the other text joins `one`.
    compared = Comparison.of(other, one, rules)
    needed = float(compared.needed[0])
    return WholeTextComparison(
        resemblance=float(compared.resemblance[0]),
        exact_resemblance=overlap.resemblance if overlap else None,
        exact_resemblance_of_words=overlap.resemblance_of_words if overlap else None,
        needed=needed,
        needed_for_root=needed - rules.root_slack,
        contained=float(compared.contained[0]),
        exact_contained=overlap.contained if overlap else None,
        contained_needed=rules.least_contained,
        contained_counts=bool(compared.may_contain[0]),
        agree=bool(compared.agree[0]),
        may_join=bool(compared.may_join[0]),
    )


def _pairs(one: Text, other: Text) -> list[Pair]:
    """Return all pairs of representatives, the nearest first."""
    ours, theirs = (
        np.array([int(each.simhash, 16) for each in text.representatives], np.uint64) for text in (one, other)
    )
    distances = distance_bits(ours[:, None], theirs[None, :])
    pairs = [Pair(one=a, other=b, distance_bits=int(bits)) for (a, b), bits in np.ndenumerate(distances)]
    return sorted(pairs, key=lambda pair: pair.distance_bits)


def _rule(one: Text, other: Text, near_pairs: list[Pair], whole_texts: WholeTextComparison | None) -> Rule:
    if one.fingerprint is None or other.fingerprint is None:
        return Rule.NO_FINGERPRINT
    if one.fingerprint == other.fingerprint:
        return Rule.EQUAL
    if not near_pairs:
        return Rule.NOTHING_IN_COMMON
    if whole_texts is None:
        return Rule.WITHIN_DISTANCE
    if not whole_texts.agree:
        return Rule.UNLIKE
    if not whole_texts.may_join:
        return Rule.IN_THE_FIRST
    return Rule.RESEMBLE if whole_texts.resemblance >= whole_texts.needed else Rule.CONTAINED
