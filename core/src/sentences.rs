//! The sentences of a normal text: what stands between the characters that end one, if it has a letter or digit.

use crate::characters::{ALNUM, FIRST_WIDE, FULL_STOP, HARD_END, LATIN, Point, SPACE};
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

/// Returns the sentences of a normal text that ends with `Point::END`.
pub fn sentences(points: &[Point]) -> Vec<Sentence> {
    let ends = ends(points);
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

/// Joins the rows of tables and menus, each one alone being too short.
///
/// That is: lines that end neither with a full stop nor with an East Asian character, without a blank one between them.
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

/// Returns the longest of some sentences, the first of equals.
pub fn longest(sentences: &[Sentence]) -> Option<usize> {
    (0..sentences.len()).max_by_key(|&at| (sentences[at].letters, std::cmp::Reverse(at)))
}

/// Returns the longest sentence of each half: a new lead, a cut tail or a long footer replaces only one of the two.
pub fn longest_of_halves(sentences: &[Sentence]) -> impl Iterator<Item = usize> {
    // The first half of n sentences are those before n / 2.
    let middle = sentences.len() / 2;
    let first = longest(&sentences[..middle]);
    let second = longest(&sentences[middle..]).map(|at| middle + at);
    first.into_iter().chain(second)
}

/// Returns the places of the characters that end sentences.
fn ends(points: &[Point]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut has_line_breaks = false;
    for (at, point) in points.iter().enumerate() {
        if point.has(HARD_END | FULL_STOP) && (point.has(HARD_END) || stop_ends_sentence(points, at)) {
            has_line_breaks |= point.is('\n');
            ends.push(at);
        }
    }
    // A line break ends a sentence, unless the line was only full.
    if has_line_breaks {
        let mut wrapped = are_wrapped(points, &ends).into_iter();
        let ends_line = |at: usize| points[at].is('\n') || points[at] == Point::END;
        ends.retain(|&at| !(ends_line(at) && wrapped.next() == Some(true)));
    }
    ends
}

/// Whether white space follows a full stop, and no single letter precedes it: not in `3.14`, `e.g.` or `J. Smith`.
fn stop_ends_sentence(points: &[Point], at: usize) -> bool {
    let is_initial = at > 0 && points[at - 1].has(LATIN) && (at == 1 || !points[at - 2].has(ALNUM));
    points[at + 1].has(SPACE | HARD_END) && !is_initial
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_form::{normalise, to_string};

    fn found(text: &str) -> Vec<String> {
        let mut points = Vec::new();
        normalise(text, usize::MAX, &mut points);
        let found = sentences(&points);
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
        let sentence = |letters| Sentence { start: 0, end: 0, letters };
        let five = [2, 3, 4, 4, 1].map(sentence);
        assert_eq!(longest_of_halves(&five).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(longest_of_halves(&five[..1]).collect::<Vec<_>>(), [0]);
        assert_eq!(longest_of_halves(&[]).count(), 0);
    }
}
