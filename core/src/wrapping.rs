//! Which line breaks are there only because a line was full: those of wrapped text.
//!
//! Mail, electronic papers and recognised print break all lines at the same width. A full line is one to which the first
//! word of the next could not be added. Most lines of a wrapped paragraph are full, except for those that end with a
//! sentence; few of a menu or a list of headlines are.

use std::ops::Range;

use crate::characters::{FIRST_WIDE, Point, SPACE, WIDE};
use crate::sentences::Ending;

// Print has no narrower columns, and hardly any wider ones.
const COLUMNS: std::ops::RangeInclusive<usize> = 30..=160;
// A full line may be shorter by this part of the longest: print has as many letters in a line as fit, and some signs may
// not begin a line.
const SLACK: usize = 8;
// Headlines of equal length have fewer full stops.
const MOST_LINES_A_STOP: usize = 8;
// Korean is wrapped between words.
const HANGUL: Range<u32> = 0xac00..0xd7b0;
// No longer word is looked at to its end.
const MOST_WORD: usize = 32;

/// A line, up to its line break or the end of the text. A paragraph is a row of lines that are not blank, with the
/// blank line or the end of the text after it.
struct Line {
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
    let lines = lines(points, ends);
    let paragraphs: Vec<&[Line]> = lines.split_inclusive(|line| line.length == 0).collect();
    // Some programs count characters, others columns.
    let measures: [fn(&Line) -> usize; 2] = [|line| line.length, Line::columns];
    let [characters, columns] = measures.map(|measure| {
        let measured: Vec<Measured> =
            paragraphs.iter().map(|lines| measured(points, lines, measure)).collect();
        let of_text: i64 = measured.iter().map(|each| each.against).sum();
        (measured, of_text)
    });
    let mut wrapped = Vec::with_capacity(lines.len());
    for (paragraph, (one, other)) in paragraphs.iter().zip(characters.0.into_iter().zip(columns.0)) {
        // A paragraph in which no line tells anything is judged by all of its text.
        let against = if one.is_telling { one.against } else { characters.1 };
        let against_columns = if other.is_telling { other.against } else { columns.1 };
        let (chosen, least) =
            if against_columns < against { (other, against_columns) } else { (one, against) };
        let may_be = least <= 0 && may_be_prose(paragraph);
        wrapped.extend(chosen.full.iter().map(|full| may_be && *full));
    }
    wrapped
}

/// A paragraph by one of the two measures.
struct Measured {
    // Which lines are full.
    full: Vec<bool>,
    // Whether there are lines that tell something, and how many more of them are not full than are.
    is_telling: bool,
    against: i64,
}

fn may_be_prose(lines: &[Line]) -> bool {
    let widest = lines.iter().map(Line::columns).max().unwrap_or(0);
    let visible = lines.iter().filter(|line| line.length > 0).count();
    // A stop inside quotation marks does not end a sentence, but a paragraph.
    let stops: usize =
        lines.iter().map(|line| line.stops + usize::from(line.is_prose && !line.goes_on)).sum();
    COLUMNS.contains(&widest) && stops * MOST_LINES_A_STOP >= visible
}

fn measured(points: &[Point], lines: &[Line], measure: fn(&Line) -> usize) -> Measured {
    let sizes: Vec<usize> = lines.iter().map(measure).collect();
    let longest = sizes.iter().copied().max().unwrap_or(0);
    let first_longest = sizes.iter().position(|&size| size == longest);
    let room = longest - longest / SLACK;
    let is_full = |(at, line): (usize, &Line)| {
        // So many characters the next line's first word has at least if it had no room.
        let missing = room.saturating_sub(sizes[at]);
        line.goes_on
            && !line.breaks_off
            && missing <= MOST_WORD
            && (missing <= 1 || first_word(points, lines[at + 1].word) >= missing)
    };
    let full: Vec<bool> = lines.iter().enumerate().map(is_full).collect();
    // The longest line is full however it was made, and the end of a sentence may be that of a paragraph as well.
    let tells = |(at, line): &(usize, &Line)| line.goes_on && !line.is_prose && Some(*at) != first_longest;
    let telling: Vec<_> = lines.iter().enumerate().filter(tells).collect();
    let against = telling.iter().map(|(at, _)| if full[*at] { -1 } else { 1 }).sum();
    Measured { full, is_telling: !telling.is_empty(), against }
}

/// Returns how many characters a word has, `MOST_WORD` if not fewer.
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
        extra_columns: extra_columns(characters),
        stops,
        goes_on: false,
        is_prose: length > 0 && ending.is_prose,
        breaks_off: ending.breaks_off,
    }
}

fn extra_columns(characters: &[Point]) -> usize {
    let is_wide = |point: &Point| point.code() >= FIRST_WIDE;
    // Normalising makes these narrow; beside East Asian text they were wide.
    let was_wide = |point: Point| [',', ':', ';', '!', '?', '(', ')'].iter().any(|&each| point.is(each));
    match characters.iter().filter(|each| is_wide(each)).count() {
        0 => 0,
        wide => wide + characters.windows(2).filter(|pair| is_wide(&pair[0]) && was_wide(pair[1])).count(),
    }
}
