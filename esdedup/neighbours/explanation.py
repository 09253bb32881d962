"""Why two texts are near each other or not, stage by stage, as a value that can be read."""

import enum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pydantic

from esdedup.fingerprint.agreement import Agreement, Comparison
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.overlap import Overlap
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.simhash import distance_bits, to_hex
from esdedup.neighbours.relation import relation_of
from esdedup.text.characters import classes
from esdedup.text.normalise import normal_points
from esdedup.text.sentences import Sentences

Signatures = npt.NDArray[Any]


class Rule(enum.StrEnum):
    """What decided whether two texts are near."""

    # One has no fingerprint: it stands alone.
    NO_FINGERPRINT = "no_fingerprint"
    # All that is compared of them is equal: they have one node.
    EQUAL = "equal"
    # Nothing that represents one is within the distance of anything that represents the other.
    NOTHING_IN_COMMON = "nothing_in_common"
    # Their simhashes are within the distance, and the profile asks for no more.
    WITHIN_DISTANCE = "within_distance"
    # Beside a representative in common, the wholes resemble each other enough.
    RESEMBLE = "resemble"
    # The same, but both are short, and one is contained in the other.
    CONTAINED = "contained"
    # The same, but the one that comes first contains the other: as a root it takes in nothing that it
    # only contains.
    IN_THE_FIRST = "in_the_first"
    # A representative in common, and wholes that resemble each other too little.
    UNLIKE = "unlike"


NEAR = frozenset({Rule.EQUAL, Rule.WITHIN_DISTANCE, Rule.RESEMBLE, Rule.CONTAINED})


class Representative(pydantic.BaseModel, frozen=True):
    """One of the simhashes by which a text is found."""

    simhash: str
    # What it is of: a sentence, a minhash of the wording, or the heaviest words.
    kind: Literal["sentence", "minhash", "words"]
    # Normalised; of words the heaviest first. None for a minhash, which has no place in the text.
    passage: str | None


class Text(pydantic.BaseModel, frozen=True):
    """One of the two texts."""

    # Letters and digits.
    letters: int
    # None where it has too few letters, or no words.
    fingerprint: str | None
    representatives: list[Representative]
    # How much of what its sketch is of has a number, 0 to 1; None where nobody asks.
    number_share: float | None


class Pair(pydantic.BaseModel, frozen=True):
    """A representative of each text, by their places from 0, and in how many bits they differ."""

    one: int
    other: int
    distance_bits: int


class Wholes(pydantic.BaseModel, frozen=True):
    """The second look, at two whole texts; shares, 0 to 1."""

    # From the sketches; this is what decides.
    resemblance: float
    # Counted in the texts; None where one of them is not at hand.
    exact_resemblance: float | None
    # The same without runs that have a number; None also where there are no others.
    exact_resemblance_of_words: float | None
    # The estimate that two texts so long need, inclusive; and towards the root of a cluster.
    needed: float
    needed_for_root: float
    # The part of the smaller text that is in the other.
    contained: float
    exact_contained: float | None
    # What counts as contained, inclusive, and whether both are short enough for that.
    contained_needed: float
    contained_counts: bool
    agree: bool
    # Whether the second may stand in a cluster whose root is the first.
    may_join: bool

    @classmethod
    def of(
        cls, one: Signatures, other: Signatures, rules: Agreement, *, overlap: Overlap | None = None
    ) -> "Wholes":
        """Compare two signatures, each ``(1,)``, and say beside it what was counted."""
        # Only whether one may join depends on the direction: the other one joins `one`.
        compared = Comparison.of(other, one, rules)
        needed = float(compared.needed[0])
        return cls(
            resemblance=float(compared.resemblance[0]),
            exact_resemblance=overlap.resemblance if overlap else None,
            exact_resemblance_of_words=overlap.resemblance_of_words if overlap else None,
            needed=needed,
            needed_for_root=needed - rules.root_slack,
            contained=float(compared.contained[0]),
            exact_contained=overlap.contained if overlap else None,
            contained_needed=rules.least_contained,
            contained_counts=bool(compared.is_short[0]),
            agree=bool(compared.agree[0]),
            may_join=bool(compared.may_join[0]),
        )


class Explanation(pydantic.BaseModel, frozen=True):
    """Why two texts, met by nobody else, would be in one cluster or not."""

    # The label of the profile.
    profile: str
    one: Text
    other: Text
    # Two representatives have something in common up to this distance, inclusive.
    max_distance_bits: int
    # A text with fewer has no fingerprint.
    min_letters: int
    # Within that distance, the nearest first.
    pairs: list[Pair]
    # None where a text has no fingerprint.
    nearest: Pair | None
    # None where a text has no fingerprint, or the profile does not ask.
    wholes: Wholes | None
    rule: Rule
    # Whether the one that comes second joins the first, or has its node.
    near: bool
    # Whether the second may stand in a cluster whose root is the first; if they are not near themselves,
    # that needs a third text that both are near.
    may_join: bool


class Explainer:
    """Compares texts as a forest of one profile does. Not safe for use by several threads at once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._fingerprinter = Fingerprinter(profile)
        self._relation = relation_of(profile)

    def fingerprint(self, text: str) -> str | None:
        """Return the fingerprint of a raw text, None where it has none."""
        found = self._fingerprinter.fingerprint([text])
        return self._relation.ids(found.signatures)[0] if found.exists[0] else None

    def explain(self, one: str, other: str) -> Explanation:
        """Compare two raw texts; every stage is worked out, also where an earlier one has decided."""
        found = self._fingerprinter.fingerprint([one, other])
        names = self._relation.ids(found.signatures)
        points = normal_points([one, other])
        kinds = classes()[points]
        letters = Sentences.of(points, kinds).letters_of_texts.tolist()
        rules, both = self.profile.agreement, bool(found.exists.all())
        overlap = (
            Overlap.of(points, kinds, number_weight=rules.number_weight)
            if rules is not None and both
            else None
        )
        shares = (None, None) if overlap is None else overlap.number_shares
        texts = [
            Text(
                letters=letters[at],
                fingerprint=names[at] if found.exists[at] else None,
                representatives=self._representatives(text, found.signatures[[at]])
                if found.exists[at]
                else [],
                number_share=shares[at],
            )
            for at, text in enumerate((one, other))
        ]
        pairs = _pairs(*texts)
        within = [pair for pair in pairs if pair.distance_bits <= self.profile.max_distance_bits]
        wholes = (
            Wholes.of(found.signatures[[0]], found.signatures[[1]], rules, overlap=overlap)
            if rules is not None and both
            else None
        )
        rule = _rule(texts[0].fingerprint, texts[1].fingerprint, within, wholes)
        return Explanation(
            profile=self.profile.label,
            one=texts[0],
            other=texts[1],
            max_distance_bits=self.profile.max_distance_bits,
            min_letters=self.profile.min_letters,
            pairs=within,
            nearest=pairs[0] if pairs else None,
            wholes=wholes,
            rule=rule,
            near=rule in NEAR,
            may_join=both and (wholes is None or wholes.may_join),
        )

    def representatives(self, text: str) -> list[Representative]:
        """Return what represents a raw text, each simhash once; nothing where it has no fingerprint."""
        found = self._fingerprinter.fingerprint([text])
        return self._representatives(text, found.signatures) if found.exists[0] else []

    def _representatives(self, text: str, signatures: Signatures) -> list[Representative]:
        kind: Literal["sentence", "words"] = (
            "words" if self.profile.representation == "keywords" else "sentence"
        )
        passages = (
            [" ".join(feature.word for feature in self._fingerprinter.features(text))]
            if kind == "words"
            else self._fingerprinter.passages(text)
        )
        simhashes = to_hex(self._relation.simhashes(signatures)[0])
        return [
            Representative(simhash=simhash, kind=kind, passage=passages[place])
            if place < len(passages)
            else Representative(simhash=simhash, kind="minhash", passage=None)
            for place, simhash in enumerate(simhashes)
            # Where sentences are fewer, some stand there twice.
            if simhash not in simhashes[:place]
        ]


def explain(one: str, other: str, profile: Profile) -> Explanation:
    """Tell why two raw texts are near each other under a profile, or why they are not."""
    return Explainer(profile).explain(one, other)


def _pairs(one: Text, other: Text) -> list[Pair]:
    """Return all pairs of representatives, the nearest first."""
    mine, theirs = (
        np.array([int(each.simhash, 16) for each in text.representatives], np.uint64) for text in (one, other)
    )
    distances = distance_bits(mine[:, None], theirs[None, :])
    pairs = [Pair(one=a, other=b, distance_bits=int(bits)) for (a, b), bits in np.ndenumerate(distances)]
    return sorted(pairs, key=lambda pair: pair.distance_bits)


def _rule(one: str | None, other: str | None, within: list[Pair], wholes: Wholes | None) -> Rule:
    if one is None or other is None:
        return Rule.NO_FINGERPRINT
    if one == other:
        return Rule.EQUAL
    if not within:
        return Rule.NOTHING_IN_COMMON
    if wholes is None:
        return Rule.WITHIN_DISTANCE
    if not wholes.agree:
        return Rule.UNLIKE
    if not wholes.may_join:
        return Rule.IN_THE_FIRST
    return Rule.RESEMBLE if wholes.resemblance >= wholes.needed else Rule.CONTAINED
