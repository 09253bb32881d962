//! Lone surrogates, which strings may have in Python, but not in Rust.

use std::collections::HashSet;
use std::ops::Range;

use crate::characters::ASSIGNED;

const SURROGATES: Range<u32> = 0xd800..0xe000;
const COUNT: u32 = SURROGATES.end - SURROGATES.start;
// A control character, which no comparison of texts distinguishes from a surrogate.
const ALIKE: char = '\u{1}';

/// Returns the text of some code points, with surrogates replaced, for comparisons.
pub fn comparable(codes: &[u32]) -> String {
    codes.iter().map(|&code| char::from_u32(code).unwrap_or(ALIKE)).collect()
}

/// Characters that replace surrogates while markup is removed, so that the surrogates can be put back afterwards.
pub struct StandIns {
    first: u32,
}

impl StandIns {
    /// Chooses a row of 2,048 unassigned characters, none of which is in the text. Only a text made for that uses all
    /// 320 rows; then its own characters of the first row come back as surrogates.
    pub fn of(codes: &[u32]) -> StandIns {
        let used: HashSet<u32> = codes.iter().map(|code| code / COUNT).collect();
        let mut rows = (ASSIGNED / COUNT..).take_while(|row| *row < 0xe0000 / COUNT);
        StandIns { first: rows.find(|row| !used.contains(row)).map_or(ASSIGNED, |row| row * COUNT) }
    }

    /// Returns the text with its surrogates replaced.
    pub fn put_into(&self, codes: &[u32]) -> String {
        let replaced = codes.iter().map(|&code| {
            if SURROGATES.contains(&code) { code - SURROGATES.start + self.first } else { code }
        });
        replaced.filter_map(char::from_u32).collect()
    }

    /// Returns the code points of a text with the surrogates put back.
    pub fn taken_out(&self, text: &str) -> Vec<u32> {
        let own = self.first..self.first + COUNT;
        let codes = text.chars().map(u32::from);
        codes
            .map(|code| if own.contains(&code) { code - self.first + SURROGATES.start } else { code })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogates_come_back_whatever_else_is_in_the_text() {
        for other in ['a', '\u{40000}', '\u{dffff}'] {
            let codes = [0xd800, other.into(), 0xdfff, 0xdc00];
            let stand_ins = StandIns::of(&codes);
            let text = stand_ins.put_into(&codes);
            assert_eq!(stand_ins.taken_out(&text), codes);
            assert_eq!(comparable(&codes), format!("\u{1}{other}\u{1}\u{1}"));
        }
    }
}
