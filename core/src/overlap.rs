//! The exact overlap of two whole texts, which sketches only estimate.

use std::collections::HashMap;

use crate::runs::{TEXT_UNITS, runs};
use crate::tokens::Token;

/// How many distinct runs both texts have, the one text, and the other text.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RunCounts {
    /// In both.
    pub shared: usize,
    /// In the one text.
    pub of_one: usize,
    /// In the other text.
    pub of_other: usize,
}

/// Compares two texts by their tokens. Returns the counts of runs without a number, and of those with one.
pub fn overlap(one: &[Token], other: &[Token]) -> [RunCounts; 2] {
    let (ours, theirs) = (distinct_runs(one), distinct_runs(other));
    [false, true].map(|with_number| RunCounts {
        shared: ours
            .iter()
            .filter(|(run, kind)| **kind == with_number && theirs.get(run) == Some(kind))
            .count(),
        of_one: ours.values().filter(|kind| **kind == with_number).count(),
        of_other: theirs.values().filter(|kind| **kind == with_number).count(),
    })
}

/// Returns the distinct runs of a text, and whether each has a number.
fn distinct_runs(tokens: &[Token]) -> HashMap<u64, bool> {
    let mut found = HashMap::new();
    for run in runs(tokens, TEXT_UNITS) {
        found.entry(run.hash).or_insert(run.has_number);
    }
    found
}
