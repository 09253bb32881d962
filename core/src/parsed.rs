//! Parses a text into sentences, tokens and passages, from which fingerprints are computed.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use crate::characters::{Point, STOP};
use crate::figures::unmark_asides;
use crate::markup::{may_have_markup, visible_beginning};
use crate::normal_form::{normalise, places_of_points};
use crate::passages::Passage;
use crate::sentences::{Sentence, sentences};
use crate::tokens::{CharacterHash, Token, Tokenised, content_hash, tokenise};

/// How texts are parsed.
#[derive(Clone, Copy, Debug)]
pub struct ParseRules {
    /// The maximum number of characters in a normalised text.
    pub max_length: usize,
    /// Whether the texts are already without markup.
    pub are_visible: bool,
    /// Whether to keep the normalised text, which is needed to extract words and to show passages.
    pub keep_points: bool,
    /// The hash of characters.
    pub hash: CharacterHash,
}

/// A sentence and its tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParsedSentence {
    /// The sentence.
    pub sentence: Sentence,
    first: u32,
    stop: u32,
}

impl ParsedSentence {
    /// Returns the number of letters and digits.
    pub fn letters(&self) -> usize {
        self.sentence.letters
    }

    /// Returns the range of the sentence's tokens.
    pub fn tokens(&self) -> Range<usize> {
        self.first as usize..self.stop as usize
    }
}

/// A parsed text.
#[derive(Default)]
pub struct ParsedText {
    /// The normalised text with [`Point::END`]; empty unless the rules keep points.
    pub points: Vec<Point>,
    /// All tokens, in order.
    pub tokens: Vec<Token>,
    /// All sentences, in order.
    pub sentences: Vec<ParsedSentence>,
    /// One passage per sentence.
    pub passages: Vec<Passage>,
    /// The content hash of the text after truncation to `max_length` characters.
    pub content_hash: u64,
    /// Whether the text was truncated.
    pub is_cut: bool,
}

thread_local! {
    /// Memory that a thread reuses for the next text: characters and tokens.
    static MEMORY: Cell<(Vec<Point>, Tokenised)> = Cell::default();
}
// Memory for more characters is not kept.
const MOST_KEPT: usize = 1 << 16;

impl ParsedText {
    /// Parses a text, with or without markup.
    pub fn of(text: &str, rules: &ParseRules) -> ParsedText {
        let visible = if rules.are_visible || !may_have_markup(text) {
            Cow::Borrowed(text)
        } else {
            visible_beginning(text, rules.max_length)
        };
        let (mut points, mut tokenised) = MEMORY.take();
        points.clear();
        let is_cut = normalise(&visible, rules.max_length, &mut points);
        tokenise(&points, &rules.hash, &mut tokenised);
        let (sentences, passages) = parsed_sentences(&points, &mut tokenised);
        let parsed = ParsedText {
            points: if rules.keep_points { points.clone() } else { Vec::new() },
            tokens: tokenised.tokens.clone(),
            sentences,
            passages,
            content_hash: content_hash(&tokenised.letters),
            is_cut,
        };
        if points.capacity() <= MOST_KEPT {
            MEMORY.set((points, tokenised));
        }
        parsed
    }

    /// Returns the sentences that are not omitted; all sentences if `omitted` is empty.
    pub fn remaining_sentences(&self, omitted: &[bool]) -> Cow<'_, [ParsedSentence]> {
        if !omitted.contains(&true) {
            return Cow::Borrowed(&self.sentences);
        }
        let kept = self.sentences.iter().zip(omitted).filter(|(_, is_omitted)| !**is_omitted);
        Cow::Owned(kept.map(|(sentence, _)| *sentence).collect())
    }

    /// Returns the tokens of the text without the omitted sentences.
    pub fn remaining_tokens(&self, omitted: &[bool]) -> Cow<'_, [Token]> {
        if !omitted.contains(&true) {
            return Cow::Borrowed(&self.tokens);
        }
        Cow::Owned(self.without(&self.tokens, omitted, ParsedSentence::tokens))
    }

    /// Returns the normalised text without the omitted passages, and its sentences.
    ///
    /// The characters that end omitted sentences remain.
    pub fn remaining_points(&self, omitted: &[bool]) -> (Cow<'_, [Point]>, Vec<Sentence>) {
        if !omitted.contains(&true) {
            let plain = self.sentences.iter().map(|each| each.sentence).collect();
            return (Cow::Borrowed(&self.points), plain);
        }
        let kept = self.without(&self.points, omitted, |each| each.sentence.start..each.sentence.end);
        let stops: Vec<usize> = (0..kept.len()).filter(|&at| kept[at].has(STOP)).collect();
        let found = sentences(&kept, &stops);
        (Cow::Owned(kept), found)
    }

    /// Returns the items outside the omitted sentences; `places` returns the range of a sentence's items.
    fn without<T: Copy>(
        &self,
        all: &[T],
        omitted: &[bool],
        places: impl Fn(&ParsedSentence) -> Range<usize>,
    ) -> Vec<T> {
        let mut kept = Vec::with_capacity(all.len());
        let mut done = 0;
        for (each, _) in self.sentences.iter().zip(omitted).filter(|(_, is_omitted)| **is_omitted) {
            let Range { start, end } = places(each);
            kept.extend_from_slice(&all[done..start]);
            done = end;
        }
        kept.extend_from_slice(&all[done..]);
        kept
    }

    /// Returns the number of letters and digits.
    pub fn letters(&self) -> usize {
        self.sentences.iter().map(ParsedSentence::letters).sum()
    }
}

fn parsed_sentences(points: &[Point], tokenised: &mut Tokenised) -> (Vec<ParsedSentence>, Vec<Passage>) {
    let Tokenised { tokens, stops, tokens_before, .. } = tokenised;
    let found = sentences(points, stops);
    // Sentences begin after stops and end at stops. Each search for a stop begins where the previous search ended.
    let mut at = 0;
    let mut tokens_at = |stop: usize| {
        at += stops[at..].iter().take_while(|each| **each < stop).count();
        tokens_before[at] as u32
    };
    let parsed = |sentence: Sentence| {
        let first = if sentence.start == 0 { 0 } else { tokens_at(sentence.start - 1) };
        ParsedSentence { sentence, first, stop: tokens_at(sentence.end) }
    };
    let sentences: Vec<ParsedSentence> = found.into_iter().map(parsed).collect();
    let next_firsts = sentences.iter().skip(1).map(|next| next.first as usize).chain([tokens.len()]);
    let places: Vec<Range<usize>> =
        sentences.iter().zip(next_firsts).map(|(each, next)| each.first as usize..next).collect();
    let with_tokens = sentences.iter().zip(&places);
    let with_tokens: Vec<_> =
        with_tokens.map(|(each, places)| (&each.sentence, &tokens[places.clone()])).collect();
    let passages = Passage::of_all(points, &with_tokens);
    unmark_asides(points, tokens, &passages, &places);
    (sentences, passages)
}

/// Returns the start and end of each sentence in the visible text, in characters.
///
/// If several characters are normalised together, such as a letter and its accents, each gets the position of the
/// first of these characters.
pub fn sentence_places(visible: &str, text: &ParsedText) -> Vec<(usize, usize)> {
    let places = places_of_points(visible);
    let place = |point: usize| places.get(point).or(places.last()).copied().unwrap_or(0);
    let spans = text.sentences.iter().map(|each| {
        let last = place(each.sentence.end);
        let after = places.partition_point(|&each| each <= last);
        (place(each.sentence.start), place(after))
    });
    spans.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::USUAL_HASH;

    #[test]
    fn results_do_not_depend_on_texts_parsed_before() {
        let rules = ParseRules { max_length: 100, are_visible: false, keep_points: true, hash: *USUAL_HASH };
        let texts = ["", "<p>One &amp; two.</p> 3.5 三。", &"A long text. ".repeat(1 << 17), "b"];
        let parsed = || texts.map(|text| ParsedText::of(text, &rules));
        for (one, other) in parsed().into_iter().zip(parsed()) {
            assert_eq!((one.tokens, one.passages), (other.tokens, other.passages));
            assert_eq!((one.content_hash, one.is_cut), (other.content_hash, other.is_cut));
            assert_eq!(one.sentences, other.sentences);
        }
    }
}
