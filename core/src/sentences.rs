//! The sentences of a normal text: what stands between the characters that end one, if it has a letter or digit; and how
//! sentences of running text end, other than headlines, menu items, teasers and rows of tables.

use crate::characters::{ALNUM, FINAL, FIRST_WIDE, HARD_END, LATIN, NUMBER, Point, SPACE, TRAILING, tables};
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

impl AsRef<Sentence> for Sentence {
    fn as_ref(&self) -> &Sentence {
        self
    }
}

/// Returns the sentences of a normal text that ends with `Point::END`, given the places of all its stops.
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
pub fn longest<T: AsRef<Sentence>>(sentences: &[T]) -> Option<&T> {
    // Of equals, this takes the last.
    sentences.iter().rev().max_by_key(|each| each.as_ref().letters)
}

/// Returns the longest sentence of each half: a new lead, a cut tail or a long footer replaces only one of the two.
pub fn longest_of_halves<T: AsRef<Sentence>>(sentences: &[T]) -> impl Iterator<Item = &T> {
    // The first half of n sentences are those before n / 2.
    let (first, second) = sentences.split_at(sentences.len() / 2);
    longest(first).into_iter().chain(longest(second))
}

/// Whether white space follows a full stop, and no single letter precedes it: not in `3.14`, `e.g.` or `J. Smith`, nor
/// after the dots that lead to a value, as in `Coupon .... 2 %`.
fn stop_ends_sentence(points: &[Point], at: usize) -> bool {
    let is_initial = at > 0 && points[at - 1].has(LATIN) && (at == 1 || !points[at - 2].has(ALNUM));
    let is_leader = |before: usize| points[before].has(SPACE) && at - before >= LEAST_LEADERS;
    let leads = || points[..at].iter().rposition(|point| !point.is('.')).is_some_and(is_leader);
    points[at + 1].has(SPACE | HARD_END) && !is_initial && !leads()
}

// An ellipsis has fewer.
const LEAST_LEADERS: usize = 4;
const MOST_TRAILING: usize = 8;

/// How a piece of text ends, without what may follow the end of a sentence.
pub struct Ending {
    /// The last character.
    pub sign: Point,
    /// Whether it ends as sentences of prose do.
    pub is_prose: bool,
    /// Whether it ends with an ellipsis, as teasers do.
    pub breaks_off: bool,
}

impl Ending {
    /// Looks at the piece from `start` to `end`, inclusive: the place of a full stop, a line break or a separator.
    pub fn of(points: &[Point], start: usize, end: usize) -> Ending {
        let tables = tables();
        let mut last = end;
        // Whether this is the number of a note, as in `[12]`.
        let mut in_note = false;
        for _ in 0..MOST_TRAILING {
            let sign = points[last];
            in_note = sign.is(']') || (in_note && sign.role() == NUMBER);
            if !(in_note || sign.is('[') || tables.has(sign.code(), TRAILING)) {
                break;
            }
            last = start.max(last.saturating_sub(1));
        }
        let sign = points[last];
        let breaks_off = sign.is('.') && last > 0 && points[last - 1].is('.');
        Ending { sign, is_prose: tables.has(sign.code(), FINAL) && !breaks_off, breaks_off }
    }
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
        let starts = |some: &[Sentence]| longest_of_halves(some).map(|each| each.start).collect::<Vec<_>>();
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
