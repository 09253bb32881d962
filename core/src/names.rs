//! What tells one form from another that was filled in with other names, in 8 bytes of a signature: a name is
//! repeated, and exchanged wherever it stands; of other words that are exchanged, most stand elsewhere in the text too.
//!
//! An odd sketch of a text's words, another of those that it repeats, in which each word has the same place, and how many
//! these are. A word is a token that is no number.

use crate::hashing::BASE;
use crate::tokens::Token;

/// A shorter text has no sketch of its names, and is no form.
pub const LEAST_NAME_UNITS: usize = 200;

const BITS: u32 = 30;
const MASK: u64 = (1 << BITS) - 1;
// Of the number, the lowest bits.
const COUNT: u32 = 2 * BITS;
// So many counters for each token that two words hardly ever share one.
const COUNTERS_A_TOKEN: usize = 16;
// What a word hits that came so many times before; more than twice is twice.
const HIT: [u64; 4] = [1 << BITS, 1, 0, 0];

/// Sketches the words of a text.
pub fn name_sketch(tokens: &[Token]) -> u64 {
    let size = (tokens.len() * COUNTERS_A_TOKEN).next_power_of_two();
    let mut counters = vec![0u8; size];
    let (mut sketch, mut count) = (0, 0u64);
    for token in tokens.iter().filter(|token| token.is_word) {
        // The higher a bit of a product, the better it is.
        let hash = (token.hash ^ token.hash >> 32).wrapping_mul(BASE) >> 8;
        let place = ((hash >> 11 & 0xffff) * u64::from(BITS)) >> 16;
        let counter = &mut counters[(hash >> 27) as usize & (size - 1)];
        // Without a branch, which nobody could predict.
        let times = usize::from(*counter) & 3;
        *counter = (*counter + 1).min(2);
        sketch ^= HIT[times] << place;
        count += HIT[times] & 1;
    }
    count << COUNT | sketch
}

/// Compares two sketches. Estimates how many words only one of the two texts has, how many of these it repeats, how many
/// both have, but only one repeats, and how many more words the first repeats, from -8 to 7.
#[inline]
pub fn differences(one: u64, other: u64) -> [f64; 4] {
    let differ = one ^ other;
    let (words, repeated) = (differ >> BITS & MASK, differ & MASK);
    // The highest bit is the sign.
    let more = ((one >> COUNT << COUNT).wrapping_sub(other >> COUNT << COUNT) as i64 >> COUNT) as i32;
    let [words, names, others] =
        [words, words & repeated, repeated & !words].map(u64::count_ones).map(f64::from);
    [words, names, others, more.into()]
}
