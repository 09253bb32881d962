//! The sentences of a normal text: the pieces between the characters that end sentences, if they have a letter or
//! digit.

use crate::characters::{ALNUM, FIRST_WIDE, HARD_END, Point};
use crate::endings::stop_ends_sentence;
use crate::wrapping::are_wrapped;

/// A sentence, a headline, a menu item or a row of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sentence {
    /// Its first character.
    pub start: usize,
    /// The character that ends it.
    pub end: usize,
    /// The number of letters and digits, which is the length of a sentence.
    pub letters: usize,
}

/// Returns the sentences of a normal text that ends with [`Point::END`], given the places of all its stops.
pub fn sentences(points: &[Point], stops: &[usize]) -> Vec<Sentence> {
    let ends_sentence = |at: &&usize| points[**at].has(HARD_END) || stop_ends_sentence(points, **at);
    let mut ends: Vec<usize> = stops.iter().filter(ends_sentence).copied().collect();
    // A line break ends a sentence, unless the line was only full.
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

/// Joins the rows of tables and menus, since each row alone is too short.
///
/// A line is joined with the next one if it ends neither with a full stop nor with an East Asian character, and no
/// blank line is between them.
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

/// Returns the longest of some sentences by their letters, the first of equals.
pub fn longest<T>(sentences: &[T], letters: fn(&T) -> usize) -> Option<&T> {
    // Reversed, since `max_by_key` takes the last of equals.
    sentences.iter().rev().max_by_key(|each| letters(each))
}

/// Returns the longest sentence of each half: a new lead, a cut tail or a long footer replaces only one of the two.
pub fn longest_of_halves<T>(sentences: &[T], letters: fn(&T) -> usize) -> impl Iterator<Item = &T> {
    // The first half of n sentences are those before n / 2.
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
    fn sentences_end_at_stops_and_at_line_breaks_that_are_meant() {
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
    fn the_longest_of_each_half_is_the_first_of_equals() {
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
    fn rows_are_joined_but_not_over_a_blank_line_nor_after_a_stop_or_an_east_asian_character() {
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
