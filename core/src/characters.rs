//! The properties of each code point: its class, its normal form, and its role at the end of a sentence.
//!
//! `make_tables.py` generates the tables from Unicode 18.0. They are unpacked on first use, in a millisecond.

use std::sync::LazyLock;

/// A letter or digit.
pub const ALNUM: u8 = 1;
/// A character that always ends a sentence.
pub const HARD_END: u8 = 1 << 1;
/// The full stop, which ends a sentence only before white space.
pub const FULL_STOP: u8 = 1 << 2;
/// A character that may end a sentence.
pub const STOP: u8 = HARD_END | FULL_STOP;
/// White space.
pub const SPACE: u8 = 1 << 3;
/// A Latin letter or digit.
pub const LATIN: u8 = 1 << 4;

/// Role in a token: a sign that belongs to a number if it is between two digits.
pub const JOINER: u8 = 1;
/// Role in a token: a decimal digit.
pub const NUMBER: u8 = 2;
/// Role in a token: any other letter or digit, or a mark that belongs to a letter.
pub const WORD: u8 = 3;
/// Role in a token: a character that is a token by itself, such as an East Asian character.
pub const WIDE: u8 = 4;
const TOKEN_SHIFT: u32 = 5;

/// The character after the end of each text. It ends a sentence, and no normalised text contains it.
pub const SEPARATOR: u32 = 0x1e;
/// East Asian scripts start at this code point.
pub const FIRST_WIDE: u32 = 0x2e80;
/// All letters, digits and white space are below this code point: planes 4 to 13 are unassigned, 15 and 16 private.
pub const ASSIGNED: u32 = 0x40000;

/// Trait: may follow the sign that ends a sentence, such as a quotation mark, bracket, space or symbol.
pub const TRAILING: u8 = 1;
/// Trait: ends a sentence of prose.
pub const FINAL: u8 = 1 << 1;
/// Trait: a combining mark, or a character whose normal form begins with a combining mark.
pub const MARK: u8 = 1 << 2;
const UNASSIGNED: u8 = 1 << 3;
const INVISIBLE: u8 = 1 << 4;
/// Trait: looks like a space, but is not white space.
pub const BLANK: u8 = 1 << 5;

const CODE: u32 = 0xff_ffff;
const CLASS_SHIFT: u32 = 24;
const DATA: &str = include_str!("../data/characters.txt");

/// A character of a normalised text: its code point, with its class in the highest bits, so that one look-up finds
/// both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point(u32);

impl Point {
    /// The end of each text.
    pub const END: Point = Point::new(SEPARATOR, HARD_END | SPACE | 5 << TOKEN_SHIFT);
    // Markers in the table of forms. They differ from all forms, since no class has all bits set.
    const CONTEXTUAL: Point = Point(u32::MAX);
    const DROPPED: Point = Point(u32::MAX - 1);

    const fn new(code: u32, class: u8) -> Point {
        Point(code | (class as u32) << CLASS_SHIFT)
    }

    /// Returns the code point.
    #[inline]
    pub const fn code(self) -> u32 {
        self.0 & CODE
    }

    /// Returns whether this is a given character.
    #[inline]
    pub const fn is(self, character: char) -> bool {
        self.code() == character as u32
    }

    /// Returns whether the character has any of the given properties, such as [`ALNUM`].
    #[inline]
    pub const fn has(self, properties: u8) -> bool {
        (self.0 >> CLASS_SHIFT) as u8 & properties != 0
    }

    /// Returns the character's role in a token, such as [`NUMBER`].
    #[inline]
    pub const fn role(self) -> u8 {
        (self.0 >> (CLASS_SHIFT + TOKEN_SHIFT)) as u8
    }

    /// Returns whether the character is a letter, a digit, or a mark that belongs to a letter.
    #[inline]
    pub const fn is_in_word(self) -> bool {
        matches!(self.role(), NUMBER | WORD | WIDE)
    }

    /// Returns the `char`; all code points of a normalised text are valid.
    pub fn character(self) -> char {
        char::from_u32(self.code()).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// The unpacked tables.
pub struct Tables {
    forms: Vec<Point>,
    classes: Vec<u8>,
    traits: Vec<u8>,
    // The number of characters in each form, at least 1.
    lengths: Vec<u8>,
    // For each character of NFKC whose case folding differs from its form: the character and the folding; sorted.
    folded: Vec<Vec<u32>>,
    // The zeros of all scripts, ascending; the other nine digits follow each zero.
    zeros: Vec<u32>,
}

/// Returns the tables; the first call unpacks them.
pub fn tables() -> &'static Tables {
    static TABLES: LazyLock<Tables> = LazyLock::new(Tables::unpacked);
    &TABLES
}

impl Tables {
    /// Returns the normal form of a character if it is one character and does not depend on adjacent characters.
    #[inline]
    pub fn single(&self, code: u32) -> Option<Point> {
        match self.forms.get(code as usize) {
            Some(&point) if point.0 < Point::DROPPED.0 => Some(point),
            None if !is_hidden(code) => Some(Point::new(code, 0)),
            _ => None,
        }
    }

    /// Returns whether the normal form of a character has several characters, or depends on adjacent characters.
    pub fn is_contextual(&self, code: u32) -> bool {
        self.forms.get(code as usize) == Some(&Point::CONTEXTUAL)
    }

    /// Returns the number of characters in the normal form of a character, at least 1.
    pub fn length(&self, code: u32) -> usize {
        self.lengths.get(code as usize).map_or(1, |&each| each.into())
    }

    /// Returns a character of a normalised text.
    pub fn point(&self, code: u32) -> Point {
        Point::new(code, self.classes.get(code as usize).copied().unwrap_or(0))
    }

    /// Appends the case folding of a character of NFKC, with Chinese characters simplified.
    pub fn fold(&self, code: u32, points: &mut Vec<Point>) {
        match self.folded.binary_search_by_key(&code, |each| each[0]) {
            Ok(at) => points.extend(self.folded[at][1..].iter().map(|&code| self.point(code))),
            Err(_) => points.push(self.single(code).unwrap_or_else(|| self.point(code))),
        }
    }

    /// Returns whether a code point has any of the given traits, such as [`TRAILING`].
    pub fn has(&self, code: u32, traits: u8) -> bool {
        self.traits.get(code as usize).is_some_and(|each| each & traits != 0)
    }

    /// Returns whether the code point is unassigned in Unicode 18.0; newer tables of normal forms may assign it.
    pub fn is_unassigned(&self, code: u32) -> bool {
        code >= ASSIGNED || self.has(code, UNASSIGNED)
    }

    /// Returns whether the character is invisible when displayed.
    pub fn is_invisible(&self, code: u32) -> bool {
        is_hidden(code) || self.has(code, INVISIBLE)
    }

    /// Returns the value of a decimal digit.
    pub fn digit(&self, code: u32) -> Option<u32> {
        let at = self.zeros.partition_point(|&zero| zero <= code);
        let zero = *self.zeros.get(at.checked_sub(1)?)?;
        (code - zero < 10).then_some(code - zero)
    }

    fn unpacked() -> Tables {
        let size = ASSIGNED as usize;
        let mut tables = Tables {
            forms: Vec::with_capacity(size),
            classes: vec![0; size],
            traits: vec![0; size],
            lengths: vec![1; size],
            folded: Vec::new(),
            zeros: Vec::new(),
        };
        let mut targets: Vec<u32> = (0..ASSIGNED).collect();
        for line in DATA.lines() {
            let mut words = line.split(' ');
            match words.next() {
                Some("class") => fill(&mut tables.classes, words),
                Some("trait") => fill(&mut tables.traits, words),
                Some("contextual") => {
                    let (range, length) = run(&mut words);
                    targets[range.clone()].fill(Point::CONTEXTUAL.0);
                    tables.lengths[range].fill(length);
                }
                Some("dropped") => targets[run(&mut words).0].fill(Point::DROPPED.0),
                Some("form") => shift(&mut targets, words),
                Some("pairs") => {
                    let mut characters = words.flat_map(str::chars).map(u32::from);
                    while let (Some(from), Some(to)) = (characters.next(), characters.next()) {
                        targets[from as usize] = to;
                    }
                }
                Some("folded") => tables.folded.push(words.map(hex).collect()),
                Some("zero") => tables.zeros.extend(words.map(hex)),
                _ => {}
            }
        }
        let forms = targets.into_iter().map(|target| match target {
            code if code < ASSIGNED => tables.point(code),
            marker => Point(marker),
        });
        tables.forms = forms.collect();
        tables
    }
}

// Tag characters, variation selectors and the code points reserved for them are invisible.
const fn is_hidden(code: u32) -> bool {
    0xe0000 <= code && code < 0xe1000
}

// The file is compiled in, so any test that unpacks it detects a malformed number.
fn hex(word: &str) -> u32 {
    u32::from_str_radix(word, 16).expect("a hexadecimal number in characters.txt")
}

fn decimal<T: std::str::FromStr>(word: Option<&str>) -> T {
    word.and_then(|each| each.parse().ok()).expect("a number in characters.txt")
}

/// Reads `first count value`.
fn run<'a>(words: &mut impl Iterator<Item = &'a str>) -> (std::ops::Range<usize>, u8) {
    let first = words.next().map_or(0, hex) as usize;
    let count: usize = decimal(words.next());
    (first..first + count, words.next().map_or(0, hex) as u8)
}

fn fill<'a>(table: &mut [u8], mut words: impl Iterator<Item = &'a str>) {
    let (range, value) = run(&mut words);
    table[range].fill(value);
}

/// Reads `first count step shift`: the form of every `step`th character is `shift` code points after it.
fn shift<'a>(targets: &mut [u32], mut words: impl Iterator<Item = &'a str>) {
    let first = words.next().map_or(0, hex);
    let (count, step): (u32, u32) = (decimal(words.next()), decimal(words.next()));
    let distance: i32 = decimal(words.next());
    for code in (0..count).map(|place| first + place * step) {
        targets[code as usize] = code.wrapping_add_signed(distance);
    }
}

/// Returns whether a character overrides the direction of the displayed text. Comparisons ignore such characters.
pub const fn is_override(character: char) -> bool {
    matches!(character, '\u{202d}' | '\u{202e}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_unpacked_from_the_file() {
        let tables = tables();
        assert!(tables.single('A'.into()).is_some_and(|point| point.is('a') && point.has(LATIN)));
        assert!(tables.single('臺'.into()).is_some_and(|point| point.is('台') && point.role() == WIDE));
        assert!([0x200b, 0xe0100, 0x301].iter().all(|&code| tables.single(code).is_none()));
        assert!(!tables.is_contextual(0x200b) && !tables.is_contextual(0x301));
        assert!(tables.is_contextual(0x3099));
        assert_eq!(tables.length(0xfdfa), 18);
        assert_eq!((tables.digit(0x0663), tables.digit('x'.into())), (Some(3), None));
        assert!(tables.has('.'.into(), FINAL) && tables.has('”'.into(), TRAILING));
        assert_eq!(tables.point(SEPARATOR), Point::END);
    }
}
