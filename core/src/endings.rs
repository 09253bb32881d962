//! How sentences of running text end, other than headlines, menu items, teasers and rows of tables.

use crate::characters::{ALNUM, FINAL, HARD_END, LATIN, NUMBER, Point, SPACE, TRAILING, tables};

/// Whether white space follows a full stop, and no single letter precedes it: not in `3.14`, `e.g.` or `J. Smith`, nor
/// after the dots that lead to a value, as in `Coupon .... 2 %`.
pub fn stop_ends_sentence(points: &[Point], at: usize) -> bool {
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
