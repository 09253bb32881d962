//! The terms of a signature in an inverted index: its representatives' keys.

use super::relation::Relation;

/// Of an exact key: 40 bits, more than any band key has, so that no key of one kind is one of the other.
const EXACT_DIGITS: usize = 10;

/// Which bits of a simhash its band keys are, as `fingerprint/bands.py` has it.
pub struct Layout {
    /// For each table the bits of its key, as ranges from the highest bit: from the first, up to the second.
    pub tables: Vec<Vec<(u32, u32)>>,
    /// Hex digits of a table's number, and of its key.
    pub digits: (usize, usize),
}

impl Layout {
    /// Returns the terms of a signature: of the representatives that its node is indexed under, or of all that differ.
    pub fn terms<R: Relation>(&self, signature: &R::Signature, is_indexed: bool) -> Vec<String> {
        let mut terms = Vec::new();
        let mut add = |(_, representative): (usize, u64)| {
            if R::is_exact(representative) {
                terms.push(hex(representative >> (64 - 4 * EXACT_DIGITS), EXACT_DIGITS));
            } else {
                let keys = (0u64..).zip(&self.tables).map(|(table, ranges)| {
                    hex(
                        table << (4 * self.digits.1) | key(representative, ranges),
                        self.digits.0 + self.digits.1,
                    )
                });
                terms.extend(keys);
            }
        };
        if is_indexed {
            R::keys(signature).for_each(&mut add);
        } else {
            R::distinct(signature).for_each(&mut add);
        }
        terms
    }
}

/// Returns the bits in some ranges, one range after the other.
fn key(simhash: u64, ranges: &[(u32, u32)]) -> u64 {
    ranges.iter().fold(0, |key, (start, stop)| {
        let width = stop - start;
        let mask = u64::MAX >> (64 - width);
        key << width | simhash >> (64 - stop) & mask
    })
}

/// Returns the lowest hex digits of a number, the highest of them first.
fn hex(number: u64, digits: usize) -> String {
    (0..digits)
        .rev()
        .map(|place| char::from(b"0123456789abcdef"[(number >> (4 * place) & 15) as usize]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bits_and_terms_have_all_their_digits() {
        assert_eq!(key(0x0123_4567_89ab_cdef, &[(0, 8), (56, 64)]), 0x01ef);
        assert_eq!(key(u64::MAX, &[(1, 64)]), u64::MAX >> 1);
        assert_eq!(hex(0xabc, 5), "00abc");
    }
}
