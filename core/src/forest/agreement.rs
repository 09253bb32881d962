//! Decides whether two whole texts agree: the second test of the profile `verified`, for texts that have a
//! representative in common.
//!
//! The resemblance of two texts is the share of their distinct runs of tokens that occur in both (Broder 1997). It is
//! estimated from their sketches, with floating-point operations in a fixed order, so all machines get the same bits.

use std::cmp::Ordering;
use std::mem::offset_of;

use bytemuck::{NoUninit, bytes_of};

use super::relation::{BY_ADDRESS, BY_MEMBER, BY_ROOT, Id, Relation};
use crate::hashing::murmur128;
use crate::names::differences;
use crate::signature::{REPRESENTATIVES, Text, WORDS};

/// The thresholds for two texts to agree; each is documented in `Agreement` in `fingerprint/agreement.py`.
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
#[derive(Clone, Copy, Debug)]
pub struct Agreement {
    pub resemblance: f64,
    pub short_excess: f64,
    pub short_units: f64,
    pub root_slack: f64,
    pub member_resemblance: f64,
    pub member_slack: f64,
    pub version_resemblance: f64,
    pub version_share: f64,
    pub version_root: f64,
    pub units_a_figure: f64,
    pub figure_share: f64,
    pub few_figures: f64,
    pub most_figures: f64,
    pub form_figure_share: f64,
    pub form_runs: f64,
    pub form_run_share: f64,
    pub form_balance: f64,
    pub reissue_difference: f64,
    pub reissue_balance: f64,
    pub name_resemblance: f64,
    pub names: f64,
    pub name_words: f64,
    pub most_name_words: f64,
    pub name_runs: f64,
    pub other_repeated: f64,
    pub other_words: f64,
    pub least_contained: f64,
    pub contained_units: f64,
    pub excerpt_share: f64,
    pub part_contained: f64,
    pub part_share: f64,
    pub part_units: f64,
    pub max_postings: usize,
}

const ADDRESSES: usize = 2;
const ADDRESS_BITS: u32 = 26;
const PERIOD_MASK: u64 = (1 << (u64::BITS - ADDRESS_BITS * ADDRESSES as u32)) - 1;

impl Text {
    /// Returns the bits of the link (place 0) or the id (place 1), in the highest bits; 0 if the text has no link or
    /// no id.
    fn address(&self, place: usize) -> u64 {
        let bits = self.origin << (ADDRESS_BITS * place as u32);
        bits >> (u64::BITS - ADDRESS_BITS) << (u64::BITS - ADDRESS_BITS)
    }
}

/// The comparison of two texts, in the layout that `Comparison` in `fingerprint/agreement.py` reads.
#[derive(Clone, Copy, NoUninit)]
#[repr(C, packed)]
pub struct Comparison {
    /// The estimated resemblance, 0 to 1.
    pub resemblance: f64,
    /// The resemblance (inclusive) that texts of this length need to agree.
    pub needed: f64,
    /// The estimated number of figures that the text with fewer figures has and the other text lacks.
    pub replaced: f64,
    /// The maximum number of replaced figures (inclusive) with which the texts can agree.
    pub replaceable: f64,
    /// Whether the texts are the same form, filled in with different names.
    pub is_form: bool,
    /// The estimated share of the smaller text that is in the larger text, 0 to 1.
    pub contained: f64,
    /// The size of the smaller text divided by the size of the larger text, 0 to 1.
    pub share: f64,
    /// Whether the texts agree.
    pub agree: bool,
    /// Whether the first text may join a cluster whose root is the second text.
    pub may_join: bool,
    /// Whether the smaller text is a part of the larger text.
    pub is_part: bool,
    /// The ways in which the first text may join a tree, if the second text is a near member of that tree.
    pub by_member: u8,
    /// The ways in which the first text may join a tree, if the second text is the tree's root.
    pub to_root: u8,
}

// The number of codes that a bin can have when it is not empty.
const CODES: f64 = 3.0;

/// Estimates the resemblance of two texts, 0 to 1, from their sketches, which have 2 bits per bin.
///
/// The root mean square error is about 0.04; see `test_estimated_resemblance_is_near_the_true_resemblance`.
#[inline]
pub fn resemblance(one: &[u64; WORDS], other: &[u64; WORDS]) -> f64 {
    let (mut in_either, mut in_both, mut different) = (0, 0, 0);
    for (one, other) in one.iter().zip(other) {
        let (in_one, in_other) = (filled(*one), filled(*other));
        in_either += (in_one | in_other).count_ones();
        in_both += (in_one & in_other).count_ones();
        different += filled(one ^ other).count_ones();
    }
    // Different runs have equal codes with probability 1/3. All terms are integers, so equal sketches give exactly 1.
    let same = CODES * f64::from(in_either - different) - f64::from(in_both);
    (same / ((CODES - 1.0) * f64::from(in_either.max(1)))).clamp(0.0, 1.0)
}

/// Replaces each pair of bits by 01 if it is not 00.
#[inline]
fn filled(word: u64) -> u64 {
    (word | word >> 1) & 0x5555_5555_5555_5555
}

/// A lower bound on the number of figures that only one of two texts has, by the number of bits in which their odd
/// sketches differ.
///
/// The estimate is lowered by about one standard deviation. A few figures rarely share a bit, but when half of the
/// bits differ, the number cannot be estimated.
const UNSHARED: [f64; 65] = {
    let (mut unshared, mut bits) = ([0.0; 65], 1);
    // After `count` figures, `bias` is the probability that a bit is even minus the probability that it is odd, and
    // `common` is the probability that two bits are equal minus the probability that they differ.
    let (mut count, mut bias, mut common) = (0.0, 1.0, 1.0);
    while bits <= 64 {
        let odd = bits as f64 - 0.5;
        while count < MOST_UNSHARED {
            let missing = odd - 32.0 * (1.0 - bias);
            let variance = 16.0 * (1.0 - bias * bias) + 64.0 * 63.0 / 4.0 * (common - bias * bias);
            if missing <= 0.0 || missing * missing <= variance - 1.0 {
                break;
            }
            count += 1.0;
            bias *= 1.0 - 2.0 / 64.0;
            common *= 1.0 - 4.0 / 64.0;
        }
        unshared[bits] = count;
        bits += 1;
    }
    unshared
};
const MOST_UNSHARED: f64 = 100.0;

impl Agreement {
    /// Returns whether two texts are the same form, filled in with different names. `replaced` is the number of
    /// figures that differ, `own` the number of runs that only the smaller text has, `longer` the length
    /// difference in units.
    fn is_form(&self, sketches: [u64; 2], replaced: f64, own: f64, runs_per_word: f64, longer: f64) -> bool {
        let [words, differ, others, more] = differences(sketches[0], sketches[1]);
        let units_per_word = 2.0 / runs_per_word;
        // A name with one more word lengthens the text wherever the name occurs, which is two to six times.
        let unexplained = (longer - 4.0 * more * units_per_word).abs();
        let least = if replaced > 0.0 { 1.0 } else { self.names };
        differ - more.abs() >= least
            && (self.name_words..=self.most_name_words).contains(&words)
            && others <= self.other_repeated
            && own <= self.name_runs * runs_per_word * differ
            && unexplained <= (self.other_words + 2.0 * more.abs()) * units_per_word
    }

    /// Compares two texts. The order matters only for `by_member` and `to_root`.
    #[inline]
    pub fn compare(&self, one: &Text, other: &Text) -> Comparison {
        let resemblance = resemblance(&one.sketch, &other.sketch);
        let [units, runs, figures] =
            [(one.units, other.units), (one.runs, other.runs), (one.figures, other.figures)]
                // Compare unpacked numbers: in a damaged index, packed values may be in another order.
                .map(|(one, other)| (f64::from(one.number()), f64::from(other.number())))
                .map(|(one, other)| (one.min(other), one.max(other)));
        let shorter = units.0;
        let excess = (1.0 - self.resemblance) * self.short_excess;
        let needed = self.resemblance + excess * f64::min(self.short_units / shorter.max(1.0), 1.0);
        let missing = |one: u64, other: u64| {
            let unshared = UNSHARED[(one ^ other).count_ones() as usize];
            f64::max(unshared - (figures.1 - figures.0), 0.0) / 2.0
        };
        let pairs = missing(one.pair_sketch, other.pair_sketch);
        // A replaced figure changes two pairs, while an insertion changes only one.
        let moved = if pairs > 1.0 { pairs / 2.0 } else { 0.0 };
        let replaced = f64::max(missing(one.figure_sketch, other.figure_sketch), moved);
        let (smaller, larger) = (runs.0.max(1.0), runs.1.max(1.0));
        // J = shared / (all - shared), so shared = J * all / (1 + J).
        let shared = resemblance * (smaller + larger) / (1.0 + resemblance);
        let contained = f64::min(shared / smaller, 1.0);
        // Texts with different words in the same places are one form, filled in twice. A changed word changes twice
        // as many runs of characters as runs of words.
        let runs_per_word = f64::clamp(2.0 * smaller / shorter.max(1.0), 1.0, 2.0);
        let own = smaller - shared;
        let has_own = own >= f64::max(self.form_runs * runs_per_word, smaller * self.form_run_share);
        let are_balanced = |balance: f64| has_own && own >= balance * (larger - shared);
        let mut most_figures = f64::max(self.few_figures, figures.0 / 2.0);
        if are_balanced(self.form_balance) {
            most_figures = figures.0 * self.form_figure_share;
        }
        // The texts may be a notice that was reissued, such as last year's notice, partly rewritten and perhaps
        // with an additional line.
        if are_balanced(self.reissue_balance) {
            most_figures = most_figures.min(figures.0 * self.reissue_difference * smaller / own);
        }
        // Adding 0.5 rounds the number of figures.
        let replaceable = f64::max(shorter / self.units_a_figure, figures.0 * self.figure_share + 0.5)
            .min(most_figures)
            .min(self.most_figures);
        let longer = f64::from(one.units.number()) - f64::from(other.units.number());
        let names = [one.name_sketch, other.name_sketch];
        let is_form = resemblance >= self.name_resemblance
            && !names.contains(&0)
            && self.is_form(names, replaced, own, runs_per_word, longer);
        let share = smaller / larger;
        let have_figures = replaced <= replaceable && !is_form;
        // Two texts of equal length that just have the needed resemblance have this share in common. With a lower
        // threshold, texts without the needed resemblance would agree as excerpts.
        let in_common = f64::max(self.least_contained, 2.0 * needed / (1.0 + needed));
        // Returns whether the texts agree if each threshold is lowered by `slack`.
        let agree = |slack: f64| {
            let is_excerpt = contained >= in_common - slack
                && share >= self.excerpt_share - slack
                && shorter >= self.contained_units;
            have_figures && (resemblance >= needed - slack || is_excerpt)
        };
        let is_part = contained >= self.part_contained && share >= self.part_share;
        let (agrees, may_join) = (agree(0.0), agree(self.root_slack));
        let is_close = agrees && resemblance >= self.member_resemblance;
        let has_root = have_figures && resemblance >= self.resemblance - self.member_slack;
        let of_other = contained * smaller / f64::from(other.runs.number()).max(1.0);
        let is_version = ByAgreement::share_address(one, other)
            && resemblance >= self.version_resemblance
            && of_other >= self.version_share;
        let way = |is_open: bool, way: u8| if is_open { way } else { 0 };
        Comparison {
            resemblance,
            needed,
            replaced,
            replaceable,
            is_form,
            contained,
            share,
            agree: agrees,
            may_join,
            is_part: have_figures && is_part && shorter >= self.part_units,
            by_member: way(agrees, BY_ROOT) | way(is_close, BY_MEMBER) | way(is_version, BY_ADDRESS),
            to_root: way(may_join, BY_ROOT)
                | way(has_root, BY_MEMBER)
                | way(of_other >= self.version_root, BY_ADDRESS),
        }
    }
}

/// The relation of `verified`: two texts are near if they have a representative in common and agree as a whole.
#[derive(Clone, Copy)]
pub struct ByAgreement {
    /// The maximum distance (inclusive) between two simhashes that match, at most 3; minhashes must be equal.
    pub max_distance_bits: u32,
    /// The thresholds for two whole texts to agree.
    pub agreement: Agreement,
}

impl Relation for ByAgreement {
    type Signature = Text;
    const ID_BYTES: usize = 16;
    const PLACES: usize = REPRESENTATIVES + 1;

    fn id(text: &Text) -> Id {
        let origin = text.origin & PERIOD_MASK;
        let named = Text { indexed: 0, origin, ..*text };
        let end = if origin == 0 { offset_of!(Text, origin) } else { Self::SIZE };
        Id::from_be_bytes(murmur128(&bytes_of(&named)[..end]))
    }

    fn are_equal(one: &Text, other: &Text) -> bool {
        // The fields from `indexed` on belong to nodes, and are not compared.
        let compared = ..offset_of!(Text, indexed);
        bytes_of(one)[compared] == bytes_of(other)[compared]
    }

    fn representative(text: &Text, place: usize) -> u64 {
        if place < REPRESENTATIVES {
            return text.representatives[place];
        }
        // The last place has the link, or the id if there is no link, as an exact key whose first bits are its term.
        // A text without link and id repeats its first representative.
        let kind = usize::from(text.address(0) == 0);
        match text.address(kind) {
            0 => text.representatives[0],
            address => address | (kind as u64) << (u64::BITS - ADDRESS_BITS - 1) | 1,
        }
    }

    fn with_period(text: Text, period: u64) -> Text {
        Text { origin: text.origin & !PERIOD_MASK | period & PERIOD_MASK, ..text }
    }

    fn share_address(one: &Text, other: &Text) -> bool {
        (0..ADDRESSES).any(|place| one.address(place) != 0 && one.address(place) == other.address(place))
    }

    fn length(text: &Text) -> u32 {
        text.units.number()
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

    fn compare(&self, text: &Text, other: &Text) -> (bool, Option<Ordering>) {
        let compared = self.agreement.compare(text, other);
        (compared.agree, compared.is_part.then(|| text.runs.cmp(&other.runs)))
    }

    fn ways_by(&self, text: &Text, member: &Text) -> u8 {
        self.agreement.compare(text, member).by_member
    }

    fn ways_to(&self, text: &Text, root: &Text) -> u8 {
        self.agreement.compare(text, root).to_root
    }

    fn resemblance(text: &Text, root: &Text) -> f64 {
        resemblance(&text.sketch, &root.sketch)
    }
}
