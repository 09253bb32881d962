//! The signature in the profile `verified`, 176 bytes: simhashes of the longest sentence of each half, minhashes of
//! the wording, and sketches of the whole text. `esdedup/fingerprint/signature.py` names the fields.
//!
//! A sketch of 64 bytes estimates the resemblance of two texts by one-permutation MinHash (Li, Owen, Zhang, NIPS
//! 2012). Every run of tokens is hashed, the highest bits of the hash choose one of 256 bins, and each bin keeps its
//! least hash. The sketch stores 2 bits of each least hash (b-bit MinHash; Li, König, WWW 2010), or 0 for an empty
//! bin. Bins that are empty in both texts are not compared. In a short text, nearly every run has its own bin, so
//! short texts are compared nearly exactly.
//!
//! Another 8 bytes estimate how many figures differ. They are an odd sketch (Mitzenmacher, Pagh, Pham, WWW 2014), in
//! which each bit is the parity of the number of figures that hit it. The next 8 bytes do the same for pairs of
//! consecutive figures. The last 8 bytes estimate how many words, and how many repeated words such as names, differ
//! (`names.rs`).

use bytemuck::{Pod, Zeroable};

use crate::hashing::{BASE, majority, mixed};
use crate::names::{LEAST_NAME_UNITS, name_sketch};
use crate::parsed::{ParsedSentence, ParsedText};
use crate::runs::{SENTENCE_UNITS, TEXT_UNITS, figures, long_runs, runs};
use crate::sentences::longest_of_halves;
use crate::tokens::{Token, units};

/// The number of representatives of a text: first the simhashes of one or two sentences (even numbers), then
/// minhashes of the wording (odd numbers). A text with too few words repeats the first simhash.
pub const REPRESENTATIVES: usize = 9;
const MINHASH: u64 = 1;

/// A signature, in the layout of `SIGNATURE` in `fingerprint/signature.py`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Text {
    pub representatives: [u64; REPRESENTATIVES],
    pub sketch: [u64; WORDS],
    pub figure_sketch: u64,
    pub pair_sketch: u64,
    pub name_sketch: u64,
    pub units: Count,
    pub runs: Count,
    pub figures: Count,
    pub indexed: u16,
    /// Bits of the article's link and id, and of the root's period.
    pub origin: u64,
}

/// The settings of a profile on which signatures depend.
#[derive(Clone, Copy, Debug)]
pub struct SignatureRules {
    /// The minimum number of letters and digits in a text with a signature.
    pub min_letters: usize,
    /// The maximum number of tokens of a sentence that are hashed.
    pub max_sentence_length: usize,
}

/// Returns the signature of a text without its omitted passages, and the number of letters and digits that remain.
/// The signature is None if the text is too short.
pub fn signature(text: &ParsedText, omitted: &[bool], rules: SignatureRules) -> (Option<Text>, usize) {
    let sentences = text.remaining_sentences(omitted);
    let letters = sentences.iter().map(ParsedSentence::letters).sum();
    if letters < rules.min_letters || sentences.is_empty() {
        // A text that has too little besides boilerplate is near only its exact copies.
        let representatives = [mixed(text.content_hash) | MINHASH; REPRESENTATIVES];
        let signature = Text { representatives, ..Text::zeroed() };
        return ((text.letters() >= rules.min_letters).then_some(signature), letters);
    }
    let tokens = text.remaining_tokens(omitted);
    let sketch = Sketch::of(runs(&tokens, TEXT_UNITS));
    let length = units(tokens.iter());
    let figures = figures(&tokens);
    let odd = |figures: &Vec<u64>| figures.iter().fold(0, |bits, hash| bits ^ 1 << (hash >> 58));
    let signature = Text {
        representatives: representatives(text, &sentences, &tokens, length, &sketch, rules),
        sketch: sketch.words(),
        figure_sketch: odd(&figures[0]),
        pair_sketch: odd(&figures[1]),
        name_sketch: if length < LEAST_NAME_UNITS { 0 } else { name_sketch(&tokens) },
        units: Count::of(length),
        runs: Count::of(sketch.runs),
        figures: Count::of(figures[0].len()),
        ..Text::zeroed()
    };
    (Some(signature), letters)
}

/// A number in 16 bits, in an encoding that preserves the order of numbers. It is exact below 32,768, and above that
/// rounded down to a multiple of 32, at most 1,048,544.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub struct Count(pub u16);

impl Count {
    const LARGE: usize = 1 << 15;
    const STEP_BITS: u32 = 5;

    /// Rounds a number.
    pub fn of(number: usize) -> Count {
        let steps = (number >> Count::STEP_BITS).min(Count::LARGE - 1);
        Count(if number < Count::LARGE { number } else { Count::LARGE | steps } as u16)
    }

    /// Returns the rounded number.
    pub fn number(self) -> u32 {
        let steps = u32::from(self.0) & (Count::LARGE as u32 - 1);
        if usize::from(self.0) < Count::LARGE { steps } else { steps << Count::STEP_BITS }
    }
}

/// Returns the tokens of a sentence that are hashed.
pub fn hashed_tokens<'a>(text: &'a ParsedText, sentence: &ParsedSentence, max_length: usize) -> &'a [Token] {
    let tokens = &text.tokens[sentence.tokens()];
    &tokens[..tokens.len().min(max_length)]
}

fn representatives(
    text: &ParsedText,
    sentences: &[ParsedSentence],
    tokens: &[Token],
    units: usize,
    sketch: &Sketch,
    rules: SignatureRules,
) -> [u64; REPRESENTATIVES] {
    let mut found = [0; REPRESENTATIVES];
    let mut count = 0;
    for sentence in longest_of_halves(sentences, ParsedSentence::letters) {
        let tokens = hashed_tokens(text, sentence, rules.max_sentence_length);
        found[count] = majority(runs(tokens, SENTENCE_UNITS)) & !MINHASH;
        count += 1;
    }
    let first = found[0];
    let long = (units / UNITS_PER_LONG_RUN).min(MOST_LONG_RUNS);
    let least = least(long_runs(tokens), long);
    let minhashes = least.iter().map(|&hash| mixed(hash ^ BASE)).chain(sketch.minhashes());
    for (place, minhash) in found[count..].iter_mut().zip(minhashes) {
        *place = if minhash == 0 { first } else { minhash | MINHASH };
    }
    found
}

/// Returns the `most` smallest distinct hashes, ascending.
fn least(hashes: impl Iterator<Item = u64>, most: usize) -> Vec<u64> {
    let mut least: Vec<u64> = Vec::with_capacity(most + 1);
    if most == 0 {
        return least;
    }
    let mut highest = u64::MAX;
    for hash in hashes {
        if hash >= highest {
            continue;
        }
        if let Err(place) = least.binary_search(&hash) {
            least.insert(place, hash);
            least.truncate(most);
            highest = if least.len() == most { least[most - 1] } else { u64::MAX };
        }
    }
    least
}

// Minhashes of long runs find excerpts. In a short text, few long runs survive an edit, so only longer texts have
// many of these minhashes.
const UNITS_PER_LONG_RUN: usize = 50;
const MOST_LONG_RUNS: usize = 5;

const BIN_BITS: u32 = 8;
const BINS: usize = 1 << BIN_BITS;
/// The number of 64-bit words of a sketch.
pub const WORDS: usize = BINS * 2 / 64;
/// The number of minhashes of a sketch: enough to fill the places after a single sentence.
pub const MINHASHES: usize = 8;

// A minhash combines the runs with the least hashes in this many groups of bins. A minhash of two runs would find
// slightly more copies, but many unrelated texts share two frequent runs of words.
const RUNS: usize = 3;
const BINS_OF_GROUP: usize = BINS / (MINHASHES * RUNS);
const CODES: u32 = 3;
const NONE: u64 = u64::MAX;

/// A sketch under construction: the least hash in each bin.
pub struct Sketch {
    least: [u64; BINS],
    /// The number of runs.
    pub runs: usize,
}

impl Sketch {
    /// Returns the sketch of a text, given the hashes of its runs.
    #[inline]
    pub fn of(hashes: impl Iterator<Item = u64>) -> Sketch {
        let mut sketch = Sketch { least: [NONE; BINS], runs: 0 };
        for hash in hashes {
            let bin = &mut sketch.least[(hash >> (64 - BIN_BITS)) as usize];
            *bin = hash.min(*bin);
            sketch.runs += 1;
        }
        sketch
    }

    /// Returns 2 bits of each bin's least hash, or 0 for an empty bin; the first bin has the highest bits.
    pub fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        for (word, bins) in words.iter_mut().zip(self.least.chunks_exact(BINS / WORDS)) {
            for (place, &least) in bins.iter().rev().enumerate() {
                // This avoids a branch, which the processor could not predict.
                *word |= ((u64::from(least as u32 % CODES) + 1) * u64::from(least != NONE)) << (2 * place);
            }
        }
        words
    }

    /// Yields the minhashes, each computed from two or three runs; 0 if the text has too few runs.
    ///
    /// The least hash in a group of bins chooses a run at random. Another text with that run chooses the same run,
    /// unless it has a run with a lower hash that this text lacks.
    pub fn minhashes(&self) -> impl Iterator<Item = u64> {
        let mut groups =
            self.least.chunks_exact(BINS_OF_GROUP).map(|bins| bins.iter().copied().fold(NONE, u64::min));
        let mut next = move || groups.next().unwrap_or(NONE);
        (0..MINHASHES).map(move |_| match [next(), next(), next()] {
            [NONE, _, _] | [_, NONE, _] => 0,
            // Short texts leave many groups empty; without this case they would have few minhashes.
            [one, two, NONE] => mixed(mixed(one).wrapping_add(two)),
            [one, two, three] => mixed(mixed(mixed(one).wrapping_add(two)).wrapping_add(three)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(hashes: &[u64]) -> Sketch {
        Sketch::of(hashes.iter().copied())
    }

    #[test]
    fn sketches_ignore_order_and_repetition() {
        let hashes: Vec<u64> = (1..60).map(mixed).collect();
        let again: Vec<u64> = hashes.iter().rev().chain(&hashes[..9]).copied().collect();
        assert_eq!(sketch(&hashes).words(), sketch(&again).words());
        assert!(sketch(&hashes).minhashes().eq(sketch(&again).minhashes()));
    }

    #[test]
    fn counts_preserve_order_and_are_rounded_slightly() {
        for number in [0, 1, 32_767, 32_768, 32_799, 65_536, 400_000, 1_048_544, 9_999_999] {
            let (found, most) = (Count::of(number).number() as usize, number.min(1_048_544));
            assert!(found <= most && most - found < 32 && (number >= 32_768 || found == number));
            assert!(Count::of(number) <= Count::of(number + 1));
        }
    }

    #[test]
    fn sketches_of_few_runs_have_no_minhashes() {
        assert_eq!(sketch(&[2, 3]).runs, 2);
        assert!(sketch(&[mixed(2)]).minhashes().all(|minhash| minhash == 0));
        assert_eq!(sketch(&[]).words(), [0; WORDS]);
    }

    #[test]
    fn least_hashes_are_distinct_and_ascending() {
        assert_eq!(least([5, 3, 9, 3, 1, 5].into_iter(), 3), [1, 3, 5]);
        assert_eq!(least([5, 5].into_iter(), 3), [5]);
        assert_eq!(least([5].into_iter(), 0), [0; 0]);
    }
}
