//! The signature of `verified`: the longest sentence of each half, minhashes of the wording, and a sketch of the whole
//! text, in 144 bytes as `esdedup/fingerprint/signature.py` names them.
//!
//! From a sketch of 64 bytes, the resemblance of two texts is estimated. One-permutation MinHash (Li, Owen, Zhang, NIPS
//! 2012): every run of tokens is hashed, the highest bits of the hash choose one of 128 bins, and each bin keeps its
//! least hash. A sketch stores 4 bits of each (b-bit MinHash; Li, König, WWW 2010), or 0 for an empty bin. A bin that is
//! empty in both texts is not compared. So short texts, in which nearly every run has a bin of its own, are compared
//! nearly exactly.

use crate::hashing::{majority, mixed};
use crate::parsed::{ParsedSentence, ParsedText};
use crate::runs::{Run, SENTENCE_UNITS, TEXT_UNITS, runs};
use crate::sentences::longest_of_halves;
use crate::tokens::Token;

/// How many representatives a text has: simhashes of one or two sentences, which are even, then minhashes of the
/// wording, which are odd; a text with too few words repeats the first simhash.
pub const REPRESENTATIVES: usize = 9;
/// The bytes of a signature.
pub const SIZE: usize = (REPRESENTATIVES + WORDS) * 8 + 8;
const MINHASH: u64 = 1;

/// What of a profile decides a signature.
#[derive(Clone, Copy, Debug)]
pub struct SignatureRules {
    /// A text with fewer letters and digits has none.
    pub min_letters: usize,
    /// A sentence is cut after so many tokens.
    pub max_sentence_length: usize,
    /// How many times a run of tokens with a number counts in the sketch.
    pub number_weight: u32,
}

/// Returns the signature of a text without some of its passages, if it has one, and its letters and digits.
pub fn signature(text: &ParsedText, omitted: &[bool], rules: SignatureRules) -> (Option<[u8; SIZE]>, usize) {
    let sentences = text.remaining_sentences(omitted);
    let letters = sentences.iter().map(|each| each.sentence.letters).sum();
    if letters < rules.min_letters || sentences.is_empty() {
        return (None, letters);
    }
    let tokens = text.remaining_tokens(omitted);
    let sketch = Sketch::of(runs(&tokens, TEXT_UNITS), rules.number_weight);
    let representatives = representatives(text, &sentences, &sketch, rules);
    let weight = sketch.weight.min(u16::MAX.into()) as u16;
    let mut signature = [0; SIZE];
    let (words, rest) = signature.split_at_mut((REPRESENTATIVES + WORDS) * 8);
    for (place, word) in words.chunks_exact_mut(8).zip(representatives.iter().chain(&sketch.words())) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    rest[..4].copy_from_slice(&(letters as u32).to_le_bytes());
    rest[4..6].copy_from_slice(&weight.to_le_bytes());
    (Some(signature), letters)
}

/// Returns the tokens of a sentence that are hashed.
pub fn hashed_tokens<'a>(text: &'a ParsedText, sentence: &ParsedSentence, max_length: usize) -> &'a [Token] {
    let tokens = &text.tokens[sentence.tokens()];
    &tokens[..tokens.len().min(max_length)]
}

fn representatives(
    text: &ParsedText,
    sentences: &[ParsedSentence],
    sketch: &Sketch,
    rules: SignatureRules,
) -> [u64; REPRESENTATIVES] {
    let mut found = [0; REPRESENTATIVES];
    let mut count = 0;
    for sentence in longest_of_halves(sentences) {
        let tokens = hashed_tokens(text, sentence, rules.max_sentence_length);
        found[count] = majority(runs(tokens, SENTENCE_UNITS).map(|run| run.hash)) & !MINHASH;
        count += 1;
    }
    let first = found[0];
    for (place, minhash) in found[count..].iter_mut().zip(sketch.minhashes()) {
        *place = if minhash == 0 { first } else { minhash | MINHASH };
    }
    found
}

const BIN_BITS: u32 = 7;
const BINS: usize = 1 << BIN_BITS;
/// 64-bit words of a sketch.
pub const WORDS: usize = BINS * 4 / 64;
/// Minhashes of a text: one more than represent it beside two sentences.
pub const MINHASHES: usize = 8;

// Each minhash takes so many groups of bins, and the run with the least hash of each. Two runs would find a little more,
// but many unrelated texts have two common runs of words the same.
const RUNS: usize = 3;
const BINS_OF_GROUP: usize = BINS / (MINHASHES * RUNS);
const CODES: u64 = 15;
const NONE: u64 = u64::MAX;
// Odd. A run that counts several times is rehashed by multiplying its hash with powers of this.
const REPEAT: u64 = 0xd6e8_feb8_6659_fd93;

/// The least hash in each bin, of the runs added so far.
pub struct Sketch {
    least: [u64; BINS],
    /// How much all runs weigh.
    pub weight: u64,
}

impl Sketch {
    /// Sketches a text. A run with a number counts `number_weight` times: texts made from one template differ in their
    /// numbers, and the larger the share of numbers in a text, the more they should weigh.
    #[inline]
    pub fn of(runs: impl Iterator<Item = Run>, number_weight: u32) -> Sketch {
        let mut least = [NONE; BINS];
        let mut add = |hash: u64| {
            let bin = &mut least[(hash >> (64 - BIN_BITS)) as usize];
            *bin = hash.min(*bin);
        };
        let mut weight = 0;
        for run in runs {
            add(run.hash);
            weight += 1;
            if run.has_number {
                let mut hash = run.hash;
                for _ in 1..number_weight {
                    hash = hash.wrapping_mul(REPEAT);
                    add(hash);
                    weight += 1;
                }
            }
        }
        Sketch { least, weight }
    }

    /// Returns 4 bits of each bin's least hash, 0 for an empty bin, the first bin highest.
    pub fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        for (word, bins) in words.iter_mut().zip(self.least.chunks_exact(BINS / WORDS)) {
            *word = bins.iter().fold(0, |word, &least| {
                let code = if least == NONE { 0 } else { (least & 0xffff_ffff) % CODES + 1 };
                word << 4 | code
            });
        }
        words
    }

    /// Returns the minhashes: each made of two or three runs, chosen by their hashes; 0 for none.
    ///
    /// The least hash in a group of bins picks a run at random. Another text with that run picks the same one, unless it
    /// has a run with a lower hash that this text lacks.
    pub fn minhashes(&self) -> [u64; MINHASHES] {
        let mut groups =
            self.least.chunks_exact(BINS_OF_GROUP).map(|bins| bins.iter().copied().fold(NONE, u64::min));
        let mut next = || groups.next().unwrap_or(NONE);
        [(); MINHASHES].map(|()| match [next(), next(), next()] {
            [NONE, _, _] | [_, NONE, _] => 0,
            // Short texts leave many groups empty; they would have hardly any minhashes without this.
            [one, two, NONE] => mixed(mixed(one).wrapping_add(two)),
            [one, two, three] => mixed(mixed(mixed(one).wrapping_add(two)).wrapping_add(three)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(hashes: &[u64], number_weight: u32) -> Sketch {
        Sketch::of(hashes.iter().map(|&hash| Run { hash, has_number: hash % 2 == 1 }), number_weight)
    }

    #[test]
    fn neither_order_nor_repetition_counts() {
        let hashes: Vec<u64> = (1..60).map(mixed).collect();
        let again: Vec<u64> = hashes.iter().rev().chain(&hashes[..9]).copied().collect();
        assert_eq!(sketch(&hashes, 5).words(), sketch(&again, 5).words());
        assert_eq!(sketch(&hashes, 5).minhashes(), sketch(&again, 5).minhashes());
    }

    #[test]
    fn numbers_weigh_more_and_few_runs_have_no_minhashes() {
        assert_eq!(sketch(&[2, 3], 5).weight, 6);
        assert_eq!(sketch(&[mixed(2)], 1).minhashes(), [0; MINHASHES]);
        assert_eq!(sketch(&[], 1).words(), [0; WORDS]);
    }
}
