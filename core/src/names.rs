//! The sketch of names, 8 bytes of a signature, which detects forms: texts that differ only in the names filled in.
//! If another name is filled in, every occurrence of the name changes; most other replaced words still occur elsewhere.
//!
//! The sketch has an odd sketch (`signature.rs`) of the text's words, a second odd sketch of the repeated words, in which
//! each word has the same bit, and the number of repeated words. A word is any token that is not a number.

use crate::hashing::BASE;
use crate::tokens::Token;

/// The minimum length, in units, of a text with a sketch of names. A shorter text is never treated as a form.
pub const LEAST_NAME_UNITS: usize = 200;

const BITS: u32 = 30;
const MASK: u64 = (1 << BITS) - 1;
// The first bit of the number of repeated words; only the lowest 4 bits of the number are kept.
const COUNT: u32 = 2 * BITS;
// With 16 counters per token, two words rarely share a counter.
const COUNTERS_PER_TOKEN: usize = 16;
// The bits that the first and second occurrence of a word toggle; later occurrences toggle none.
const HIT: [u64; 4] = [1 << BITS, 1, 0, 0];

/// Returns the sketch of a text's words.
pub fn name_sketch(tokens: &[Token]) -> u64 {
    let size = (tokens.len() * COUNTERS_PER_TOKEN).next_power_of_two();
    let mut counters = vec![0u8; size];
    let (mut sketch, mut count) = (0, 0u64);
    for token in tokens.iter().filter(|token| token.is_word) {
        // The high bits of a product are mixed best.
        let hash = (token.hash ^ token.hash >> 32).wrapping_mul(BASE) >> 8;
        let place = ((hash >> 11 & 0xffff) * u64::from(BITS)) >> 16;
        let counter = &mut counters[(hash >> 27) as usize & (size - 1)];
        // This avoids a branch, which the processor could not predict.
        let times = usize::from(*counter) & 3;
        *counter = (*counter + 1).min(2);
        sketch ^= HIT[times] << place;
        count += HIT[times] & 1;
    }
    count << COUNT | sketch
}

/// Compares two sketches and estimates four numbers: how many words only one text has; how many of these words are
/// repeated in that text; how many words of both texts are repeated in only one text; and the difference between the
/// numbers of repeated words, from -8 to 7.
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
