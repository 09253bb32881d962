//! The tokens of a normal text: East Asian characters, runs of other letters, and numbers with the signs inside them.
//!
//! No dictionary is needed. A token is a hash and its units; two texts are compared by runs of them.

use crate::characters::{ASSIGNED, JOINER, NUMBER, Point, WIDE, WORD};
use crate::hashing::{BASE, mixed};

/// What a word or number counts: it carries about as much meaning as two Chinese characters.
pub const WORD_UNITS: u8 = 2;
// A power of two.
const FACTORS: usize = 64;
// Odd factors for the places in a token; longer tokens reuse them in turn.
const FACTOR: [u64; FACTORS] = {
    let mut factors = [0; FACTORS];
    let mut place = 0;
    while place < FACTORS {
        factors[place] = mixed(place as u64 + 1) | 1;
        place += 1;
    }
    factors
};

/// A token of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// Equal for equal tokens.
    pub hash: u64,
    /// Its first character.
    pub start: u32,
    /// `WORD_UNITS`, or 1 for an East Asian character.
    pub units: u8,
    /// Whether it is a number.
    pub is_number: bool,
}

/// How characters are hashed: the hash of one is `mixed(code * factor + offset)`. A benchmark tries other hashes.
#[derive(Clone, Copy, Debug)]
pub struct CharacterHash {
    /// Odd.
    pub factor: u64,
    /// What is added.
    pub offset: u64,
}

impl Default for CharacterHash {
    fn default() -> Self {
        CharacterHash { factor: BASE, offset: BASE }
    }
}

impl CharacterHash {
    #[inline]
    fn of(self, point: Point) -> u64 {
        let code = point.code().min(ASSIGNED - 1);
        mixed(u64::from(code).wrapping_mul(self.factor).wrapping_add(self.offset))
    }
}

/// Appends the tokens of a normal text that ends with `Point::END`, in their order.
///
/// `letters` gets the text in UTF-16 without all that is in no token, with a space where two tokens would be one
/// without it, and the end at its end: what `content_hash` is made from.
pub fn tokenise(points: &[Point], hash: CharacterHash, tokens: &mut Vec<Token>, letters: &mut Vec<u8>) {
    let mut at = 0;
    // The role of the last token.
    let mut last = 0;
    while at < points.len() {
        let role = points[at].role();
        let start = at;
        match role {
            WIDE => {
                tokens.push(Token {
                    hash: hash.of(points[at]),
                    start: at as u32,
                    units: 1,
                    is_number: false,
                });
                append_utf16(points[at], letters);
                at += 1;
            }
            WORD | NUMBER => {
                if last == role {
                    letters.extend(u16::to_le_bytes(b' '.into()));
                }
                let mut sum = hash.of(points[at]);
                append_utf16(points[at], letters);
                at += 1;
                while points[at].role() == role || (role == NUMBER && joins_numbers(points, at)) {
                    sum = sum.wrapping_add(hash.of(points[at]).wrapping_mul(FACTOR[(at - start) % FACTORS]));
                    append_utf16(points[at], letters);
                    at += 1;
                }
                let (units, is_number) = (WORD_UNITS, role == NUMBER);
                tokens.push(Token { hash: sum, start: start as u32, units, is_number });
            }
            _ => {
                at += 1;
                continue;
            }
        }
        last = role;
    }
    append_utf16(Point::END, letters);
}

/// Whether a sign belongs to a number, being between two digits.
fn joins_numbers(points: &[Point], at: usize) -> bool {
    points[at].role() == JOINER && points[at - 1].role() == NUMBER && points[at + 1].role() == NUMBER
}

/// Appends a character in UTF-16, in which East Asian texts are shortest.
#[inline]
fn append_utf16(point: Point, bytes: &mut Vec<u8>) {
    let code = point.code();
    if code < 0x10000 {
        bytes.extend_from_slice(&(code as u16).to_le_bytes());
    } else {
        let rest = code - 0x10000;
        bytes.extend_from_slice(&(0xd800 + (rest >> 10) as u16).to_le_bytes());
        bytes.extend_from_slice(&(0xdc00 + (rest & 0x3ff) as u16).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_form::{normalise, to_string};

    fn cut(text: &str) -> Vec<String> {
        let (mut points, mut tokens, mut letters) = (Vec::new(), Vec::new(), Vec::new());
        normalise(text, usize::MAX, &mut points);
        tokenise(&points, CharacterHash::default(), &mut tokens, &mut letters);
        let ends = tokens.iter().skip(1).map(|each| each.start as usize).chain([points.len() - 1]);
        let parts = tokens.iter().zip(ends).map(|(each, end)| to_string(&points[each.start as usize..end]));
        parts.map(|each| each.trim_matches([' ', ',']).to_owned()).collect()
    }

    #[test]
    fn a_text_is_cut_into_characters_words_and_numbers() {
        assert_eq!(cut("地铁 7 号线"), ["地", "铁", "7", "号", "线"]);
        assert_eq!(cut("1,234.5 at 10:30, then 2"), ["1,234.5", "at", "10:30", "then", "2"]);
        assert_eq!(cut("iphone15 pro"), ["iphone", "15", "pro"]);
        assert_eq!(cut("ตลาด"), ["ต", "ล", "า", "ด"]);
        assert_eq!(cut("यह हिन्दी है"), ["यह", "हिन्दी", "है"]);
    }
}
