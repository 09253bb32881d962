//! Divides a normalised text into sentences: the pieces between the characters that end sentences. Pieces without
//! any letter or digit are skipped.

use crate::characters::{ALNUM, FIRST_WIDE, HARD_END, Point};
use crate::endings::stop_ends_sentence;
use crate::wrapping::are_wrapped;

/// A sentence, a headline, a menu item or a row of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sentence {
    /// The position of the first character.
    pub start: usize,
    /// The position of the character that ends the sentence.
    pub end: usize,
    /// The number of letters and digits, which is used as the length.
    pub letters: usize,
}

/// Returns the sentences of a normalised text that ends with [`Point::END`], given the positions of all its stops.
pub fn sentences(points: &[Point], stops: &[usize]) -> Vec<Sentence> {
    let ends_sentence = |at: &&usize| points[**at].has(HARD_END) || stop_ends_sentence(points, **at);
    let mut ends: Vec<usize> = stops.iter().filter(ends_sentence).copied().collect();
    // A line break ends a sentence, unless it only wraps a full line.
    if ends.iter().any(|&at| points[at].is('\n')) {
        let mut wrapped = are_wrapped(points, &ends).into_iter();
        let ends_line = |at: usize| points[at].is('\n') || points[at] == Point::END;
        ends.retain(|&at| !(ends_line(at) && wrapped.next() == Some(true)));
    }
    let mut found = Vec::with_capacity(ends.len());
    let mut start = 0;
    for end in ends {
        let letters = points[start..end].iter().filter(|point| point.has(ALNUM)).count();
        if letters > 0 {
            found.push(Sentence { start, end, letters });
        }
        start = end + 1;
    }
    found
}

/// Joins the rows of tables and menus, since a single row is too short for a fingerprint.
///
/// A line is joined with the next line if it ends neither with a full stop nor with an East Asian character, and if
/// no blank line is between them.
pub fn with_rows_joined(points: &[Point], sentences: &[Sentence]) -> Vec<Sentence> {
    let mut joined: Vec<Sentence> = Vec::with_capacity(sentences.len());
    for each in sentences {
        match joined.last_mut() {
            Some(last)
                if points[last.end].is('\n')
                    && points[last.end - 1].code() < FIRST_WIDE
                    && each.start == last.end + 1 =>
            {
                last.end = each.end;
                last.letters += each.letters;
            }
            _ => joined.push(*each),
        }
    }
    joined
}

/// Returns the sentence with the most letters; if several have equally many, the first of them.
pub fn longest<T>(sentences: &[T], letters: fn(&T) -> usize) -> Option<&T> {
    // Reversed, since `max_by_key` returns the last maximum.
    sentences.iter().rev().max_by_key(|each| letters(each))
}

/// Returns the longest sentence of each half. A new lead, a missing tail or a long footer changes only one
/// of the two sentences.
pub fn longest_of_halves<T>(sentences: &[T], letters: fn(&T) -> usize) -> impl Iterator<Item = &T> {
    // The first half of n sentences has n / 2 sentences, rounded down.
    let (first, second) = sentences.split_at(sentences.len() / 2);
    longest(first, letters).into_iter().chain(longest(second, letters))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::characters::STOP;
    use crate::normal_form::{normalise, to_string};

    fn all(points: &[Point]) -> Vec<Sentence> {
        let stops: Vec<usize> = (0..points.len()).filter(|&at| points[at].has(STOP)).collect();
        sentences(points, &stops)
    }

    fn found(text: &str) -> Vec<String> {
        let mut points = Vec::new();
        normalise(text, usize::MAX, &mut points);
        let found = all(&points);
        found.iter().map(|each| to_string(&points[each.start..each.end]).trim().to_owned()).collect()
    }

    #[test]
    fn sentences_end_at_stops_and_unwrapped_line_breaks() {
        assert_eq!(
            found("written by j. smith, 3.14. 短。... 一!"),
            ["written by j. smith, 3.14", "短", "一"]
        );
        assert_eq!(
            found("a line of text that was wrapped by\na program goes on until its end. no."),
            ["a line of text that was wrapped by\na program goes on until its end", "no"]
        );
        assert_eq!(found("home\nnews\nsport"), ["home", "news", "sport"]);
    }

    #[test]
    fn first_of_equally_long_sentences_is_chosen() {
        let sentence = |(start, letters)| Sentence { start, end: 0, letters };
        let five = [(0, 2), (1, 3), (2, 4), (3, 4), (4, 1)].map(sentence);
        let starts = |some: &[Sentence]| {
            longest_of_halves(some, |each| each.letters).map(|each| each.start).collect::<Vec<_>>()
        };
        assert_eq!(starts(&five), [1, 2]);
        assert_eq!(starts(&five[..1]), [0]);
        assert!(starts(&[]).is_empty());
    }

    #[test]
    fn blank_lines_stops_and_east_asian_characters_prevent_joining() {
        let text = "net 26 mln\nrevs 110 mln\n\npay april 15\nit rose. so did costs\n净利润\n营收";
        let mut points = Vec::new();
        normalise(text, usize::MAX, &mut points);
        let joined = with_rows_joined(&points, &all(&points));
        let strings = joined.iter().map(|each| to_string(&points[each.start..each.end]).trim().to_owned());
        assert_eq!(
            strings.collect::<Vec<_>>(),
            ["net 26 mln\nrevs 110 mln", "pay april 15\nit rose", "so did costs\n净利润", "营收"]
        );
        assert_eq!(joined[0].letters, "net26mlnrevs110mln".len());
    }
}
