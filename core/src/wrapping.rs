//! Finds line breaks that only wrap a paragraph at the width of its lines.
//!
//! Emails, electronic newspapers and scanned print (OCR) break all lines at the same width. A line is full if the
//! first word of the next line does not fit into it. In a wrapped paragraph, most lines that do not end with a
//! sentence are full; in a menu or a list of headlines, few lines are.

use std::ops::Range;

use crate::characters::{FIRST_WIDE, Point, SPACE, WIDE};
use crate::endings::Ending;

// The widths of columns in print; wider columns are rare.
const COLUMNS: std::ops::RangeInclusive<usize> = 30..=160;
// A full line may be 1/8 shorter than the longest line: letters in print differ in width, and some signs may not
// begin a line.
const SLACK: usize = 8;
// A paragraph of prose has at least one full stop for this many lines; headlines of equal length have fewer.
const MOST_LINES_PER_STOP: usize = 8;
// Korean is wrapped between words.
const HANGUL: Range<u32> = 0xac00..0xd7b0;
const WERE_WIDE: [char; 7] = [',', ':', ';', '!', '?', '(', ')'];
// The maximum number of characters that are counted in a word.
const MOST_WORD: usize = 32;

/// A line, up to its line break or the end of the text. A paragraph is a series of lines that are not blank, with the
/// blank line after it, if any.
struct Line {
    start: usize,
    // The position of the first visible character.
    word: usize,
    // The number of characters up to the last visible one; 0 for a blank line.
    length: usize,
    // The number of columns minus the number of characters; a wide character takes two columns.
    extra_columns: usize,
    // The number of characters in the line that end sentences.
    stops: usize,
    // Whether another line of the paragraph follows.
    continues: bool,
    is_prose: bool,
    breaks_off: bool,
}

impl Line {
    fn columns(&self) -> usize {
        self.length + self.extra_columns
    }
}

/// Returns, for each line of a text, whether it ends only because it is full.
///
/// `ends` are the positions of the characters that end sentences, including all line breaks and the end of the text.
pub fn are_wrapped(points: &[Point], ends: &[usize]) -> Vec<bool> {
    let mut lines = lines(points, ends);
    // Most texts have no paragraph with only short lines, and need no further examination.
    let are_short =
        |lines: &[Line]| lines[0].continues && lines.iter().all(|line| line.length <= *COLUMNS.end());
    if !lines.split_inclusive(|line| line.length == 0).any(are_short) {
        return vec![false; lines.len()];
    }
    for line in &mut lines {
        line.extra_columns = extra_columns(&points[line.start..][..line.length]);
    }
    let paragraphs: Vec<&[Line]> = lines.split_inclusive(|line| line.length == 0).collect();
    if !paragraphs.iter().any(|lines| lines[0].continues && may_be_prose(lines)) {
        return vec![false; lines.len()];
    }
    // Some programs count characters to wrap lines; other programs count columns.
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
        // A paragraph whose lines give no evidence is judged by the whole text.
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
    // At the end of a paragraph, a stop inside quotation marks also counts.
    let stops: usize =
        lines.iter().map(|line| line.stops + usize::from(line.is_prose && !line.continues)).sum();
    COLUMNS.contains(&widest) && stops * MOST_LINES_PER_STOP >= visible
}

/// Returns which lines of a paragraph are full according to a measure; and, among the lines that give evidence, the
/// number of lines that are not full minus the number of full lines, or None if no line gives evidence.
fn full_lines(points: &[Point], lines: &[Line], measure: fn(&Line) -> usize) -> (Vec<bool>, Option<i64>) {
    let longest = lines.iter().map(measure).max().unwrap_or(0);
    let first_longest = lines.iter().position(|line| measure(line) == longest);
    let least = longest - longest / SLACK;
    let is_full = |(at, line): (usize, &Line)| {
        // The line is full if the first word of the next line has at least this many characters.
        let missing = least.saturating_sub(measure(line));
        line.continues
            && !line.breaks_off
            && missing <= MOST_WORD
            && (missing <= 1 || first_word(points, lines[at + 1].word) >= missing)
    };
    let full: Vec<bool> = lines.iter().enumerate().map(is_full).collect();
    // The longest line gives no evidence, since it is always full; nor does a line that completes a
    // sentence, since it may also end a paragraph.
    let counts = |(at, line): &(usize, &Line)| line.continues && !line.is_prose && Some(*at) != first_longest;
    let evidence = lines.iter().enumerate().filter(counts).map(|(at, _)| if full[at] { -1 } else { 1 });
    let against = evidence.reduce(|sum, each| sum + each);
    (full, against)
}

/// Returns the length of the word at `start`, at most [`MOST_WORD`].
fn first_word(points: &[Point], start: usize) -> usize {
    let may_break =
        |point: &Point| point.has(SPACE) || (point.role() == WIDE && !HANGUL.contains(&point.code()));
    // The separator at the end of the text allows a break too.
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
        lines[at - 1].continues = lines[at - 1].length > 0 && lines[at].length > 0;
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
        continues: false,
        is_prose: length > 0 && ending.is_prose,
        breaks_off: ending.breaks_off,
    }
}

fn extra_columns(characters: &[Point]) -> usize {
    let is_wide = |point: &Point| point.code() >= FIRST_WIDE;
    // Normalisation makes these signs narrow, but after an East Asian character they were wide.
    let was_wide = |point: Point| WERE_WIDE.iter().fold(false, |found, &each| found | point.is(each));
    match characters.iter().filter(|each| is_wide(each)).count() {
        0 => 0,
        wide => wide + characters.windows(2).filter(|pair| is_wide(&pair[0]) & was_wide(pair[1])).count(),
    }
}
