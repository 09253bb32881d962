//! Applies the laws of the forest, numbered as in ARCHITECTURE.md, to one arrival at a time.

use std::cmp::{Ordering, Reverse};

use super::content_hashes::HashState;
use super::index::{Index, Matches};
use super::nodes::{Node, Nodes};
use super::relation::{BY_ADDRESS, BY_ROOT, Id, Relation};
use super::table::NONE;
use super::times::{NO_TIME, State};

/// An article to be assigned to a node.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<S> {
    /// None if the article has no fingerprint.
    pub signature: Option<S>,
    /// The article's content hash.
    pub hash: u64,
    /// The article's time; [`NO_TIME`] if unknown.
    pub time_ms: i64,
}

/// How an arrival was assigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A root was created.
    NewRoot,
    /// A leaf was created.
    Joined,
    /// The content hash is remembered with a node, or a live node has the same signature.
    Known,
    /// The content hash is remembered without a node; or it is not remembered, and the article has no fingerprint.
    WithoutFingerprint,
}

/// The result for one arrival.
#[derive(Clone, Copy, Debug)]
pub struct Assignment {
    /// How the arrival was assigned.
    pub kind: Kind,
    /// The row of the arrival's node; [`NONE`] if it has no node.
    pub row: u32,
    /// The forest's time after the arrival.
    pub time_ms: i64,
    /// The state of its content hash before the arrival; None if it was not remembered.
    pub before: Option<HashState>,
}

/// The times at which an arrival is assigned.
struct Moment {
    state: State,
    // The arrival's time, or the forest's time if the arrival's time is unknown or ignored.
    own_ms: i64,
    // The forest's time, rounded up.
    seen_ms: i64,
    live_since_ms: i64,
}

/// An arrival whose content hash is not remembered, with the result of searching the index for its signature.
struct Newcomer<'a, S> {
    signature: &'a S,
    hash: u64,
    now: &'a Moment,
    found: &'a Matches,
}

/// The number of versions that an address must have for each live node under it that is not a version. One version is
/// enough for a node whose text is less than half as long as the newcomer's, such as an error page.
const VERSIONS_PER_ODD_PAGE: usize = 4;

impl<R: Relation> Nodes<R> {
    /// Assigns arrivals in their order and updates `state`.
    ///
    /// Arrival times more than a day after `now_ms`, the clock, are ignored.
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
                state: *state,
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
        let before = self.remembered(arrival.hash);
        let remembered = before.filter(|last| last.seen_ms >= now.live_since_ms);
        // Law 1: a content hash keeps its node, or stays without a node; a signature has at most one live node.
        let (kind, row) = match (remembered, &arrival.signature) {
            (Some(last), _) if last.row != NONE => {
                if self.node(last.row).hash == arrival.hash {
                    self.raise_hash_seen(last.row, now.seen_ms);
                }
                (Kind::Known, last.row)
            }
            (Some(_), _) | (None, None) => (Kind::WithoutFingerprint, NONE),
            (None, Some(signature)) => {
                self.index.search(signature, found);
                let new = Newcomer { signature, hash: arrival.hash, now, found };
                match self.live_node(&new) {
                    Some(row) => (Kind::Known, row),
                    None => self.make(&new),
                }
            }
        };
        // Law 5: an arrival refreshes its content hash, its node and that node's root.
        if row != NONE {
            self.raise_seen(row, now.seen_ms);
            self.raise_seen(self.node(row).root, now.seen_ms);
        }
        self.remember(arrival.hash, HashState { row, seen_ms: now.seen_ms });
        Assignment { kind, row, time_ms: now.state.time_ms, before }
    }

    /// Returns the live node with the newcomer's signature.
    fn live_node(&self, new: &Newcomer<R::Signature>) -> Option<u32> {
        let is_live = |row: &u32| self.is_live(*row, new.now);
        let mut equal = new.found.equal.iter().copied().filter(|row| !self.has_name(*row));
        equal.find(is_live).or_else(|| self.by_id(|| R::id(new.signature)).filter(is_live))
    }

    /// Creates a node for the newcomer: a leaf, or a root.
    fn make(&mut self, new: &Newcomer<R::Signature>) -> (Kind, u32) {
        // Law 3: the newcomer may join a tree as a version of a live node there, or otherwise through a near live node.
        let mut roots = self.roots_of_versions(new);
        if roots.is_empty() {
            roots = self.roots_near(new);
        }
        if R::COUNTS_LEAVES && roots.len() > 1 {
            self.contest(&roots);
        }
        // Law 4: it joins the most similar of these roots, or the root with the most live leaves.
        let root = self.root_to_join(new, roots);
        // Law 2: it becomes a root only if there is no root to join.
        let kind = if root.is_some() { Kind::Joined } else { Kind::NewRoot };
        // Law 7: a new root is linked with a root that it is a part of, and with a root that is a part of it.
        let linked = |side: Ordering| self.linked(new, side);
        let links = if root.is_none() { [Ordering::Less, Ordering::Greater].map(linked) } else { [0; 2] };
        let indexed = self.indexed(new);
        let mut signature = R::with_indexed(*new.signature, indexed);
        // The id of a root includes its period, unless the root has no keys: such a root is found only by id, so the
        // id must follow from the newcomer's signature.
        if root.is_none() && indexed != 0 {
            signature = R::with_period(signature, self.aging.period(new.now.own_ms));
        }
        // Law 6: an arrival sets the root of its new node, and never changes the root of another node.
        let node = Node {
            root: root.unwrap_or(NONE),
            seq: new.now.state.seq,
            made_ms: new.now.state.time_ms,
            seen_ms: new.now.seen_ms,
            hash: new.hash,
            hash_seen_ms: new.now.seen_ms,
        };
        let row = self.add(signature, node);
        self.set_links(row, links);
        (kind, row)
    }

    /// Returns the roots that the newcomer may join as a version.
    fn roots_of_versions(&self, new: &Newcomer<R::Signature>) -> Vec<u32> {
        let mut versions = self.versions(new);
        versions.retain(|row| self.is_continued_by(*row, new.signature));
        let mut roots = self.live_roots(&versions, new.now);
        let ways_to = |root: u32| self.index.relation.ways_to(new.signature, self.index.signature(root));
        roots.retain(|root| ways_to(*root) & BY_ADDRESS != 0);
        roots
    }

    /// Returns the earlier versions of the newcomer, latest first: live nodes under its address, each continued by
    /// the next later one. Returns an empty list if the address also has many unrelated texts, more than occasional
    /// error pages.
    fn versions(&self, new: &Newcomer<R::Signature>) -> Vec<u32> {
        let mut live = new.found.versions.clone();
        live.retain(|row| self.is_live(*row, new.now));
        live.sort_unstable_by_key(|row| self.node(*row).seq);
        let (mut versions, mut needed): (Vec<u32>, usize) = (Vec::new(), 0);
        for (number, row) in live.iter().enumerate().rev() {
            // Beyond `max_postings`, the address is a frequent key, so the search may have missed versions. If two
            // nodes have the same root, versions between the nodes may have expired.
            let follows = |later: &u32| {
                number + 1 >= self.index.relation.max_postings()
                    || self.node(*later).root == self.node(*row).root
                    || self.is_continued_by(*row, self.index.signature(*later))
            };
            if versions.last().map_or_else(|| self.is_continued_by(*row, new.signature), follows) {
                versions.push(*row);
            } else {
                let is_short = 2 * R::length(self.index.signature(*row)) < R::length(new.signature);
                needed += if is_short { 1 } else { VERSIONS_PER_ODD_PAGE };
            }
        }
        if versions.len() < needed { Vec::new() } else { versions }
    }

    /// Returns whether `later` may be a later version of the text in `row`.
    fn is_continued_by(&self, row: u32, later: &R::Signature) -> bool {
        self.index.relation.ways_by(later, self.index.signature(row)) & BY_ADDRESS != 0
    }

    /// Returns the roots that the newcomer may join through live nodes near it.
    fn roots_near(&self, new: &Newcomer<R::Signature>) -> Vec<u32> {
        let Index { relation, .. } = &self.index;
        let live = new.found.near.iter().filter(|row| self.is_live(**row, new.now));
        let mut members: Vec<(u32, u32)> = live.map(|row| (self.node(*row).root, *row)).collect();
        members.sort_unstable();
        let may_join = |tree: &&[(u32, u32)]| {
            let ways = relation.ways_to(new.signature, self.index.signature(tree[0].0)) & !BY_ADDRESS;
            let allows = |row: u32| ways & relation.ways_by(new.signature, self.index.signature(row)) != 0;
            // All near members allow `BY_ROOT`, so no member is compared.
            ways & BY_ROOT != 0 || ways != 0 && tree.iter().any(|(_, row)| allows(*row))
        };
        members.chunk_by(|one, other| one.0 == other.0).filter(may_join).map(|tree| tree[0].0).collect()
    }

    /// Returns the id of a root that contains the new root (`Less`) or is a part of it (`Greater`); 0 if there is
    /// none. Candidates are the roots of live nodes that are near the new root, contain it or are a part of it; law
    /// 4 chooses among them.
    fn linked(&self, new: &Newcomer<R::Signature>, side: Ordering) -> Id {
        let mut roots = self.live_roots(new.found.near.iter().chain(&new.found.linked), new.now);
        let part = |root: u32| self.index.relation.compare(new.signature, self.index.signature(root)).1;
        roots.retain(|root| part(*root) == Some(side));
        self.root_to_join(new, roots).map_or(0, |root| self.id(root))
    }

    /// Returns the distinct roots of the live nodes among `rows`.
    fn live_roots<'a>(&self, rows: impl IntoIterator<Item = &'a u32>, now: &Moment) -> Vec<u32> {
        let live = rows.into_iter().filter(|row| self.is_live(**row, now));
        let mut roots: Vec<u32> = live.map(|row| self.node(*row).root).collect();
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    fn is_live(&self, row: u32, now: &Moment) -> bool {
        self.node(row).seen_ms >= now.live_since_ms
    }

    /// Returns the root that the newcomer joins: the most similar root or, if the relation counts leaves, the root
    /// with the most live leaves. In a tie, the root created earliest wins.
    fn root_to_join(&self, new: &Newcomer<R::Signature>, mut roots: Vec<u32>) -> Option<u32> {
        if roots.len() < 2 {
            return roots.pop();
        }
        if R::COUNTS_LEAVES {
            return self.root_with_most_leaves(roots, new.now);
        }
        let resemblance = |root: u32| R::resemblance(new.signature, self.index.signature(root));
        let rank = |root: &u32| (resemblance(*root), -self.node(*root).seq);
        roots.into_iter().max_by(|one, other| {
            let ((resemblance, age), (of_other, age_of_other)) = (rank(one), rank(other));
            resemblance.total_cmp(&of_other).then(age.cmp(&age_of_other))
        })
    }

    /// Returns the root with the most live leaves; in a tie, the root created earliest, then the root with the lowest
    /// id.
    fn root_with_most_leaves(&self, mut roots: Vec<u32>, now: &Moment) -> Option<u32> {
        roots.sort_unstable_by_key(|root| Reverse((self.node(*root).seq, self.id(*root))));
        let leaves = |root: u32| self.trees.leaves(root).filter(|row| self.is_live(*row, now));
        let mut left: Vec<_> = roots.into_iter().map(|root| (root, leaves(root))).collect();
        let mut last = None;
        // Count one leaf of each tree at a time, so that the largest tree costs no more than the second largest.
        while left.len() > 1 {
            last = left.last().map(|(root, _)| *root);
            left.retain_mut(|(_, leaves)| leaves.next().is_some());
        }
        left.pop().map_or(last, |(root, _)| Some(root))
    }

    /// Returns a bit for each representative under which a new node is indexed. Only the first of equal representatives
    /// is used. Frequent keys are omitted: keys of at least `max_postings` nodes created within the retention period.
    ///
    /// Postings are counted by the creation times of their nodes, which never change.
    fn indexed(&self, new: &Newcomer<R::Signature>) -> u16 {
        let Newcomer { now, found, .. } = new;
        let most = self.index.relation.max_postings();
        let is_frequent = |place: usize| {
            let own = found.postings.iter().filter(|posting| posting.0 == place);
            let counts = |(_, row): &&(usize, u32)| {
                let made_ms = self.node(*row).made_ms;
                now.live_since_ms == NO_TIME || self.aging.round_up(made_ms) >= now.live_since_ms
            };
            found.postings.len() >= most && own.filter(counts).count() >= most
        };
        let places = R::distinct(new.signature).map(|(place, _)| place);
        places.filter(|place| !is_frequent(*place)).fold(0, |bits, place| bits | 1 << place)
    }
}
