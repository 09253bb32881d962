//! The laws of the forest, numbered as in ARCHITECTURE.md, for one arrival after the other; its time, and how long nodes
//! live.

use std::cmp::{Ordering, Reverse};

use super::index::{Index, Matches};
use super::nodes::{Node, Nodes};
use super::pages::PageState;
use super::relation::{BY_ADDRESS, BY_ROOT, Id, Relation};
use super::table::NONE;

/// An article on its way into the forest.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<S> {
    /// None if it has no fingerprint.
    pub signature: Option<S>,
    /// The id of its page.
    pub page: u64,
    /// `NO_TIME` if it is not known.
    pub time_ms: i64,
}

/// What became of an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// It has made a root.
    NewRoot,
    /// It has made a leaf.
    Joined,
    /// Its page is remembered with a node, or its node existed already.
    Known,
    /// Its page is remembered without a node; or it has no fingerprint, and its page is not remembered.
    WithoutFingerprint,
}

/// The forest's answer for one arrival.
#[derive(Clone, Copy, Debug)]
pub struct Assignment {
    /// What became of it.
    pub kind: Kind,
    /// The row of its node; `NONE` without one.
    pub row: u32,
    /// The forest's time then.
    pub time_ms: i64,
    /// What was remembered of its page before.
    pub before: Option<PageState>,
}

/// The forest as an arrival finds it.
struct Moment {
    seq: i64,
    time_ms: i64,
    // The arrival's own time; the forest's if it has none that counts.
    own_ms: i64,
    // The forest's time, rounded up.
    seen_ms: i64,
    live_since_ms: i64,
}

/// So many versions under an address must go on, at least, for each page there with which none does.
const VERSIONS_AN_ODD_PAGE: usize = 4;

impl<R: Relation> Nodes<R> {
    /// Assigns arrivals in their order. `state` is the one before them, then the one after.
    ///
    /// `now_ms` is the clock: a time more than a day after it is ignored.
    pub fn assign(
        &mut self,
        arrivals: impl IntoIterator<Item = Arrival<R::Signature>>,
        state: &mut State,
        now_ms: i64,
    ) -> Vec<Assignment> {
        let mut found = Matches::default();
        let assign = |arrival: Arrival<R::Signature>| {
            let own_ms = state.advance(arrival.time_ms, now_ms);
            let moment = Moment {
                seq: state.seq,
                time_ms: state.time_ms,
                own_ms,
                seen_ms: self.aging.round_up(state.time_ms),
                live_since_ms: state.live_since_ms(&self.aging),
            };
            self.assign_one(&arrival, &moment, &mut found)
        };
        arrivals.into_iter().map(assign).collect()
    }

    fn assign_one(
        &mut self,
        arrival: &Arrival<R::Signature>,
        now: &Moment,
        found: &mut Matches,
    ) -> Assignment {
        let before = self.remembered(arrival.page);
        let remembered = before.filter(|page| page.seen_ms >= now.live_since_ms);
        // Law 1: a page keeps the node that it got, or stays without one; an id has at most one live node.
        let (kind, row) = match (remembered, arrival.signature) {
            (Some(page), _) if page.row != NONE => {
                if self.node(page.row).page == arrival.page {
                    self.raise_page_seen(page.row, now.seen_ms);
                }
                (Kind::Known, page.row)
            }
            (Some(_), _) | (None, None) => (Kind::WithoutFingerprint, NONE),
            (None, Some(signature)) => {
                self.index.search(&signature, found);
                match self.live_node(&signature, now, found) {
                    Some(row) => (Kind::Known, row),
                    None => self.make(signature, arrival.page, now, found),
                }
            }
        };
        // Law 5: an arrival refreshes its page, its node and that node's root.
        if row != NONE {
            self.raise_seen(row, now.seen_ms);
            self.raise_seen(self.node(row).root, now.seen_ms);
        }
        self.remember(arrival.page, PageState { row, seen_ms: now.seen_ms });
        Assignment { kind, row, time_ms: now.time_ms, before }
    }

    /// Returns the live node of the signature's id.
    fn live_node(&self, signature: &R::Signature, now: &Moment, found: &Matches) -> Option<u32> {
        let mut equal = found.equal.iter().copied().filter(|row| !self.has_name(*row));
        let is_live = |row: &u32| self.node(*row).seen_ms >= now.live_since_ms;
        equal.find(is_live).or_else(|| self.by_id(|| R::id(signature)).filter(is_live))
    }

    /// Makes a node of the arrival, and a leaf or root of the node: laws 2, 3, 4 and 6.
    fn make(&mut self, signature: R::Signature, page: u64, now: &Moment, found: &Matches) -> (Kind, u32) {
        let indexed = self.indexed(&signature, now, found);
        let mut roots = self.roots_of_versions(&signature, now, found);
        if roots.is_empty() {
            roots = self.roots_to_join(&signature, now, found);
        }
        if R::COUNTS_LEAVES && roots.len() > 1 {
            self.contest(&roots);
        }
        let root = self.root_to_join(&signature, roots, now);
        let node = Node {
            root: root.unwrap_or(NONE),
            seq: now.seq,
            made_ms: now.time_ms,
            seen_ms: now.seen_ms,
            page,
            page_seen_ms: now.seen_ms,
        };
        let linked = |side: Ordering| self.linked(&signature, side, now, found);
        let links = if root.is_none() { [Ordering::Less, Ordering::Greater].map(linked) } else { [0; 2] };
        let kind = if root.is_some() { Kind::Joined } else { Kind::NewRoot };
        let mut signature = R::with_indexed(signature, indexed);
        // What is found by its id alone keeps that.
        if root.is_none() && indexed != 0 {
            signature = R::with_period(signature, self.aging.period(now.own_ms));
        }
        let row = self.add(signature, node);
        self.set_links(row, links);
        (kind, row)
    }

    /// Returns the roots of earlier versions of the signature's article with which it goes on; none if too many unrelated
    /// texts have come under its address.
    fn roots_of_versions(&self, signature: &R::Signature, now: &Moment, found: &Matches) -> Vec<u32> {
        let Index { relation, .. } = &self.index;
        let text = |row: u32| self.index.signature(row);
        let goes_on = |later, row| relation.ways_by(later, text(row)) & BY_ADDRESS != 0;
        let mut found = found.versions.clone();
        found.retain(|row| self.node(*row).seen_ms >= now.live_since_ms);
        found.sort_unstable_by_key(|row| self.node(*row).seq);
        // The latest first.
        let mut versions: Vec<u32> = Vec::new();
        for (number, row) in found.iter().enumerate().rev() {
            // Beyond these, the address is a frequent key, and not all are found. Between two of one story, some may have
            // expired.
            let follows = |later: &u32| {
                number + 1 >= relation.max_postings()
                    || self.node(*later).root == self.node(*row).root
                    || goes_on(text(*later), *row)
            };
            if versions.last().map_or_else(|| goes_on(signature, *row), follows) {
                versions.push(*row);
            }
        }
        // Unrelated texts come under the address, not just an error page now and then.
        if versions.len() < VERSIONS_AN_ODD_PAGE * (found.len() - versions.len()) {
            return Vec::new();
        }
        versions.retain(|row| goes_on(signature, *row));
        let mut roots = self.live_roots(&versions, now);
        roots.retain(|root| relation.ways_to(signature, text(*root)) & BY_ADDRESS != 0);
        roots
    }

    /// Returns the roots that the signature may join of live nodes near it.
    fn roots_to_join(&self, signature: &R::Signature, now: &Moment, found: &Matches) -> Vec<u32> {
        let Index { relation, .. } = &self.index;
        let live = found.near.iter().filter(|row| self.node(**row).seen_ms >= now.live_since_ms);
        let mut members: Vec<(u32, u32)> = live.map(|row| (self.node(*row).root, *row)).collect();
        members.sort_unstable();
        let may_join = |tree: &&[(u32, u32)]| {
            let ways = relation.ways_to(signature, self.index.signature(tree[0].0)) & !BY_ADDRESS;
            let allows = |row: u32| ways & relation.ways_by(signature, self.index.signature(row)) != 0;
            // Every member allows the first way, so none is looked at.
            ways & BY_ROOT != 0 || ways != 0 && tree.iter().any(|(_, row)| allows(*row))
        };
        members.chunk_by(|one, other| one.0 == other.0).filter(may_join).map(|tree| tree[0].0).collect()
    }

    /// Returns the id of the root that a new root is a part of (`Less`), or that is a part of it (`Greater`); 0 for none:
    /// chosen in the same way, of the roots of live nodes that are near it, or of which one is a part of the other.
    fn linked(&self, signature: &R::Signature, side: Ordering, now: &Moment, found: &Matches) -> Id {
        let mut roots = self.live_roots(found.near.iter().chain(&found.linked), now);
        let part = |root: u32| self.index.relation.compare(signature, self.index.signature(root)).1;
        roots.retain(|root| part(*root) == Some(side));
        self.root_to_join(signature, roots, now).map_or(0, |root| self.id(root))
    }

    /// Returns the roots of some nodes, as far as these live.
    fn live_roots<'a>(&self, rows: impl IntoIterator<Item = &'a u32>, now: &Moment) -> Vec<u32> {
        let nodes = rows.into_iter().map(|row| self.node(*row));
        let mut roots: Vec<u32> =
            nodes.filter(|node| node.seen_ms >= now.live_since_ms).map(|node| node.root).collect();
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// Returns the one of these roots that the signature joins: the one that it resembles most, or the one with most live
    /// leaves; in a tie, the one made earliest.
    fn root_to_join(&self, signature: &R::Signature, mut roots: Vec<u32>, now: &Moment) -> Option<u32> {
        if roots.len() < 2 {
            return roots.pop();
        }
        if R::COUNTS_LEAVES {
            return self.root_with_most_leaves(roots, now);
        }
        let rank =
            |root: &u32| (R::resemblance(signature, self.index.signature(*root)), -self.node(*root).seq);
        roots.into_iter().max_by(|one, other| {
            let ((resemblance, age), (of_other, age_of_other)) = (rank(one), rank(other));
            resemblance.total_cmp(&of_other).then(age.cmp(&age_of_other))
        })
    }

    /// Returns the root with most live leaves; in a tie, the one made earliest, then the one with the lowest id.
    fn root_with_most_leaves(&self, mut roots: Vec<u32>, now: &Moment) -> Option<u32> {
        roots.sort_unstable_by_key(|root| Reverse((self.node(*root).seq, self.id(*root))));
        let is_live = |row: &u32| self.node(*row).seen_ms >= now.live_since_ms;
        let leaves = |root: u32| self.trees.leaves(root).filter(is_live);
        let mut left: Vec<_> = roots.into_iter().map(|root| (root, leaves(root))).collect();
        let mut last = None;
        // One leaf of each tree at a time, so that a tree of any size costs no more than the next smaller one.
        while left.len() > 1 {
            last = left.last().map(|(root, _)| *root);
            left.retain_mut(|(_, leaves)| leaves.next().is_some());
        }
        left.pop().map_or(last, |(root, _)| Some(root))
    }

    /// Returns a bit for each representative under which a new node is indexed: the first of equal ones, and not those
    /// under which too many nodes are indexed that were made within the retention. These are the frequent keys.
    ///
    /// Only when a posting was made counts, and that never changes.
    fn indexed(&self, signature: &R::Signature, now: &Moment, found: &Matches) -> u16 {
        let most = self.index.relation.max_postings();
        let is_frequent = |place: usize| {
            let own = found.postings.iter().filter(|posting| posting.0 == place);
            let counts = |(_, row): &&(usize, u32)| {
                let made_ms = self.node(*row).made_ms;
                now.live_since_ms == NO_TIME || self.aging.round_up(made_ms) >= now.live_since_ms
            };
            found.postings.len() >= most && own.filter(counts).count() >= most
        };
        let places = R::distinct(signature).map(|(place, _)| place);
        places.filter(|place| !is_frequent(*place)).fold(0, |bits, place| bits | 1 << place)
    }
}

/// Stands for an unknown time; less than every time.
pub const NO_TIME: i64 = i64::MIN;

const DAY_MS: i64 = 86_400_000;

/// How long nodes live, in milliseconds from 1 on.
#[derive(Clone, Copy, Debug)]
pub struct Aging {
    /// How long after it was last needed.
    pub retention_ms: i64,
    /// That is rounded up to a multiple of this, so that not every article rewrites nodes of its cluster.
    pub granularity_ms: i64,
}

impl Aging {
    /// Returns the number of the retention's period in which a time is.
    pub fn period(&self, time_ms: i64) -> u64 {
        if time_ms == NO_TIME { 0 } else { time_ms.div_euclid(self.retention_ms) as u64 }
    }

    /// Rounds a time up to the granularity.
    pub fn round_up(&self, time_ms: i64) -> i64 {
        if time_ms == NO_TIME {
            return NO_TIME;
        }
        let steps =
            time_ms.div_euclid(self.granularity_ms) + i64::from(time_ms.rem_euclid(self.granularity_ms) > 0);
        steps * self.granularity_ms
    }
}

/// The state of a forest between two arrivals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// The number of the last arrival.
    pub seq: i64,
    /// The forest's time, milliseconds since 1970.
    pub time_ms: i64,
    /// The first time that it knew: what was made before counts as seen then.
    pub origin_ms: i64,
}

impl State {
    /// Moves on to the next arrival. A time more than a day after `now_ms` does not count: returns the one that does,
    /// or the forest's.
    pub fn advance(&mut self, time_ms: i64, now_ms: i64) -> i64 {
        self.seq += 1;
        let counts = time_ms != NO_TIME && time_ms <= now_ms.saturating_add(DAY_MS);
        if counts {
            self.time_ms = self.time_ms.max(time_ms);
        }
        if self.origin_ms == NO_TIME {
            self.origin_ms = self.time_ms;
        }
        if counts { time_ms } else { self.time_ms }
    }

    /// Returns the least `seen` (inclusive) of what lives now; `NO_TIME` if everything does: before the first time, and
    /// until what was made before it expires.
    pub fn live_since_ms(&self, aging: &Aging) -> i64 {
        if self.time_ms == NO_TIME {
            return NO_TIME;
        }
        let since_ms = self.time_ms.saturating_sub(aging.retention_ms).saturating_add(1);
        if aging.round_up(self.origin_ms) >= since_ms { NO_TIME } else { since_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up_and_those_far_ahead_do_not_count() {
        let aging = Aging { retention_ms: 100, granularity_ms: 10 };
        assert_eq!([-11, -10, 0, 1, 10].map(|time| aging.round_up(time)), [-10, -10, 0, 10, 10]);
        let mut state = State { seq: 0, time_ms: NO_TIME, origin_ms: NO_TIME };
        state.advance(DAY_MS + 6, 5);
        state.advance(NO_TIME, 5);
        assert_eq!(state, State { seq: 2, time_ms: NO_TIME, origin_ms: NO_TIME });
        state.advance(1, 5);
        state.advance(109, 5);
        assert_eq!([state.advance(7, 5), state.advance(DAY_MS + 6, 5)], [7, 109]);
        assert_eq!(state, State { seq: 6, time_ms: 109, origin_ms: 1 });
        assert_eq!(state.live_since_ms(&aging), NO_TIME);
        state.advance(110, 5);
        assert_eq!(state.live_since_ms(&aging), 11);
    }
}
