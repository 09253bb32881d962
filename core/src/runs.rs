//! Runs of tokens, by which texts are compared. A run consists of just enough consecutive tokens to fill a given
//! number of units. This module also computes the exact overlap of two texts, which sketches only estimate.

use std::collections::HashSet;

use crate::hashing::{BASE, mixed};
use crate::tokens::Token;

/// The length of a run in a sketch, in units: a word is two units, an East Asian character is one.
pub const TEXT_UNITS: u8 = 4;
/// The length of a run in a sentence. These runs are short, because short runs survive small edits best.
pub const SENTENCE_UNITS: u8 = 2;
/// The length of a long run; unrelated texts rarely share one.
const LONG_UNITS: u8 = 16;

// A run has at most one token per unit. Precomputed powers let the processor multiply in parallel.
const POWERS: [u64; TEXT_UNITS as usize] = powers();
// A rolling window briefly holds one token more than a long run.
pub const LONG_POWERS: [u64; LONG_UNITS as usize + 1] = powers();

const fn powers<const COUNT: usize>() -> [u64; COUNT] {
    let mut powers = [1; COUNT];
    let mut place = 1;
    while place < powers.len() {
        powers[place] = BASE.wrapping_mul(powers[place - 1]);
        place += 1;
    }
    powers
}

/// Yields the hashes of the runs of the given tokens. Runs of the same tokens in the same order have equal hashes.
///
/// A run starts at each token, unless too few tokens follow. If all tokens together do not fill a run, they are
/// treated as one run. `units` is at most [`TEXT_UNITS`].
#[inline]
pub fn runs(tokens: &[Token], units: u8) -> impl Iterator<Item = u64> {
    (0..tokens.len()).map_while(move |start| {
        let (mut sum, mut filled) = (0u64, 0);
        for (token, power) in tokens[start..].iter().zip(POWERS) {
            // `mixed` is needed: token hashes are sums over characters, so words with equal low bits are easy to
            // construct.
            sum = sum.wrapping_add(token.hash.wrapping_mul(power));
            filled += token.units;
            if filled >= units {
                return Some(mixed(sum));
            }
        }
        // Too few tokens are left for a run.
        (start == 0).then(|| mixed(sum))
    })
}

/// Yields the hashes of the long runs of the given tokens; yields nothing if the tokens do not fill a long run.
pub fn long_runs(tokens: &[Token]) -> impl Iterator<Item = u64> {
    // A rolling hash (Karp, Rabin 1987) subtracts a token that leaves the window, multiplied by its power.
    let (mut first, mut sum, mut filled) = (0, 0u64, 0);
    tokens.iter().enumerate().filter_map(move |(last, token)| {
        sum = sum.wrapping_mul(BASE).wrapping_add(token.hash);
        filled += token.units;
        // Choose the shortest run that ends here, since it does not depend on earlier tokens.
        while filled - tokens[first].units >= LONG_UNITS {
            sum = sum.wrapping_sub(tokens[first].hash.wrapping_mul(LONG_POWERS[last - first]));
            filled -= tokens[first].units;
            first += 1;
        }
        (filled >= LONG_UNITS).then(|| mixed(sum))
    })
}

/// Returns the hashes of a text's figures, and of the pairs of consecutive figures. The first and the last figure
/// also form pairs with the start and the end of the text. Repetitions of a value have different hashes.
pub fn figures(tokens: &[Token]) -> [Vec<u64>; 2] {
    let figures = tokens.iter().filter(|token| token.is_number);
    let figures: Vec<u64> = figures.map(|token| token.hash).collect();
    let mut last = 0u64;
    let pairs = figures.iter().chain([&0]).map(|&next| {
        let pair = last.wrapping_mul(BASE).wrapping_add(next);
        last = mixed(next);
        pair
    });
    let pairs = each_time(pairs.collect());
    [each_time(figures), pairs]
}

fn each_time(mut found: Vec<u64>) -> Vec<u64> {
    found.sort_unstable();
    let (mut last, mut times) = (0, 0u64);
    for figure in &mut found {
        times = if *figure == last { times + 1 } else { 0 };
        last = *figure;
        *figure = mixed(last.wrapping_add(times.wrapping_mul(BASE)));
    }
    found
}

/// The number of features in both texts, in the first text, and in the second text.
pub type Overlap = (usize, usize, usize);

/// Returns the overlap of two texts in their distinct runs, and in their figures.
pub fn overlap(one: &[Token], other: &[Token]) -> [Overlap; 2] {
    let runs = |tokens| runs(tokens, TEXT_UNITS).collect::<HashSet<u64>>();
    let figures = |tokens| figures(tokens)[0].iter().copied().collect::<HashSet<u64>>();
    [(runs(one), runs(other)), (figures(one), figures(other))]
        .map(|(one, other)| (one.intersection(&other).count(), one.len(), other.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(hash: u64, units: u8) -> Token {
        Token { hash, start: 0, units, thirds: 3 * units, is_number: hash == 7, is_word: hash != 7 }
    }

    #[test]
    fn runs_fill_their_units_and_stop_at_the_end() {
        let tokens = [1, 1, 2, 1, 2].map(|units| token(7 + u64::from(units), units));
        assert_eq!(runs(&tokens, TEXT_UNITS).count(), 3);
        assert_eq!(runs(&tokens[..2], TEXT_UNITS).count(), 1);
        assert_eq!(runs(&[], TEXT_UNITS).count(), 0);
        assert_eq!(runs(&tokens[2..3], TEXT_UNITS).next(), Some(mixed(9)));
    }

    #[test]
    fn long_runs_do_not_depend_on_earlier_tokens() {
        let tokens: Vec<Token> = (1..60).map(|each| token(mixed(each), each as u8 % 3 / 2 + 1)).collect();
        let all: Vec<u64> = long_runs(&tokens).collect();
        assert!(all.len() > 40);
        for start in 1..40 {
            let found: Vec<u64> = long_runs(&tokens[start..]).collect();
            assert!(all.ends_with(&found) && !found.is_empty());
        }
        assert_eq!(long_runs(&tokens[..8]).count(), 0);
    }

    #[test]
    fn repeated_figures_have_different_hashes() {
        let tokens = [7, 8, 7, 7].map(|hash| token(hash, 2));
        let [found, pairs] = figures(&tokens);
        assert_eq!(found[..2], figures(&tokens[..3])[0]);
        assert_eq!(found.iter().collect::<HashSet<_>>().len(), 3);
        assert_eq!(overlap(&tokens, &tokens[..2])[1], (1, 3, 1));
        assert_eq!(pairs.len(), 4);
    }
}
