//! Handles lone surrogates, which Python's strings may contain, but Rust's strings may not.

use std::collections::HashSet;
use std::ops::Range;

use crate::characters::ASSIGNED;

const SURROGATES: Range<u32> = 0xd800..0xe000;
const COUNT: u32 = SURROGATES.end - SURROGATES.start;
// A control character, which comparisons treat like a surrogate.
const ALIKE: char = '\u{1}';

/// Returns the text of some code points for comparisons, with each surrogate replaced by a control character.
pub fn comparable(codes: &[u32]) -> String {
    codes.iter().map(|&code| char::from_u32(code).unwrap_or(ALIKE)).collect()
}

/// Characters that replace surrogates while markup is removed, so that the surrogates can be restored afterwards.
pub struct StandIns {
    first: u32,
}

impl StandIns {
    /// Chooses a range of 2,048 unassigned characters that does not occur in the text. Only a contrived text contains
    /// characters of all 320 ranges; its characters in the first range are then restored as surrogates.
    pub fn of(codes: &[u32]) -> StandIns {
        let used: HashSet<u32> = codes.iter().map(|code| code / COUNT).collect();
        let mut ranges = (ASSIGNED / COUNT..).take_while(|range| *range < 0xe0000 / COUNT);
        StandIns { first: ranges.find(|range| !used.contains(range)).map_or(ASSIGNED, |range| range * COUNT) }
    }

    /// Returns the text with its surrogates replaced.
    pub fn put_into(&self, codes: &[u32]) -> String {
        let replaced = codes.iter().map(|&code| {
            if SURROGATES.contains(&code) { code - SURROGATES.start + self.first } else { code }
        });
        replaced.filter_map(char::from_u32).collect()
    }

    /// Returns the code points of a text with the surrogates restored.
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
    fn surrogates_are_restored_next_to_any_other_character() {
        for other in ['a', '\u{40000}', '\u{dffff}'] {
            let codes = [0xd800, other.into(), 0xdfff, 0xdc00];
            let stand_ins = StandIns::of(&codes);
            let text = stand_ins.put_into(&codes);
            assert_eq!(stand_ins.taken_out(&text), codes);
            assert_eq!(comparable(&codes), format!("\u{1}{other}\u{1}\u{1}"));
        }
    }
}
