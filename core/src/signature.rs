//! The signature of `verified`: the longest sentence of each half, minhashes of the wording, and a sketch of the whole
//! text, in 144 bytes as `esdedup/fingerprint/signature.py` names them.

use crate::parsed::{ParsedSentence, ParsedText};
use crate::runs::{SENTENCE_UNITS, TEXT_UNITS, runs};
use crate::sentences::longest_of_halves;
use crate::simhash::majority;
use crate::sketch::{Sketch, WORDS};
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
