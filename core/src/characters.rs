//! The properties of each code point: its class, its normal form, and its role at the end of a sentence.
//!
//! `make_tables.py` has generated the tables from Unicode 18.0. They are unpacked on first use, in a millisecond.

use std::sync::LazyLock;

/// A letter or digit.
pub const ALNUM: u8 = 1;
/// Always ends a sentence.
pub const HARD_END: u8 = 1 << 1;
/// The full stop, which ends a sentence only before white space.
pub const FULL_STOP: u8 = 1 << 2;
/// May end a sentence.
pub const STOP: u8 = HARD_END | FULL_STOP;
/// White space.
pub const SPACE: u8 = 1 << 3;
/// A Latin letter or digit.
pub const LATIN: u8 = 1 << 4;

/// Role in a token: a sign that belongs to a number if it is between two digits.
pub const JOINER: u8 = 1;
/// Role in a token: a decimal digit.
pub const NUMBER: u8 = 2;
/// Role in a token: another letter or digit, or a mark that belongs to one.
pub const WORD: u8 = 3;
/// Role in a token: a character that is a token alone, such as an East Asian one.
pub const WIDE: u8 = 4;
const TOKEN_SHIFT: u32 = 5;

/// Follows each text. It ends a sentence, and no normal text contains it.
pub const SEPARATOR: u32 = 0x1e;
/// East Asian scripts start at this code point.
pub const FIRST_WIDE: u32 = 0x2e80;
/// All letters, digits and white space are below this code point: planes 4 to 13 are unassigned, 15 and 16 private.
pub const ASSIGNED: u32 = 0x40000;

/// Trait: may follow the sign that ends a sentence, such as quotation marks, brackets, spaces, symbols.
pub const TRAILING: u8 = 1;
/// Trait: ends a sentence of prose.
pub const FINAL: u8 = 1 << 1;
/// Trait: a combining mark, or a character whose normal form begins with one.
pub const MARK: u8 = 1 << 2;
const UNASSIGNED: u8 = 1 << 3;
const INVISIBLE: u8 = 1 << 4;
/// Trait: looks like a space without being one.
pub const BLANK: u8 = 1 << 5;

const CODE: u32 = 0xff_ffff;
const CLASS_SHIFT: u32 = 24;
const DATA: &str = include_str!("../data/characters.txt");

/// A character of a normal text: its code point, and its class in the highest bits, so that both are one look-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point(u32);

impl Point {
    /// Ends each text.
    pub const END: Point = Point::new(SEPARATOR, HARD_END | SPACE | 5 << TOKEN_SHIFT);
    // Entries in the table of forms that do not stand for a form. No class has all bits set.
    const CONTEXTUAL: Point = Point(u32::MAX);
    const DROPPED: Point = Point(u32::MAX - 1);

    const fn new(code: u32, class: u8) -> Point {
        Point(code | (class as u32) << CLASS_SHIFT)
    }

    /// The code point.
    #[inline]
    pub const fn code(self) -> u32 {
        self.0 & CODE
    }

    /// Whether it is this character.
    #[inline]
    pub const fn is(self, character: char) -> bool {
        self.code() == character as u32
    }

    /// Whether it has one of these properties: [`ALNUM`] and the like.
    #[inline]
    pub const fn has(self, properties: u8) -> bool {
        (self.0 >> CLASS_SHIFT) as u8 & properties != 0
    }

    /// Its role in a token: [`NUMBER`] and the like.
    #[inline]
    pub const fn role(self) -> u8 {
        (self.0 >> (CLASS_SHIFT + TOKEN_SHIFT)) as u8
    }

    /// Whether it is a letter, a digit, or a mark that belongs to one.
    #[inline]
    pub const fn is_in_word(self) -> bool {
        matches!(self.role(), NUMBER | WORD | WIDE)
    }

    /// Returns it as a `char`, which each code point of a normal text is.
    pub fn character(self) -> char {
        char::from_u32(self.code()).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// The unpacked tables.
pub struct Tables {
    forms: Vec<Point>,
    classes: Vec<u8>,
    traits: Vec<u8>,
    // How many characters a form has, at least 1.
    lengths: Vec<u8>,
    // Case foldings that differ from the form: a character of NFKC, then its folding. Sorted.
    folded: Vec<Vec<u32>>,
    // The zeros of all scripts, ascending; each is followed by the other nine digits.
    zeros: Vec<u32>,
}

/// Returns the tables; the first call unpacks them.
pub fn tables() -> &'static Tables {
    static TABLES: LazyLock<Tables> = LazyLock::new(Tables::unpacked);
    &TABLES
}

impl Tables {
    /// Returns the normal form of a character if it is one character, independent of adjacent ones.
    #[inline]
    pub fn single(&self, code: u32) -> Option<Point> {
        match self.forms.get(code as usize) {
            Some(&point) if point.0 < Point::DROPPED.0 => Some(point),
            None if !is_hidden(code) => Some(Point::new(code, 0)),
            _ => None,
        }
    }

    /// Whether the normal form of a character is several characters, or depends on adjacent ones.
    pub fn is_contextual(&self, code: u32) -> bool {
        self.forms.get(code as usize) == Some(&Point::CONTEXTUAL)
    }

    /// Returns how many characters the normal form of a character has, at least 1.
    pub fn length(&self, code: u32) -> usize {
        self.lengths.get(code as usize).map_or(1, |&each| each.into())
    }

    /// Returns a character of a normal text.
    pub fn point(&self, code: u32) -> Point {
        Point::new(code, self.classes.get(code as usize).copied().unwrap_or(0))
    }

    /// Appends the case folding of a character of NFKC, with Chinese simplified.
    pub fn fold(&self, code: u32, points: &mut Vec<Point>) {
        match self.folded.binary_search_by_key(&code, |each| each[0]) {
            Ok(at) => points.extend(self.folded[at][1..].iter().map(|&code| self.point(code))),
            Err(_) => points.push(self.single(code).unwrap_or_else(|| self.point(code))),
        }
    }

    /// Whether a code point has one of these traits: [`TRAILING`] and the like.
    pub fn has(&self, code: u32, traits: u8) -> bool {
        self.traits.get(code as usize).is_some_and(|each| each & traits != 0)
    }

    /// Whether Unicode 18.0 does not assign the code point; newer tables of normal forms may.
    pub fn is_unassigned(&self, code: u32) -> bool {
        code >= ASSIGNED || self.has(code, UNASSIGNED)
    }

    /// Whether the character is invisible when displayed.
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

// Tags, variation selectors, and code points reserved for more of them: all invisible.
const fn is_hidden(code: u32) -> bool {
    0xe0000 <= code && code < 0xe1000
}

// The file is compiled in: the first test that unpacks it finds a malformed number.
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

/// Reads `first count step shift`: the form of every `step`th character is `shift` code points further.
fn shift<'a>(targets: &mut [u32], mut words: impl Iterator<Item = &'a str>) {
    let first = words.next().map_or(0, hex);
    let (count, step): (u32, u32) = (decimal(words.next()), decimal(words.next()));
    let distance: i32 = decimal(words.next());
    for code in (0..count).map(|place| first + place * step) {
        targets[code as usize] = code.wrapping_add_signed(distance);
    }
}

/// Whether it reverses the order in which characters are shown, but not the order in which they are compared.
pub const fn is_override(character: char) -> bool {
    matches!(character, '\u{202d}' | '\u{202e}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_forms_are_those_of_the_file() {
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
