//! Writes packed nodes and content hashes as JSON documents of the forest's index, with the keys of representatives
//! as terms.
//!
//! The packed form in a document is complete; the other fields repeat parts of it so that they can be searched.

use base64::prelude::{BASE64_STANDARD, Engine};

use super::content_hashes::NO_HASH;
use super::records::{Record, hex};
use super::relation::Relation;
use super::times::NO_TIME;

/// Returns the id and the JSON of the document for a packed node or content hash; None if the bytes are neither.
pub fn document<R: Relation>(packed: &[u8], layout: &Layout) -> Option<(String, String)> {
    let mut json = format!(r#"{{"packed":"{}""#, BASE64_STANDARD.encode(packed));
    let id = match Record::unpack::<R>(packed)? {
        Record::Node { id, root, signature, node, .. } => {
            json += &format!(r#","root":"{}","seq":{}"#, hex::<R>(root), { node.seq });
            add_time(&mut json, "made", node.made_ms);
            add_time(&mut json, "seen", node.seen_ms);
            if node.hash != NO_HASH {
                json += &format!(r#","page":"{:016x}""#, { node.hash });
            }
            let keys = layout.terms::<R>(&signature, true);
            let quoted =
                if keys.is_empty() { String::new() } else { format!(r#""{}""#, keys.join(r#"",""#)) };
            json += &format!(r#","leaf":{},"keys":[{quoted}]"#, id != root);
            hex::<R>(id)
        }
        Record::Hash { hash, seen_ms, .. } => {
            json += &format!(r#","page":"{hash:016x}""#);
            add_time(&mut json, "seen", seen_ms);
            format!("page-{hash:016x}")
        }
    };
    json.push('}');
    Some((id, json))
}

/// Adds a time unless it is unknown.
fn add_time(json: &mut String, name: &str, time_ms: i64) {
    if time_ms != NO_TIME {
        *json += &format!(r#","{name}":{time_ms}"#);
    }
}

/// The minimum number of bits of an exact key. It has more digits than a band key, so the two are never equal.
const EXACT_BITS: u32 = 40;
/// The alphabet of terms; its first sixteen characters are the hexadecimal digits.
const DIGITS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

/// The bits of a simhash that form its band keys; the fields come from `Layout` in `fingerprint/bands.py`.
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct Layout {
    /// For each table, the bits of its key as half-open ranges, counted from the highest bit.
    pub tables: Vec<Vec<(u32, u32)>>,
    /// The number of bits per digit of a term.
    pub digit_bits: u32,
    /// The number of bits below the table's number in a band key.
    pub key_bits: u32,
    /// The number of digits in a band key.
    pub digits: u32,
}

impl Layout {
    /// Returns the terms of a signature: if `is_indexed`, only for the representatives under which its node is
    /// indexed, otherwise for all distinct representatives.
    pub fn terms<R: Relation>(&self, signature: &R::Signature, is_indexed: bool) -> Vec<String> {
        let mut terms = Vec::new();
        let exact_digits = EXACT_BITS.div_ceil(self.digit_bits).max(self.digits + 1);
        let (keys, distinct) = (R::keys(signature), R::distinct(signature));
        let all: Vec<_> = if is_indexed { keys.collect() } else { distinct.collect() };
        for (_, representative) in all {
            if R::is_exact(representative) {
                terms.push(
                    self.written(representative >> (64 - self.digit_bits * exact_digits), exact_digits),
                );
            } else {
                let keys = (0u64..).zip(&self.tables).map(|(table, ranges)| {
                    self.written(table << self.key_bits | key(representative, ranges), self.digits)
                });
                terms.extend(keys);
            }
        }
        terms
    }

    /// Returns the lowest `digits` digits of a number.
    fn written(&self, number: u64, digits: u32) -> String {
        let mask = (1 << self.digit_bits) - 1;
        let digit = |place: u32| DIGITS[(number >> (self.digit_bits * place) & mask) as usize];
        (0..digits).rev().map(digit).map(char::from).collect()
    }
}

/// Returns the concatenated bits of the given ranges.
fn key(simhash: u64, ranges: &[(u32, u32)]) -> u64 {
    ranges.iter().fold(0, |key, (start, stop)| {
        let width = stop - start;
        let mask = u64::MAX >> (64 - width);
        key << width | simhash >> (64 - stop) & mask
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_concatenate_bits_and_terms_are_zero_padded() {
        assert_eq!(key(0x0123_4567_89ab_cdef, &[(0, 8), (56, 64)]), 0x01ef);
        assert_eq!(key(u64::MAX, &[(1, 64)]), u64::MAX >> 1);
        let layout = |digit_bits| Layout { tables: Vec::new(), digit_bits, key_bits: 0, digits: 0 };
        assert_eq!(layout(4).written(0xabc, 5), "00abc");
        assert_eq!(layout(6).written(0xabc, 3), "0GY");
    }
}
