//! Normalises visible text. The normal form is Unicode NFKC (which also unifies full and half width), case folded,
//! with traditional Chinese characters simplified, digits of all scripts as ASCII digits, and without the marks and
//! strokes that some spellings of a word omit. This module also maps the characters of the normal form to
//! positions in the visible text.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use crate::characters::{BLANK, MARK, Point, is_override, tables};

// No script needs more consecutive marks. Sorting marks takes quadratic time, so longer sequences are split, as in
// the Stream-Safe Text Format (Unicode Standard Annex #15).
const MOST_MARKS: usize = 30;
const CYRILLIC: Range<u32> = 0x400..0x530;
const ELLIPSIS: char = '\u{2026}';
const ELLIPSIS_LENGTH: usize = 3;

/// Appends the normal form of a visible text, and [`Point::END`].
///
/// Reads the text until its normal form would exceed `max_length` characters. Returns whether the text was longer.
pub fn normalise(visible: &str, max_length: usize, points: &mut Vec<Point>) -> bool {
    let tables = tables();
    let dot = tables.point('.'.into());
    let mut left = max_length;
    // The normal form of a line does not depend on other lines. `start` and `first` are where the line begins in the
    // text and in `points`.
    let (mut start, mut first) = (0, points.len());
    let mut is_contextual = false;
    let mut end = visible.len();
    let mut dots_left = 0;
    points.reserve(visible.len() + 1);
    for (at, character) in visible.char_indices() {
        let single = if left > 0 { tables.single(character.into()) } else { None };
        if let Some(point) = single {
            left -= 1;
            if point.is('\n') {
                if is_contextual {
                    points.truncate(first);
                    normalise_line(&visible[start..at], points);
                }
                (start, first, is_contextual) = (at + character.len_utf8(), points.len() + 1, false);
            }
            points.push(point);
            continue;
        }
        let needed = match character {
            // The ellipsis is common, so it is handled without normalising the whole line.
            ELLIPSIS => ELLIPSIS_LENGTH,
            _ if is_override(character) => 0,
            _ => tables.length(character.into()),
        };
        if needed > left {
            (end, dots_left) = (at, if character == ELLIPSIS { left } else { 0 });
            break;
        }
        left -= needed;
        if character == ELLIPSIS {
            points.extend([dot; ELLIPSIS_LENGTH]);
        } else {
            // A mark that is dropped elsewhere may turn a Cyrillic letter into a different letter.
            let is_letter = |last: &Point| CYRILLIC.contains(&last.code());
            is_contextual |= tables.is_contextual(character.into())
                || (points.last().is_some_and(is_letter) && tables.has(character.into(), MARK));
        }
    }
    if is_contextual {
        points.truncate(first);
        normalise_line(&visible[start..end], points);
    }
    points.extend(std::iter::repeat_n(dot, dots_left));
    points.push(Point::END);
    end < visible.len()
}

/// Appends the normal form of a line, or of any other part of a text whose normal form does not depend on the rest.
pub fn normalise_line(line: &str, points: &mut Vec<Point>) {
    let tables = tables();
    let mut part = String::with_capacity(line.len());
    let mut marks = 0;
    for character in line.chars() {
        let code = character.into();
        // Remove invisible characters first: one between a letter and its accent would prevent their composition.
        if tables.is_invisible(code) && !tables.has(code, BLANK) {
            continue;
        }
        if tables.is_unassigned(code) {
            // A newer version of `unicode-normalization` may know the character and combine it with others.
            append(&mut part, points);
            points.push(tables.point(code));
            marks = 0;
            continue;
        }
        part.push(if tables.has(code, BLANK) { ' ' } else { character });
        marks = if tables.has(code, MARK) { marks + 1 } else { 0 };
        if marks == MOST_MARKS {
            append(&mut part, points);
            marks = 0;
        }
    }
    append(&mut part, points);
}

fn append(part: &mut String, points: &mut Vec<Point>) {
    let tables = tables();
    part.nfkc().for_each(|character| tables.fold(character.into(), points));
    part.clear();
}

/// Returns the points as a string.
pub fn to_string(points: &[Point]) -> String {
    points.iter().map(|each| each.character()).collect()
}

/// Returns the position in a text, in characters, of each point that [`normalise`] makes from the text. The
/// position of the end is the text's length.
pub fn places_of_points(visible: &str) -> Vec<usize> {
    let tables = tables();
    let unfolded = visible.chars().enumerate().flat_map(|(at, character)| {
        // An ellipsis becomes three full stops at the same position.
        let (each, count) = if character == ELLIPSIS { ('.', ELLIPSIS_LENGTH) } else { (character, 1) };
        std::iter::repeat_n((at, each), count)
    });
    let all: Vec<(usize, char)> = unfolded.collect();
    let is_single = |character: char| tables.single(character.into()).is_some();
    let (mut places, mut points) = (Vec::with_capacity(all.len() + 1), Vec::new());
    // A character without a normal form of its own is grouped with the characters before it, as it may combine with
    // them.
    for group in all.chunk_by(|_, (_, next)| !is_single(*next)) {
        points.clear();
        let is_alone = group.len() == 1 && is_single(group[0].1);
        if !is_alone {
            normalise_line(&group.iter().map(|(_, each)| each).collect::<String>(), &mut points);
        }
        let count = if is_alone { 1 } else { points.len() };
        places.extend(std::iter::repeat_n(group[0].0, count));
    }
    places.push(visible.chars().count());
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str, max_length: usize) -> (String, bool) {
        let mut points = Vec::new();
        let is_cut = normalise(text, max_length, &mut points);
        assert_eq!(points.pop(), Some(Point::END));
        (to_string(&points), is_cut)
    }

    #[test]
    fn width_case_chinese_script_and_accents_are_unified() {
        for (text, expected) in [
            ("ＡＢＣ１２３，！", "abc123,!"),
            ("臺灣開放、乾杯", "台湾开放、干杯"),
            ("STRASSE Straße", "strasse strasse"),
            ("co\u{ad}op\u{200b}erate a\u{0}b", "cooperate a b"),
            ("one\u{2028}cafe\u{200b}\u{301}\nx…\u{fdfa}", "one\ncafe\nx...صلي الله عليه وسلم"),
            ("\u{2800}e\u{301}\u{200c}", " e "),
        ] {
            assert_eq!(normal(text, usize::MAX), (expected.to_owned(), false));
        }
    }

    #[test]
    fn text_is_truncated_by_the_length_of_its_normal_form() {
        assert_eq!(normal("abc", 3), ("abc".to_owned(), false));
        assert_eq!(normal("abcd", 3), ("abc".to_owned(), true));
        assert_eq!(normal("ab…", 4), ("ab..".to_owned(), true));
        assert_eq!(normal("e\u{301}…", 4), ("e..".to_owned(), true));
        assert_eq!(normal("a\u{fdfa}", 18), ("a".to_owned(), true));
        assert_eq!(normal("a\u{202e}b", 2), ("ab".to_owned(), false));
    }

    #[test]
    fn unicode_16_characters_are_composed_and_unassigned_ones_kept() {
        assert_eq!(normal("\u{105d2}\u{307}\u{105c9}", usize::MAX).0, "\u{105d2}\u{105d2}");
        assert_eq!(normal("\u{378}", usize::MAX).0, "\u{378}");
    }

    #[test]
    fn each_point_has_a_position_in_the_text() {
        for text in [
            "",
            "abc",
            "e\u{301}x…y\u{200b}z",
            "\u{301}a\u{301}",
            "\u{fdfa}…\u{1100}\u{1161}",
            "\u{ad}\u{ad}a",
        ] {
            let mut points = Vec::new();
            normalise(text, usize::MAX, &mut points);
            let places = places_of_points(text);
            assert_eq!(places.len(), points.len(), "{text}");
            assert!(places.is_sorted());
            assert_eq!(places.last(), Some(&text.chars().count()));
        }
        assert_eq!(places_of_points("e\u{301}x…"), [0, 2, 3, 3, 3, 4]);
    }
}
