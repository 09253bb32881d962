"""The tokens of a batch of normalised texts, and hashes of runs of them.

A token is an East Asian character, a run of other letters, or a number with the signs inside it. No
dictionary is needed. All work is on arrays of code points; no token becomes a Python object.
"""

import dataclasses
import functools

import numpy as np
import numpy.typing as npt

from esdedup.text.characters import ASSIGNED, JOINER, NUMBER, TOKEN_END, TOKEN_SHIFT, WIDE, WORD
from esdedup.text.hashing import mixed

# A word carries about as much meaning as two Chinese characters.
_WORD_UNITS = 2
LONGEST_RUN_UNITS = 4
"""The longest run, in units: an East Asian character is one unit, a word or number two."""
# A power of two.
_MULTIPLIERS = 64
# Odd, so that it has an inverse modulo 2^64.
_BASE = 0x9E3779B97F4A7C15
_MIN_POWERS_BITS = 17

Hashes = npt.NDArray[np.uint64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Runs:
    """Runs of consecutive tokens, group by group."""

    # uint64 (n,): equal for runs of the same tokens in the same order.
    hashes: Hashes
    # bool (n,): whether each contains a number.
    have_number: npt.NDArray[np.bool_]
    # int64 (g,): the number of runs in each group.
    counts: npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tokens:
    """All tokens of a batch, in their order. The end of each text is a token too."""

    # int64 (n,): the position of each token's first code point.
    starts: npt.NDArray[np.int64]
    # bool (n,): whether each token is a number.
    are_numbers: npt.NDArray[np.bool_]
    # int64 (t,): the tokens that are the ends of texts.
    ends: npt.NDArray[np.int64]
    # uint8 (n,): the number of units of each token.
    _units: npt.NDArray[np.uint8]
    # uint64 (n + 1,): for each token the sum over all earlier ones of hash times power of the base, modulo
    # 2^64. The difference of two sums is a polynomial hash of the tokens between them.
    _sums: Hashes

    @classmethod
    def of(cls, points: npt.NDArray[np.uint32], roles: npt.NDArray[np.uint8]) -> "Tokens":
        """Find the tokens of a batch.

        Args:
            points: Of `NormalTexts`, uint32 ``(p,)``.
            roles: Of the points, as `roles_in_tokens` returns them, uint8 ``(p,)``.
        """
        is_start = roles >= WIDE
        is_rest = (roles > 0) & ~is_start
        # A word or number continues while its characters have the same role.
        continues = is_rest[1:] & (roles[1:] == roles[:-1])
        is_start |= is_rest
        is_start[1:] ^= continues
        starts = is_start.nonzero()[0]
        roles = roles.take(starts)
        return cls._of_columns(
            starts=starts,
            are_numbers=roles == NUMBER,
            ends=(roles == TOKEN_END).nonzero()[0],
            units=_units().take(roles),
            terms=_hashes(points, starts, continues) * _powers(len(starts))[0][: len(starts)],
        )

    @classmethod
    def _of_columns(
        cls,
        *,
        starts: npt.NDArray[np.int64],
        are_numbers: npt.NDArray[np.bool_],
        ends: npt.NDArray[np.int64],
        units: npt.NDArray[np.uint8],
        terms: Hashes,
    ) -> "Tokens":
        sums = np.zeros(len(starts) + 1, np.uint64)
        terms.cumsum(out=sums[1:])
        return cls(
            starts=starts,
            are_numbers=are_numbers,
            ends=ends,
            _units=units,
            _sums=sums,
        )

    @property
    def starts_of_texts(self) -> npt.NDArray[np.int64]:
        """The first token of each text, its end if it has no other: int64 ``(t,)``."""
        return np.concatenate(([0], self.ends[:-1] + 1))[: len(self.ends)]

    @property
    def starts_of_parted(self) -> npt.NDArray[np.int64]:
        """The positions of words after words, and of numbers after numbers: int64 ``(m,)``."""
        are_long = self._units == _WORD_UNITS
        are_parted = are_long[1:] & are_long[:-1] & (self.are_numbers[1:] == self.are_numbers[:-1])
        return self.starts[1:].compress(are_parted)

    def runs_of_texts(self, *, units: int) -> Runs:
        """Return the runs of each text, as `runs` does, faster."""
        firsts, ends = self.starts_of_texts, self.ends
        lengths, have_number = self._runs(units)
        # Only from an end, and from a text's last few tokens but the first, do runs reach beyond the text.
        tails = ends[:, None] - np.arange(units)
        may_leave = tails > firsts[:, None]
        may_leave[:, 0] = True
        tails = tails[may_leave]
        kept = np.ones(len(self.starts), bool)
        kept[tails] = tails + lengths[tails] <= ends.repeat(may_leave.sum(axis=1))
        lengths[firsts] = np.minimum(lengths[firsts], ends - firsts)
        hashes = self._sums.take(np.arange(len(lengths)) + lengths)
        hashes -= self._sums[:-1]
        hashes *= _powers(len(self.starts))[1][: len(hashes)]
        return Runs(
            hashes=mixed(hashes.compress(kept)),
            have_number=have_number.compress(kept),
            counts=np.add.reduceat(kept, firsts, dtype=np.int64),
        )

    def runs(self, *, units: int, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> Runs:
        """Return the runs of each group of tokens.

        A run starts at each token and takes as many tokens as fill `units`. Runs that would leave their
        group are dropped; a group too small for any run is a run as a whole.

        Args:
            units: The least size of a run, 1 to `LONGEST_RUN_UNITS`.
            starts: The first token of each group, int64 ``(g,)``.
            stops: The token after the last of each group, int64 ``(g,)``. A group is not empty and lies
                within one text.
        """
        counts = stops - starts
        groups = np.arange(len(counts)).repeat(counts)
        tokens = np.arange(len(groups)) + (stops - counts.cumsum())[groups]
        lengths, have_number = self._runs(units)
        run_stops = tokens + lengths[tokens]
        kept = (run_stops <= stops[groups]) | (tokens == starts[groups])
        tokens, groups = tokens.compress(kept), groups.compress(kept)
        # Until here a hash is a sum over characters: words with equal low bits are found by adding up.
        return Runs(
            hashes=self.hashes(tokens, np.minimum(run_stops.compress(kept), stops[groups])),
            have_number=have_number.take(tokens),
            counts=np.bincount(groups, minlength=len(counts)),
        )

    def _runs(self, units: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        """Return how many tokens from each one on fill `units`, ``(n,)``, and whether one is a number.

        An end counts as a token that fills all.
        """
        lengths, filled = np.ones(len(self._units), np.uint8), self._units.copy()
        have_number = self.are_numbers.copy()
        for step in range(1, units):
            goes_on = filled[:-step] < units
            lengths[:-step] += goes_on
            filled[:-step] += goes_on * self._units[step:]
            have_number[:-step] |= goes_on & self.are_numbers[step:]
        return lengths, have_number

    def of_spans(
        self, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first token of each span of code points, and the one after its last: ``(s,)`` each.

        Args:
            starts: The first position of each span, int64 ``(s,)``.
            ends: The position after its last, int64 ``(s,)``.
        """
        first, stop = self.starts.searchsorted((starts, ends))
        return first, stop

    def hashes(
        self, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64], *, numbers_alike: bool = False
    ) -> Hashes:
        """Return a hash of each group of tokens: uint64 ``(g,)``, 0 for an empty group.

        Tokens that have a given hash can be calculated, so it must not matter who finds some.

        Args:
            starts: The first token of each group, int64 ``(g,)``.
            stops: The token after its last, int64 ``(g,)``.
            numbers_alike: Whether all numbers count as equal.
        """
        powers, inverses = _powers(len(self.starts))
        hashes = self._sums.take(stops)
        hashes -= self._sums.take(starts)
        if numbers_alike:
            numbers = self.are_numbers.nonzero()[0]
            # What the sums change by if every number has the hash 1.
            changes = np.zeros(len(numbers) + 1, np.uint64)
            own = powers.take(numbers) + self._sums.take(numbers) - self._sums.take(numbers + 1)
            own.cumsum(out=changes[1:])
            hashes += changes.take(numbers.searchsorted(stops))
            hashes -= changes.take(numbers.searchsorted(starts))
        hashes *= inverses.take(starts)
        return mixed(hashes)

    def without(self, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> "Tokens":
        """Return the tokens without some groups, as if those were not in the texts.

        Args:
            starts: The first token of each group, int64 ``(g,)``, ascending; none is the end of a text.
            stops: The token after its last, int64 ``(g,)``; at most the next group's first.
        """
        # By turns what is kept and what is not, and how much was left out before what is kept.
        bounds = np.stack((starts, stops), axis=1).reshape(-1)
        lengths = np.diff(bounds, prepend=0, append=len(self.starts))
        kept = (np.arange(len(lengths)) % 2 == 0).repeat(lengths)
        left_out = np.append(0, (stops - starts).cumsum())
        terms = (self._sums[1:] - self._sums[:-1]).compress(kept)
        terms *= _powers(len(self.starts))[1].take(left_out).repeat(lengths[::2])
        return Tokens._of_columns(
            starts=self.starts.compress(kept),
            are_numbers=self.are_numbers.compress(kept),
            ends=self.ends - left_out.take(starts.searchsorted(self.ends)),
            units=self._units.compress(kept),
            terms=terms,
        )


def roles_in_tokens(kinds: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the role of each character in its token, 0 for those in no token: uint8 ``(p,)``.

    Args:
        kinds: The `classes` of a batch's points, uint8 ``(p,)``.
    """
    roles = kinds >> TOKEN_SHIFT
    joiners = (roles == JOINER).nonzero()[0]
    if len(joiners):
        # The last point is a separator, so every joiner has a next point.
        joined = (roles[joiners - 1] == NUMBER) & (roles[joiners + 1] == NUMBER)
        roles[joiners] = joined * NUMBER
    return roles


def _hashes(
    points: npt.NDArray[np.uint32], starts: npt.NDArray[np.int64], goes_on: npt.NDArray[np.bool_]
) -> Hashes:
    """Return a hash of each token: uint64 ``(n,)``.

    Args:
        points: Code points, ``(p,)``.
        starts: The position of each token's first point, ``(n,)``, ascending.
        goes_on: Whether the token of each point but the last has another point after it, ``(p - 1,)``.
    """
    hashes = _character_hashes().take(points.take(starts), mode="clip")
    rest = goes_on.nonzero()[0] + 1
    if len(rest):
        terms = _character_hashes().take(points.take(rest), mode="clip")
        is_second = np.ones(len(rest), bool)
        is_second[1:] = rest[1:] - rest[:-1] > 1
        places = rest - np.maximum.accumulate((rest - 1) * is_second)
        terms *= _multipliers().take(places & (_MULTIPLIERS - 1))
        # The last token is the end of a text, one character.
        several = goes_on.take(starts[:-1]).nonzero()[0]
        hashes[several] += np.add.reduceat(terms, is_second.nonzero()[0])
    return hashes


@functools.cache
def _units() -> npt.NDArray[np.uint8]:
    """Return the units of a token, by the role of its first character."""
    units = np.ones(TOKEN_END + 1, np.uint8)
    units[[NUMBER, WORD]] = _WORD_UNITS
    # An end fills a run, so that no run reaches beyond the next text.
    units[TOKEN_END] = LONGEST_RUN_UNITS
    return units


@functools.cache
def _character_hashes() -> Hashes:
    """Return a hash of each code point; those from `ASSIGNED` on share the last hash."""
    return mixed(np.arange(1, ASSIGNED + 1, dtype=np.uint64) * np.uint64(_BASE))


@functools.cache
def _multipliers() -> Hashes:
    """Return an odd factor for each place in a token; longer tokens reuse the factors in turn."""
    return mixed(np.arange(1, _MULTIPLIERS + 1, dtype=np.uint64)) | np.uint64(1)


@functools.lru_cache(maxsize=2)
def _table_of_powers(size: int) -> tuple[Hashes, Hashes]:
    """Return the first powers of the base modulo 2^64, and of its inverse: ``(size,)`` each."""
    tables = []
    for base in (_BASE, pow(_BASE, -1, 2**64)):
        factors = np.full(size, base, np.uint64)
        factors[0] = 1
        tables.append(np.cumprod(factors))
    return tables[0], tables[1]


def _powers(count: int) -> tuple[Hashes, Hashes]:
    """Return at least the first `count` powers; sizes are rounded up, so that few tables are made."""
    return _table_of_powers(1 << max(_MIN_POWERS_BITS, count.bit_length()))
