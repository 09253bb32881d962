"""Explains why two texts are neighbours or not."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from esdedup._core import PassageFilter
from esdedup.fingerprint.agreement import Agreement, Comparison, Overlap, overlaps
from esdedup.fingerprint.by_words import Feature
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import Fingerprints
from esdedup.fingerprint.simhash import to_hex
from esdedup.neighbours.explanation import (
    NEAR,
    Explanation,
    Pair,
    Representative,
    Rule,
    Text,
    WholeTextComparison,
)
from esdedup.neighbours.relation import Relation, relation_of
from esdedup.sites import RawPage
from esdedup.text.left_out import LeftOut
from esdedup.text.parsed import ParsedTexts, SiteFilters, left_out

Signatures = npt.NDArray[Any]
"""The signature of one text, of shape (1,)."""


@dataclasses.dataclass(frozen=True)
class PastSignature:
    """The signature with which a text was assigned when it arrived; today's signature may differ."""

    # None if the text had no fingerprint.
    signature: Signatures | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _ComparedText:
    """A raw text, and the signature that is compared."""

    text: str
    site: str | None
    # None if the text has no fingerprint.
    signature: Signatures | None
    # Whether this is the text's signature today, and not one computed when other passages were omitted.
    is_todays: bool


class Explainer:
    """Compares texts by the rules of one profile, as a forest does. Not thread-safe."""

    def __init__(
        self,
        profile: Profile,
        *,
        filter_on: SiteFilters | None = None,
        without: Callable[[Fingerprints, Sequence[str], Sequence[str | None]], Fingerprints] | None = None,
    ) -> None:
        """`filter_on` returns the passage filter of a site; `without` drops fingerprints of placeholders."""
        self.profile = profile
        self._filter_on = None if profile.keep_boilerplate else filter_on
        self._without = without
        self._fingerprinter = Fingerprinter(profile)
        self._relation = relation_of(profile)

    def content_hash(self, text: str) -> int:
        """Return the content hash of a raw text."""
        return int(self._fingerprinter.fingerprint([text]).content_hashes[0])

    def features(self, text: str, site: str | None = None) -> list[Feature]:
        """Return the weighted words that determine the simhash of a raw text."""
        with self._filter_of(site) as passage_filter:
            return self._fingerprinter.features(text, passage_filter=passage_filter)

    def left_out(self, text: str, site: str | None = None) -> LeftOut | None:
        """Return the passages omitted from a raw text today; None if the whole text is compared."""
        if self._filter_on is None:
            return None
        with self._filter_on(site) as passage_filter:
            return left_out(text, passage_filter, max_length=self.profile.max_text_length)

    def explain(
        self,
        one: str | RawPage,
        other: str | RawPage,
        *,
        decided: tuple[PastSignature | None, PastSignature | None] = (None, None),
        is_first_later: bool = False,
    ) -> Explanation:
        """Compare two raw texts in all stages, including the stages after the decision.

        `decided` contains the signature with which each text was assigned, since the omitted passages may
        have changed; None means today's signature. Only the later text can be a version of the earlier text.
        """
        texts = self._compared(one, decided[0]), self._compared(other, decided[1])
        whole_texts = self._compare_whole_texts(*texts)
        first, second = (self._describe(each) for each in texts)
        pairs = _pairs(first, second, self._relation)
        near_pairs = [pair for pair in pairs if pair.distance_bits <= self.profile.max_distance_bits]
        earlier, later = reversed(texts) if is_first_later else texts
        is_version = self._is_version(earlier.signature, later.signature, has_common=bool(near_pairs))
        rule = Rule.VERSION if is_version else _rule(first, second, near_pairs, whole_texts)
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
            may_join=rule in NEAR or bool(whole_texts and whole_texts.may_join),
        )

    def _filter_of(
        self, site: str | None, *, is_whole: bool = False
    ) -> AbstractContextManager[PassageFilter | None]:
        return contextlib.nullcontext() if is_whole or self._filter_on is None else self._filter_on(site)

    def _compared(self, text: str | RawPage, decided: PastSignature | None) -> _ComparedText:
        page = RawPage(text) if isinstance(text, str) else text
        signature, is_todays = self.signature(page.text, page.site), True
        if decided is not None:
            is_todays = self._are_equal(decided.signature, signature)
            signature = decided.signature
        elif page.origin and signature is not None and signature.dtype.names:
            signature = signature.copy()
            signature["origin"] = page.origin
        return _ComparedText(text=page.text, site=page.site, signature=signature, is_todays=is_todays)

    def signature(self, text: str, site: str | None = None, *, is_whole: bool = False) -> Signatures | None:
        """Return the signature of a raw text, of shape ``(1,)``; None if it has no fingerprint."""
        with self._filter_of(site, is_whole=is_whole) as passage_filter:
            found = self._fingerprinter.fingerprint([text], passage_filter=passage_filter).checked()
        if self._without is not None:
            found = self._without(found, [text], [site])
        return found.signatures if found.exists[0] else None

    def _are_equal(self, one: Signatures | None, other: Signatures | None) -> bool:
        if one is None or other is None:
            return one is other
        return self._relation.core.are_equal(one.tobytes(), other.tobytes())

    def _is_version(self, earlier: Signatures | None, later: Signatures | None, *, has_common: bool) -> bool:
        """Return whether the later text would join the earlier text only because of a common address."""
        if earlier is None or later is None or self._are_equal(earlier, later):
            return False
        ((way,), _) = self._relation.joining(later, earlier, earlier)
        if has_common:
            return way == "address"
        return way is not None and self._relation.core.have_common_key(later.tobytes(), earlier.tobytes())

    def _compare_whole_texts(self, one: _ComparedText, other: _ComparedText) -> WholeTextComparison | None:
        rules = self.profile.agreement
        if rules is None or one.signature is None or other.signature is None:
            return None
        # Exact values need the compared text. For an earlier signature, that text is known only if no passage
        # was omitted.
        counted = None
        if all(
            each.is_todays or self._are_equal(each.signature, self.signature(each.text, None, is_whole=True))
            for each in (one, other)
        ):
            counted = overlaps(self._remaining(one), self._remaining(other))
        return compare_whole_texts(one.signature, other.signature, rules, counted=counted)

    def _parsed(self, text: str) -> ParsedTexts:
        return ParsedTexts.of([text], max_length=self.profile.max_text_length)

    def _remaining(self, text: _ComparedText) -> tuple[ParsedTexts, npt.NDArray[np.bool_]]:
        """Return a text and the passages omitted: today's passages, or none for an earlier signature."""
        parsed = self._parsed(text.text)
        with self._filter_of(text.site, is_whole=not text.is_todays) as passage_filter:
            return parsed, parsed.left_out(passage_filter)

    def _describe(self, text: _ComparedText) -> Text:
        alphanumerics, signature = self._parsed(text.text).alphanumerics, text.signature
        return Text(
            letters=int(alphanumerics[0]),
            left_out=self.left_out(text.text, text.site),
            is_todays=text.is_todays,
            fingerprint=None if signature is None else self._relation.ids(signature)[0],
            representatives=() if signature is None else tuple(self._represented(text, signature)),
        )

    def _represented(self, text: _ComparedText, signature: Signatures) -> list[Representative]:
        if text.is_todays:
            return self.representatives(text.text, text.site)
        # The text may still contain the passages of earlier representatives.
        todays = (
            each
            for is_whole in (False, True)
            for each in self.representatives(text.text, text.site, is_whole=is_whole)
        )
        known = {each.simhash: each for each in todays}
        return [
            known.get(simhash) or Representative(simhash=simhash, kind=None, passage=None)
            for simhash in dict.fromkeys(to_hex(self._relation.representatives(signature)[0]))
        ]

    def representatives(
        self, text: str, site: str | None = None, *, is_whole: bool = False
    ) -> list[Representative]:
        """Return the distinct representatives of a raw text; with `is_whole`, no passage is omitted."""
        signature = self.signature(text, site, is_whole=is_whole)
        if signature is None:
            return []
        kind: Literal["words", "sentence"]
        with self._filter_of(site, is_whole=is_whole) as passage_filter:
            if self.profile.representation == "keywords":
                features = self._fingerprinter.features(text, passage_filter=passage_filter)
                kind, passages = "words", [" ".join(each.word for each in features)]
            else:
                kind, passages = "sentence", self._fingerprinter.passages(text, passage_filter=passage_filter)
        simhashes = to_hex(self._relation.representatives(signature)[0])
        return [
            Representative(simhash=simhash, kind=kind, passage=passages[place])
            if place < len(passages)
            else Representative(simhash=simhash, kind="minhash", passage=None)
            for place, simhash in enumerate(simhashes)
            # A text with few sentences and words repeats its first simhash.
            if simhash not in simhashes[:place]
        ]


def compare_whole_texts(
    one: Signatures, other: Signatures, rules: Agreement, *, counted: tuple[Overlap, Overlap] | None = None
) -> WholeTextComparison:
    """Compare two signatures, each of shape ``(1,)``. `counted` are their overlaps in runs and in figures."""
    compared = Comparison.of(one, other, rules)
    found = {each.name: getattr(compared, each.name)[0].item() for each in dataclasses.fields(compared)}
    runs, figures = counted or (None, None)
    needed = found["needed"]
    return WholeTextComparison.model_validate(
        found
        | {
            "exact_resemblance": runs and runs.resemblance,
            "needed_for_root": needed - rules.root_slack,
            "exact_replaced": figures and min(figures.of_one, figures.of_other) - figures.shared,
            "replaceable": int(found["replaceable"]),
            "exact_contained": runs and runs.contained,
            "contained_needed": max(rules.least_contained, 2 * needed / (1 + needed)),
            "size": found["share"],
            "size_needed": rules.excerpt_share,
        }
    )


def _pairs(one: Text, other: Text, relation: Relation) -> list[Pair]:
    ours, theirs = (
        np.array([int(each.simhash, 16) for each in text.representatives], np.uint64) for text in (one, other)
    )
    distances = relation.distances_bits(ours[:, None], theirs[None, :])
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
    resemble = not whole_texts.missed_by
    if whole_texts.agree:
        return Rule.RESEMBLE if resemble else Rule.EXCERPT
    if whole_texts.is_part:
        return Rule.PART
    if whole_texts.is_form:
        return Rule.OTHER_NAMES
    return Rule.OTHER_FIGURES if resemble else Rule.UNLIKE
