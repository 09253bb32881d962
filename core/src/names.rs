//! What tells one form from another that was filled in with other names, in 8 bytes of a signature: a name is
//! repeated, and exchanged wherever it stands; of other words that are exchanged, most stand elsewhere in the text too.
//!
//! An odd sketch of a text's words, another of those that it repeats, in which each word has the same place, and how many
//! these are. A word is a token that is no number.

use crate::hashing::BASE;
use crate::tokens::Token;

const BITS: u32 = 30;
const MASK: u64 = (1 << BITS) - 1;
// Of the number, the lowest bits.
const COUNT: u32 = 2 * BITS;
// Counters of 2 bits, so many for each token that two words hardly ever share one.
const COUNTERS_A_TOKEN: usize = 16;
const COUNTERS: usize = 32;

/// Sketches the words of a text.
pub fn name_sketch(tokens: &[Token]) -> u64 {
    let size = (tokens.len() * COUNTERS_A_TOKEN / COUNTERS).next_power_of_two();
    let mut counters = vec![0u64; size];
    let (mut words, mut repeated, mut count) = (0, 0, 0u64);
    for token in tokens.iter().filter(|token| token.is_word) {
        // The higher a bit of a product, the better it is.
        let hash = (token.hash ^ token.hash >> 32).wrapping_mul(BASE) >> 8;
        let counter = &mut counters[(hash >> 32) as usize & (size - 1)];
        let shift = (hash >> 27 & 31) * 2;
        let place = ((hash >> 11 & 0xffff) * u64::from(BITS)) >> 16;
        // Without a branch, which nobody could predict.
        let times = *counter >> shift & 3;
        let (is_first, is_second) = (u64::from(times == 0), u64::from(times == 1));
        *counter += (is_first | is_second) << shift;
        words ^= is_first << place;
        repeated ^= is_second << place;
        count += is_second;
    }
    count << COUNT | words << BITS | repeated
}

/// How the words of two texts differ, estimated from their sketches.
pub struct Names {
    /// How many words only one of the two has.
    pub words: u32,
    /// How many of these it repeats.
    pub names: u32,
    /// How many words both have, but only one repeats.
    pub others: u32,
    /// How many more words the first repeats, from -8 to 7.
    pub more: i32,
}

impl Names {
    /// Compares two sketches.
    #[inline]
    pub fn of(one: u64, other: u64) -> Names {
        let differ = one ^ other;
        let (words, repeated) = (differ >> BITS & MASK, differ & MASK);
        let counts = [one, other].map(|sketch| sketch >> COUNT << COUNT);
        Names {
            words: words.count_ones(),
            names: (words & repeated).count_ones(),
            others: (repeated & !words).count_ones(),
            // The highest bit is the sign.
            more: (counts[0].wrapping_sub(counts[1]) as i64 >> COUNT) as i32,
        }
    }
}
