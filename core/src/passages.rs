//! The passages of a text: its sentences, as they are compared with those of other texts.
//!
//! Sites put the same passages around every article. To be found again, a passage is compared by its words alone. Dates
//! and times count as equal, since they change from page to page, except in long sentences.

use crate::characters::Point;
use crate::endings::Ending;
use crate::figures::have_figures;
use crate::hashing::{BASE, mixed};
use crate::sentences::Sentence;
use crate::tokens::Token;

// Thai and Lao have no full stop: a line of theirs is prose from so many letters on.
const UNSTOPPED: std::ops::Range<u32> = 0x0e00..0x0f00;
const LONG_LINE_LETTERS: usize = 40;
// "Posted 2026-11-22 07:30." has fewer.
const LONG_SENTENCE_LETTERS: usize = 30;

/// A sentence as a passage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// Equal for passages with the same words and figures.
    pub hash: u64,
    /// The number of letters and digits.
    pub letters: usize,
    /// Whether it ends as sentences of running text do, and not as a headline, a menu item, or a teaser.
    pub is_prose: bool,
    /// Whether it has a number that is not of a date or time; not asked of long sentences of prose.
    pub has_figures: bool,
}

impl Passage {
    /// Makes a passage of a sentence.
    ///
    /// `tokens` are those from its beginning on up to the next sentence: combining marks alone are tokens, but no
    /// sentence.
    pub fn of(points: &[Point], sentence: &Sentence, tokens: &[Token]) -> Passage {
        let ending = Ending::of(points, sentence.start, sentence.end);
        let letters = sentence.letters;
        let is_prose =
            ending.is_prose || (UNSTOPPED.contains(&ending.sign.code()) && letters >= LONG_LINE_LETTERS);
        // What a long sentence says may be its date.
        let is_long = is_prose && letters >= LONG_SENTENCE_LETTERS;
        let has_figures = !is_long && have_figures(points, tokens);
        let numbers_alike = !is_long && !has_figures;
        Passage { hash: hash(tokens, numbers_alike), letters, is_prose, has_figures }
    }
}

/// Returns a hash of some tokens in their order.
///
/// Tokens that have a given hash can be calculated, so it must not matter who finds some.
fn hash(tokens: &[Token], numbers_alike: bool) -> u64 {
    // By Horner's rule from the last: the first token counts once, the second times the base, and so on.
    let sum = tokens.iter().rev().fold(0u64, |sum, token| {
        let own = if numbers_alike && token.is_number { 1 } else { token.hash };
        sum.wrapping_mul(BASE).wrapping_add(own)
    });
    mixed(sum)
}
