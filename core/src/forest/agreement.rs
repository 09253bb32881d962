//! When two whole texts agree: the second test of the profile `verified`, after a representative in common.
//!
//! The resemblance of two texts is the share of their distinct runs of tokens that both have (Broder 1997), estimated
//! from their sketches. Every step is a single operation on doubles, in one order: the same bits on every machine.

use bytemuck::{Pod, Zeroable, bytes_of};

use super::relation::{Id, Relation};
use crate::hashing::murmur128;
use crate::signature::{REPRESENTATIVES, WORDS};

/// The rules by which two texts agree: the fields of `Agreement` that compare them (`fingerprint/agreement.py`).
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
#[derive(Clone, Copy, Debug)]
pub struct Agreement {
    pub least_resemblance: f64,
    pub most_resemblance: f64,
    pub short_letters: f64,
    pub tiny_resemblance: f64,
    pub tiny_runs: f64,
    pub root_slack: f64,
    pub least_contained: f64,
    pub contained_letters: u64,
    pub contained_runs: u64,
    pub contained_resemblance: f64,
    pub max_postings: usize,
}

/// A signature of `verified`, as `SIGNATURE` has it (`fingerprint/signature.py`).
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Text {
    pub representatives: [u64; REPRESENTATIVES],
    pub sketch: [u64; WORDS],
    pub letters: u32,
    pub runs: u16,
    pub indexed: u16,
}

/// The comparison of two texts.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Estimated, 0 to 1.
    pub resemblance: f64,
    /// The resemblance (inclusive) that texts of this length need to agree.
    pub needed: f64,
    /// The share of the smaller text that is in the other, estimated, 0 to 1.
    pub contained: f64,
    /// Whether the lengths of both are such that containment counts.
    pub may_contain: bool,
    /// Whether they agree.
    pub agree: bool,
    /// Whether the first may join a cluster whose root is the second.
    pub may_join: bool,
}

const CODES: f64 = 15.0;

/// Estimates how much two texts resemble each other, 0 to 1, from 4 bits of each bin of their sketches.
///
/// The root mean square error is about 0.05; see `test_the_estimate_is_near_the_truth`.
#[inline]
pub fn resemblance(one: &[u64; WORDS], other: &[u64; WORDS]) -> f64 {
    let (mut in_either, mut in_both, mut different) = (0, 0, 0);
    for (one, other) in one.iter().zip(other) {
        let (in_one, in_other) = (filled(*one), filled(*other));
        in_either += (in_one | in_other).count_ones();
        in_both += (in_one & in_other).count_ones();
        different += filled(one ^ other).count_ones();
    }
    // Different runs have equal codes by chance once in 15 times.
    let chance = f64::from(in_both) / CODES;
    let same = f64::from(in_either - different);
    let share = (same - chance) / (1.0 - 1.0 / CODES) / f64::from(in_either.max(1));
    share.clamp(0.0, 1.0)
}

/// Returns 1 for each nibble that is not 0, in its place.
#[inline]
fn filled(word: u64) -> u64 {
    let pairs = word | word >> 1;
    (pairs | pairs >> 2) & 0x1111_1111_1111_1111
}

impl Agreement {
    /// Compares two texts.
    pub fn compare(&self, one: &Text, other: &Text) -> Comparison {
        let resemblance = resemblance(&one.sketch, &other.sketch);
        let shorter = f64::from(one.letters.min(other.letters).max(1));
        let longer = one.letters.max(other.letters);
        let excess = (self.most_resemblance - self.least_resemblance) * self.short_letters / shorter;
        let of_letters = f64::min(self.most_resemblance, self.least_resemblance + excess);
        let runs = f64::from(one.runs) + f64::from(other.runs);
        let fewer_runs = one.runs.min(other.runs).max(1);
        let fewer = f64::from(fewer_runs);
        // Squared twice: unlike a power, the same bits on every machine.
        let tininess = f64::min(self.tiny_runs / fewer, 1.0);
        let tininess = (tininess * tininess) * (tininess * tininess);
        let of_runs = self.least_resemblance + (self.tiny_resemblance - self.least_resemblance) * tininess;
        let needed = of_letters.max(of_runs);
        // With J = shared / (runs - shared), shared is J * runs / (1 + J).
        let contained = f64::min(resemblance * runs / (1.0 + resemblance) / fewer, 1.0);
        let may_contain =
            u64::from(longer) <= self.contained_letters && u64::from(fewer_runs) >= self.contained_runs;
        let is_contained =
            may_contain && contained >= self.least_contained && resemblance >= self.contained_resemblance;
        Comparison {
            resemblance,
            needed,
            contained,
            may_contain,
            agree: resemblance >= needed || is_contained,
            // A text that contains the root has the root in common; texts that it contains may share nothing.
            may_join: resemblance >= needed - self.root_slack || is_contained && other.runs <= one.runs,
        }
    }
}

/// The relation of `verified`: texts with a representative in common that agree as a whole are near.
#[derive(Clone, Copy)]
pub struct ByAgreement {
    /// Between two simhashes in common, inclusive, at most 3; minhashes must be equal.
    pub max_distance_bits: u32,
    /// When two whole texts agree.
    pub agreement: Agreement,
}

impl Relation for ByAgreement {
    type Signature = Text;
    const ID_BYTES: usize = 16;
    const PLACES: usize = REPRESENTATIVES;

    fn id(text: &Text) -> Id {
        Id::from_be_bytes(murmur128(bytes_of(&Text { indexed: 0, ..*text })))
    }

    fn are_equal(one: &Text, other: &Text) -> bool {
        one.representatives == other.representatives
            && one.sketch == other.sketch
            && (one.letters, one.runs) == (other.letters, other.runs)
    }

    fn representatives(text: &Text) -> &[u64] {
        &text.representatives
    }

    fn indexed(text: &Text) -> u16 {
        text.indexed
    }

    fn with_indexed(text: Text, indexed: u16) -> Text {
        Text { indexed, ..text }
    }

    fn is_exact(representative: u64) -> bool {
        representative & 1 == 1
    }

    fn max_distance_bits(&self) -> u32 {
        self.max_distance_bits
    }

    fn max_postings(&self) -> usize {
        self.agreement.max_postings
    }

    fn agree(&self, one: &Text, other: &Text) -> bool {
        self.agreement.compare(one, other).agree
    }

    fn may_join(&self, text: &Text, root: &Text) -> bool {
        self.agreement.compare(text, root).may_join
    }

    fn resemblance(text: &Text, root: &Text) -> f64 {
        resemblance(&text.sketch, &root.sketch)
    }
}
