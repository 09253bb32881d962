//! Decides how a piece of text ends: like a sentence of running text, or like a headline, menu item, teaser or row
//! of a table.

use crate::characters::{ALNUM, FINAL, HARD_END, LATIN, NUMBER, Point, SPACE, TRAILING, tables};

/// Returns whether the full stop at a position ends a sentence. White space must follow it, and no single letter may
/// precede it, so no sentence ends inside `3.14`, `e.g.` or `J. Smith`. Nor does a sentence end at the last leader
/// dot in `Coupon .... 2 %`.
pub fn stop_ends_sentence(points: &[Point], at: usize) -> bool {
    let is_initial = at > 0 && points[at - 1].has(LATIN) && (at == 1 || !points[at - 2].has(ALNUM));
    let is_leader = |before: usize| points[before].has(SPACE) && at - before >= LEAST_LEADERS;
    let leads = || points[..at].iter().rposition(|point| !point.is('.')).is_some_and(is_leader);
    points[at + 1].has(SPACE | HARD_END) && !is_initial && !leads()
}

// The minimum number of leader dots, which is more than an ellipsis has.
const LEAST_LEADERS: usize = 4;
const MOST_TRAILING: usize = 8;

/// The ending of a piece of text, without quotation marks, brackets and other trailing characters.
pub struct Ending {
    /// The last character.
    pub sign: Point,
    /// Whether the piece ends like a sentence of prose.
    pub is_prose: bool,
    /// Whether the piece ends with an ellipsis, like a teaser.
    pub breaks_off: bool,
}

impl Ending {
    /// Examines the piece from `start` to `end`, inclusive, which ends with a full stop, line break or separator.
    pub fn of(points: &[Point], start: usize, end: usize) -> Ending {
        let tables = tables();
        let mut last = end;
        // Whether the position is inside the number of a note, such as `[12]`.
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
