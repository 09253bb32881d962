//! Runs of tokens: what texts are compared by. A run takes as many tokens as fill its units. Here too is the exact
//! overlap of two texts, which sketches only estimate.

use std::collections::HashMap;

use crate::hashing::{BASE, mixed};
use crate::tokens::Token;

/// The units of runs in a sketch: four East Asian characters, or two words.
pub const TEXT_UNITS: u8 = 4;
/// The units of runs in a sentence: short ones survive small edits best.
pub const SENTENCE_UNITS: u8 = 2;

// A run has four tokens at most, one for each unit. Fixed factors are multiplied at once, not one after the other.
const POWERS: [u64; TEXT_UNITS as usize] = {
    let square = BASE.wrapping_mul(BASE);
    [1, BASE, square, square.wrapping_mul(BASE)]
};

/// Some consecutive tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Equal for runs of the same tokens in the same order.
    pub hash: u64,
    /// Whether one of them is a number.
    pub has_number: bool,
}

/// Yields the runs of some tokens.
///
/// A run starts at each token. Those that would go on beyond the last are left out; too few tokens for any run are a run
/// as a whole. `units` is `TEXT_UNITS` at most.
#[inline]
pub fn runs(tokens: &[Token], units: u8) -> impl Iterator<Item = Run> {
    (0..tokens.len()).map_while(move |start| {
        let (mut sum, mut filled, mut has_number) = (0u64, 0, false);
        for (token, power) in tokens[start..].iter().zip(POWERS) {
            // Until here a hash is a sum over characters: words with equal low bits are found by adding up.
            sum = sum.wrapping_add(token.hash.wrapping_mul(power));
            has_number |= token.is_number;
            filled += token.units;
            if filled >= units {
                return Some(Run { hash: mixed(sum), has_number });
            }
        }
        // Those after it have no more room.
        (start == 0).then(|| Run { hash: mixed(sum), has_number })
    })
}

/// Compares two texts by their tokens. Returns how many distinct runs both have, the one, and the other: first of the
/// runs without a number, then of those with one.
pub fn overlap(one: &[Token], other: &[Token]) -> [(usize, usize, usize); 2] {
    let (ours, theirs) = (distinct_runs(one), distinct_runs(other));
    [false, true].map(|with_number| {
        let count = |runs: &HashMap<u64, bool>| runs.values().filter(|kind| **kind == with_number).count();
        let shared = ours.iter().filter(|(run, kind)| **kind == with_number && theirs.get(run) == Some(kind));
        (shared.count(), count(&ours), count(&theirs))
    })
}

/// Returns the distinct runs of a text, and whether each has a number.
fn distinct_runs(tokens: &[Token]) -> HashMap<u64, bool> {
    let mut found = HashMap::new();
    for run in runs(tokens, TEXT_UNITS) {
        found.entry(run.hash).or_insert(run.has_number);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(hash: u64, units: u8) -> Token {
        Token { hash, start: 0, units, is_number: hash == 7 }
    }

    #[test]
    fn runs_fill_their_units_and_do_not_leave_the_text() {
        let tokens = [1, 1, 2, 1, 2].map(|units| token(7 + u64::from(units), units));
        assert_eq!(runs(&tokens, TEXT_UNITS).count(), 3);
        assert_eq!(runs(&tokens[..2], TEXT_UNITS).count(), 1);
        assert_eq!(runs(&[], TEXT_UNITS).count(), 0);
        let one = runs(&tokens[2..3], TEXT_UNITS).next();
        assert_eq!(one, Some(Run { hash: mixed(9), has_number: false }));
        assert!(runs(&[token(8, 2), token(7, 2)], TEXT_UNITS).next().is_some_and(|run| run.has_number));
    }
}
