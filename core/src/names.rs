//! The sketch of names, 8 bytes of a signature, by which two forms (the same text with other names filled in) are told
//! apart: a name is repeated, and replaced wherever it stands; most other words that are replaced stand elsewhere too.
//!
//! It has an odd sketch (`signature.rs`) of a text's words; another of the words that the text repeats, in which each
//! word hits the same bit; and the number of repeated words. A word is a token other than a number.

use crate::hashing::BASE;
use crate::tokens::Token;

/// A shorter text has no sketch of names, and is never taken for a form.
pub const LEAST_NAME_UNITS: usize = 200;

const BITS: u32 = 30;
const MASK: u64 = (1 << BITS) - 1;
// The first bit of the number of repeated words; only the lowest 4 bits of the number are kept.
const COUNT: u32 = 2 * BITS;
// With 16, two words hardly ever share a counter.
const COUNTERS_A_TOKEN: usize = 16;
// The bits that a word toggles when it comes for the first and the second time; after that, it toggles none.
const HIT: [u64; 4] = [1 << BITS, 1, 0, 0];

/// Sketches the words of a text.
pub fn name_sketch(tokens: &[Token]) -> u64 {
    let size = (tokens.len() * COUNTERS_A_TOKEN).next_power_of_two();
    let mut counters = vec![0u8; size];
    let (mut sketch, mut count) = (0, 0u64);
    for token in tokens.iter().filter(|token| token.is_word) {
        // The higher a bit of a product, the better it is mixed.
        let hash = (token.hash ^ token.hash >> 32).wrapping_mul(BASE) >> 8;
        let place = ((hash >> 11 & 0xffff) * u64::from(BITS)) >> 16;
        let counter = &mut counters[(hash >> 27) as usize & (size - 1)];
        // Without a branch, which the processor could not predict.
        let times = usize::from(*counter) & 3;
        *counter = (*counter + 1).min(2);
        sketch ^= HIT[times] << place;
        count += HIT[times] & 1;
    }
    count << COUNT | sketch
}

/// Compares two sketches. Estimates how many words only one of the two texts has; how many of these that text repeats;
/// how many words both have but only one repeats; and how many more words the first repeats, from -8 to 7.
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
