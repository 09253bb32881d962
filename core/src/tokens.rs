//! Divides a normalised text into tokens, without a dictionary: East Asian characters, series of other letters, and
//! numbers with the signs inside them. Also computes the content hash of all tokens, and the words of a text.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use crate::characters::{ASSIGNED, FIRST_WIDE, JOINER, NUMBER, Point, STOP, WIDE, WORD, tables};
use crate::hashing::{BASE, mixed};

/// The number of units in a word or number, which carries about as much meaning as two Chinese characters.
pub const WORD_UNITS: u8 = 2;
const THIRDS: u8 = 3;
const FACTORS: usize = 64; // a power of two
// An odd factor for each position in a token; longer tokens reuse the factors cyclically.
const FACTOR: [u64; FACTORS] = {
    let mut factors = [0; FACTORS];
    let mut place = 0;
    while place < FACTORS {
        factors[place] = mixed(place as u64 + 1) | 1;
        place += 1;
    }
    factors
};

// The number of digits in each group of a large number, and the maximum number of groups after the first.
const THOUSANDS_DIGITS: usize = 3;
const MOST_THOUSANDS: usize = 4;

/// A token of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// A hash, equal for equal words and for equal numbers.
    pub hash: u64,
    /// The position of the first character.
    pub start: u32,
    /// [`WORD_UNITS`], or 1 for a character that is a token by itself.
    pub units: u8,
    /// The length in thirds of a unit. A letter of Thai, which has no spaces, is a third of a Chinese character.
    pub thirds: u8,
    /// Whether the token is a number; after `figures.rs` has examined the passages, whether it is a figure.
    pub is_number: bool,
    /// Whether the token consists of letters or East Asian characters.
    pub is_word: bool,
}

/// Returns the length of a text in units.
pub fn units<'a>(tokens: impl IntoIterator<Item = &'a Token>) -> usize {
    tokens.into_iter().map(|token| usize::from(token.thirds)).sum::<usize>() / usize::from(THIRDS)
}

/// The hash of a character: `mixed(code * factor + offset)`. A benchmark tries other factors and offsets.
#[derive(Clone, Copy, Debug)]
pub struct CharacterHash {
    factor: u64,
    offset: u64,
    // Hashes of the most frequent characters.
    ascii: [u64; 128],
}

/// The hash that all profiles use.
pub static USUAL_HASH: LazyLock<CharacterHash> = LazyLock::new(|| CharacterHash::new(BASE, BASE));

impl CharacterHash {
    /// Creates a hash; `factor` must be odd.
    pub fn new(factor: u64, offset: u64) -> CharacterHash {
        let empty = CharacterHash { factor, offset, ascii: [0; 128] };
        CharacterHash { ascii: std::array::from_fn(|code| empty.of_code(code as u64)), ..empty }
    }

    fn of_code(&self, code: u64) -> u64 {
        mixed(code.wrapping_mul(self.factor).wrapping_add(self.offset))
    }

    #[inline]
    fn of(&self, point: Point) -> u64 {
        let code = point.code();
        let found = self.ascii.get(code as usize);
        found.copied().unwrap_or_else(|| self.of_code(code.min(ASSIGNED - 1).into()))
    }
}

/// The tokens of a text, and where sentences may end.
#[derive(Default)]
pub struct Tokenised {
    /// The tokens, in order.
    pub tokens: Vec<Token>,
    /// The input of [`content_hash`]: the tokens in UTF-16, then [`Point::END`]. Two tokens are separated by a space
    /// only if they would become one token without it.
    pub letters: Vec<u16>,
    /// The positions of characters that may end a sentence, outside of tokens.
    pub stops: Vec<usize>,
    /// The number of tokens before each stop.
    pub tokens_before: Vec<usize>,
}

/// Divides a normalised text, which ends with [`Point::END`], into tokens. Replaces the contents of `tokenised`, and
/// reuses its memory.
pub fn tokenise(points: &[Point], hash: &CharacterHash, tokenised: &mut Tokenised) {
    let Tokenised { tokens, letters, stops, tokens_before } = tokenised;
    tokens.clear();
    letters.clear();
    stops.clear();
    tokens_before.clear();
    let mut at = 0;
    // The role of the last token.
    let mut last = 0;
    while at < points.len() {
        let (first, start) = (points[at], at);
        let role = first.role();
        at += 1;
        if role == WIDE {
            let thirds = if first.code() < FIRST_WIDE { 1 } else { THIRDS };
            let (start, hash) = (start as u32, hash.of(first));
            append_utf16(first, letters);
            tokens.push(Token { hash, start, units: 1, thirds, is_number: false, is_word: true });
            last = WIDE;
            continue;
        }
        let is_number = role == NUMBER;
        if !(is_number || role == WORD) {
            if first.has(STOP) {
                stops.push(start);
                tokens_before.push(tokens.len());
            }
            continue;
        }
        if last == role {
            letters.push(b' '.into());
        }
        last = role;
        let (mut sum, mut place) = (hash.of(first), 1);
        append_utf16(first, letters);
        let joins = |at: usize| {
            let grouped = || points[at].is(' ') && at < end_of_thousands(points, start);
            joins_numbers(points, at) || grouped()
        };
        loop {
            let next = points[at];
            if next.role() == role {
                sum = sum.wrapping_add(hash.of(next).wrapping_mul(FACTOR[place % FACTORS]));
                place += 1;
            } else if is_number && joins(at) {
                // Only the position of a sign is hashed, not which sign it is.
                place += usize::from(parts_decimals(points, at));
            } else {
                break;
            }
            append_utf16(next, letters);
            at += 1;
        }
        let (units, thirds) = (WORD_UNITS, WORD_UNITS * THIRDS);
        tokens.push(Token { hash: sum, start: start as u32, units, thirds, is_number, is_word: !is_number });
    }
    append_utf16(Point::END, letters);
}

/// Returns whether a sign belongs to a number because it is between two digits.
fn joins_numbers(points: &[Point], at: usize) -> bool {
    points[at].role() == JOINER && points[at - 1].role() == NUMBER && points[at + 1].role() == NUMBER
}

/// Returns the end of a number that may have blanks between groups of digits, as in `12 345 678`. A number with other
/// signs may end later.
pub fn end_of_thousands(points: &[Point], start: usize) -> usize {
    let is_digit = |at: usize| points[at].role() == NUMBER;
    let is_gap = |at: usize| points[at].is(' ') && is_digit(at + 1);
    let digits = |at: usize| (at..).take(THOUSANDS_DIGITS + 1).take_while(|&at| is_digit(at)).count();
    let first = start + digits(start);
    if !is_gap(first) {
        return first;
    }
    let is_group = |at: &usize| is_gap(*at) && digits(at + 1) == THOUSANDS_DIGITS;
    let groups =
        (first..).step_by(1 + THOUSANDS_DIGITS).take(1 + MOST_THOUSANDS).take_while(is_group).count();
    let end = first + groups * (1 + THOUSANDS_DIGITS);
    // A number that begins with 0 is a telephone number, and a longer series of groups is a row of a table.
    let is_inside = || start > 1 && is_digit(start - 2) && is_gap(start - 1);
    let is_other = groups > MOST_THOUSANDS || first - start > THOUSANDS_DIGITS || is_gap(end);
    if is_other || points[start].is('0') || is_inside() { first } else { end }
}

/// Returns whether the position of a sign in a number is hashed: `1,000`, `1.000` and `1000` are the same number,
/// but `12.5`, `1,25` and `125` are three different numbers.
fn parts_decimals(points: &[Point], sign: usize) -> bool {
    let digits = points[sign + 1..].iter().take_while(|each| each.role() == NUMBER).count();
    digits != THOUSANDS_DIGITS && !joins_numbers(points, sign + 1 + digits)
}

/// Appends a character in UTF-16, the shortest encoding for East Asian texts.
#[inline]
fn append_utf16(point: Point, letters: &mut Vec<u16>) {
    let code = point.code();
    if code < 0x10000 {
        letters.push(code as u16);
    } else {
        let rest = code - 0x10000;
        letters.extend([0xd800 + (rest >> 10) as u16, 0xdc00 + (rest & 0x3ff) as u16]);
    }
}

/// Returns the words of a normalised text. Signs inside a number, as in 1,000.5, belong to the number.
pub fn words(text: &str) -> Vec<&str> {
    let own = text.chars().map(|each| tables().point(each.into()));
    let points: Vec<Point> = [Point::END].into_iter().chain(own).chain([Point::END]).collect();
    let mut at = 0;
    let is_between = |_: char| {
        at += 1;
        !(points[at].is_in_word() || joins_numbers(&points, at))
    };
    text.split(is_between).filter(|word| !word.is_empty()).collect()
}

/// Returns only the letters, digits and marks of a normalised text.
pub fn letters(text: &str) -> String {
    text.chars().filter(|&each| tables().point(each.into()).is_in_word()).collect()
}

/// Returns the content hash of the `letters` that [`tokenise`] computes; 0 for a text without letters and digits.
///
/// Texts with the same tokens in the same order have the same hash.
pub fn content_hash(letters: &[u16]) -> u64 {
    // A text without letters has only the end mark.
    if letters.len() < 2 {
        return 0;
    }
    // SHA-256 is fast, because processors have instructions for it.
    let digest = Sha256::digest(bytemuck::cast_slice(letters));
    digest.iter().take(8).fold(0, |hash, &byte| hash << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_form::{normalise, to_string};

    fn tokens_of(text: &str) -> Vec<String> {
        let (mut points, mut tokenised) = (Vec::new(), Tokenised::default());
        normalise(text, usize::MAX, &mut points);
        tokenise(&points, &USUAL_HASH, &mut tokenised);
        let tokens = tokenised.tokens;
        let ends = tokens.iter().skip(1).map(|each| each.start as usize).chain([points.len() - 1]);
        let parts = tokens.iter().zip(ends).map(|(each, end)| to_string(&points[each.start as usize..end]));
        parts.map(|each| each.trim_matches([' ', ',']).to_owned()).collect()
    }

    #[test]
    fn tokens_are_characters_words_and_numbers() {
        assert_eq!(tokens_of("地铁 7 号线"), ["地", "铁", "7", "号", "线"]);
        assert_eq!(tokens_of("1,234.5 at 10:30, then 2"), ["1,234.5", "at", "10:30", "then", "2"]);
        assert_eq!(tokens_of("iphone15 pro"), ["iphone", "15", "pro"]);
        assert_eq!(tokens_of("rose 12 345.5 to 15 747s"), ["rose", "12 345.5", "to", "15 747", "s"]);
        assert_eq!(tokens_of("044 123 456"), ["044", "123", "456"]);
        assert_eq!(tokens_of("12 345 67 890"), ["12", "345", "67", "890"]);
        assert_eq!(tokens_of("101 102 103 104 105 106")[1..], ["102", "103", "104", "105", "106"]);
        assert_eq!(tokens_of("ตลาด"), ["ต", "ล", "า", "ด"]);
        assert_eq!(tokens_of("यह हिन्दी है"), ["यह", "हिन्दी", "है"]);
    }

    #[test]
    fn separators_of_thousands_are_ignored_in_hashes() {
        let hash = |text: &str| {
            let (mut points, mut tokenised) = (Vec::new(), Tokenised::default());
            normalise(text, usize::MAX, &mut points);
            tokenise(&points, &USUAL_HASH, &mut tokenised);
            tokenised.tokens[0].hash
        };
        for (one, other) in [
            ("1,000", "1000"),
            ("1,234,567.5", "1234567,5"),
            ("1,23,456", "123.456"),
            ("12 345", "12,345"),
            ("1\u{202f}234 567,5 pct", "1234567.5"),
            ("12.5", "12,5"),
            ("5:2", "5.2"),
        ] {
            assert_eq!(hash(one), hash(other), "{one}");
        }
        for (one, other) in
            [("12.5", "1.25"), ("12.5", "125"), ("5:2", "52"), ("1.25", "125"), ("2026 345", "2026345")]
        {
            assert_ne!(hash(one), hash(other), "{one}");
        }
    }

    #[test]
    fn words_are_separated_by_other_characters() {
        assert_eq!(
            words("1,000.5 of iphone15, naïve 中文。x"),
            ["1,000.5", "of", "iphone15", "naïve", "中文", "x"]
        );
        assert_eq!(words(" ,. "), [""; 0]);
        assert_eq!(letters("a-b 1,5。中"), "ab15中");
    }
}
