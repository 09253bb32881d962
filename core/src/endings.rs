//! How sentences of running text end, other than headlines, menu items, teasers and rows of tables.

use crate::characters::{NUMBER, Point, tables};

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
            if !(in_note || sign.is('[') || tables.is_trailing(sign)) {
                break;
            }
            last = start.max(last.saturating_sub(1));
        }
        let sign = points[last];
        let breaks_off = sign.is('.') && last > 0 && points[last - 1].is('.');
        Ending { sign, is_prose: tables.is_final(sign) && !breaks_off, breaks_off }
    }
}
