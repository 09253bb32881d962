//! Finds the line breaks of wrapped text, which are there only because a line was full.
//!
//! Mail, electronic papers and recognised print break all lines at the same width. A full line is one to which the
//! first word of the next could not be added. Most lines of a wrapped paragraph are full, except for those that end
//! with a sentence; few of a menu or a list of headlines are.

use std::ops::Range;

use crate::characters::{FIRST_WIDE, Point, SPACE, WIDE};
use crate::endings::Ending;

// Print has no narrower columns, and hardly any wider ones.
const COLUMNS: std::ops::RangeInclusive<usize> = 30..=160;
// A full line may be shorter by this part of the longest: print has as many letters in a line as fit, and some signs
// may not begin a line.
const SLACK: usize = 8;
// Headlines of equal length have fewer full stops.
const MOST_LINES_A_STOP: usize = 8;
// Korean is wrapped between words.
const HANGUL: Range<u32> = 0xac00..0xd7b0;
const WERE_WIDE: [char; 7] = [',', ':', ';', '!', '?', '(', ')'];
// Words are measured up to this many characters.
const MOST_WORD: usize = 32;

/// A line, up to its line break or the end of the text. A paragraph is a row of lines that are not blank, with the
/// blank line or the end of the text after it.
struct Line {
    start: usize,
    // The first visible character, and how many characters there are up to the last visible one: 0 if it is blank.
    word: usize,
    length: usize,
    // How many columns more than characters it has, where a wide character has two.
    extra_columns: usize,
    // The characters in it that end sentences.
    stops: usize,
    // Whether a line of the same paragraph follows.
    goes_on: bool,
    is_prose: bool,
    breaks_off: bool,
}

impl Line {
    fn columns(&self) -> usize {
        self.length + self.extra_columns
    }
}

/// Returns which lines of a text end only because they are full.
///
/// `ends` are the places of the characters that end sentences, among them all line breaks and the end of the text.
pub fn are_wrapped(points: &[Point], ends: &[usize]) -> Vec<bool> {
    let mut lines = lines(points, ends);
    // Most texts have no paragraph of such short lines, and need not be examined further.
    let are_short =
        |lines: &[Line]| lines[0].goes_on && lines.iter().all(|line| line.length <= *COLUMNS.end());
    if !lines.split_inclusive(|line| line.length == 0).any(are_short) {
        return vec![false; lines.len()];
    }
    for line in &mut lines {
        line.extra_columns = extra_columns(&points[line.start..][..line.length]);
    }
    let paragraphs: Vec<&[Line]> = lines.split_inclusive(|line| line.length == 0).collect();
    if !paragraphs.iter().any(|lines| lines[0].goes_on && may_be_prose(lines)) {
        return vec![false; lines.len()];
    }
    // Some programs count characters, others columns.
    let measures: [fn(&Line) -> usize; 2] = [|line| line.length, Line::columns];
    let has_wide = lines.iter().any(|line| line.extra_columns > 0);
    let by_measure = measures[..1 + usize::from(has_wide)].iter().map(|&measure| {
        let measured: Vec<_> = paragraphs.iter().map(|lines| full_lines(points, lines, measure)).collect();
        let of_text: i64 = measured.iter().filter_map(|(_, against)| *against).sum();
        (measured, of_text)
    });
    let by_measure: Vec<_> = by_measure.collect();
    let mut wrapped = Vec::with_capacity(lines.len());
    for (at, paragraph) in paragraphs.iter().enumerate() {
        // A paragraph without evidence in its lines is judged by the whole text.
        let each = by_measure
            .iter()
            .map(|(measured, of_text)| (&measured[at].0, measured[at].1.unwrap_or(*of_text)));
        let Some((full, against)) = each.min_by_key(|(_, against)| *against) else { continue };
        let may_be = against <= 0 && may_be_prose(paragraph);
        wrapped.extend(full.iter().map(|full| may_be && *full));
    }
    wrapped
}

fn may_be_prose(lines: &[Line]) -> bool {
    let widest = lines.iter().map(Line::columns).max().unwrap_or(0);
    let visible = lines.iter().filter(|line| line.length > 0).count();
    // A stop inside quotation marks does not end a sentence, but a paragraph.
    let stops: usize =
        lines.iter().map(|line| line.stops + usize::from(line.is_prose && !line.goes_on)).sum();
    COLUMNS.contains(&widest) && stops * MOST_LINES_A_STOP >= visible
}

/// Returns which lines of a paragraph are full by a measure; and, of the lines that are evidence, how many more are not
/// full than are: None if no line is evidence.
fn full_lines(points: &[Point], lines: &[Line], measure: fn(&Line) -> usize) -> (Vec<bool>, Option<i64>) {
    let longest = lines.iter().map(measure).max().unwrap_or(0);
    let first_longest = lines.iter().position(|line| measure(line) == longest);
    let room = longest - longest / SLACK;
    let is_full = |(at, line): (usize, &Line)| {
        // The line is full if the next line's first word has at least this many characters.
        let missing = room.saturating_sub(measure(line));
        line.goes_on
            && !line.breaks_off
            && missing <= MOST_WORD
            && (missing <= 1 || first_word(points, lines[at + 1].word) >= missing)
    };
    let full: Vec<bool> = lines.iter().enumerate().map(is_full).collect();
    // The longest line is full however it was made, and the end of a sentence may be that of a paragraph as well.
    let tells = |(at, line): &(usize, &Line)| line.goes_on && !line.is_prose && Some(*at) != first_longest;
    let telling = lines.iter().enumerate().filter(tells).map(|(at, _)| if full[at] { -1 } else { 1 });
    let against = telling.reduce(|sum, each| sum + each);
    (full, against)
}

/// Returns how many characters a word has, [`MOST_WORD`] if not fewer.
fn first_word(points: &[Point], start: usize) -> usize {
    let may_break =
        |point: &Point| point.has(SPACE) || (point.role() == WIDE && !HANGUL.contains(&point.code()));
    // A text ends with a separator, at which a break is possible.
    let found = points[start..].iter().take(MOST_WORD).position(may_break);
    found.map_or(MOST_WORD, |length| length.max(1))
}

fn lines(points: &[Point], ends: &[usize]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let (mut start, mut stops) = (0, 0);
    for &end in ends {
        if points[end].is('\n') || points[end] == Point::END {
            lines.push(line(points, start, end, stops));
            (start, stops) = (end + 1, 0);
        } else {
            stops += 1;
        }
    }
    for at in 1..lines.len() {
        lines[at - 1].goes_on = lines[at - 1].length > 0 && lines[at].length > 0;
    }
    lines
}

fn line(points: &[Point], start: usize, end: usize, stops: usize) -> Line {
    let characters = &points[start..end];
    let is_visible = |point: &Point| !point.has(SPACE);
    let first = characters.iter().position(is_visible);
    let length = characters.iter().rposition(is_visible).map_or(0, |last| last + 1);
    let ending = Ending::of(points, start, end);
    Line {
        word: start + first.unwrap_or(0),
        length,
        start,
        extra_columns: 0,
        stops,
        goes_on: false,
        is_prose: length > 0 && ending.is_prose,
        breaks_off: ending.breaks_off,
    }
}

fn extra_columns(characters: &[Point]) -> usize {
    let is_wide = |point: &Point| point.code() >= FIRST_WIDE;
    // Normalising makes these narrow; next to East Asian text they were wide.
    let was_wide = |point: Point| WERE_WIDE.iter().fold(false, |found, &each| found | point.is(each));
    match characters.iter().filter(|each| is_wide(each)).count() {
        0 => 0,
        wide => wide + characters.windows(2).filter(|pair| is_wide(&pair[0]) & was_wide(pair[1])).count(),
    }
}
