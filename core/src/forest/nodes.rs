//! The nodes and content hashes (`hash`) of a forest in memory, which change in steps that can be undone.
//!
//! A row is a node's position in `index`, `nodes` and `trees`; it is reused after `remove`.

use std::collections::{HashMap, VecDeque};

use bytemuck::{Pod, Zeroable};

use super::chunks::Chunks;
use super::content_hashes::{ContentHashes, HashState, NO_HASH};
use super::index::{Index, Matches};
use super::relation::{Id, Relation};
use super::table::NONE;
use super::times::{Aging, NO_TIME};
use super::trees::Trees;

// The number of rows checked for expiry per change.
const SWEPT_PER_CHANGE: usize = 4;

/// A node, without its signature.
#[derive(Clone, Copy, Pod, Zeroable, Debug)]
#[repr(C, packed(4))]
pub struct Node {
    /// The row of the node's root; [`NONE`] if the row has no node.
    pub root: u32,
    /// The number of the arrival that created the node.
    pub seq: i64,
    /// When the node was created.
    pub made_ms: i64,
    /// When the node was last seen, rounded up.
    pub seen_ms: i64,
    /// The content hash of the arrival that created the node; [`NO_HASH`] if unknown.
    pub hash: u64,
    /// When `hash` was last seen with this node, rounded up.
    pub hash_seen_ms: i64,
}

/// The ids of two earlier roots, 0 for none: this root's text is a part of the first root's text, and the second
/// root's text is a part of this root's text.
pub type Links = [Id; 2];

/// A change, with the values that undo it.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// A node was added; `by_id` is the previous row of its id in the table `by_id`, if any.
    Added { row: u32, by_id: Option<u32> },
    /// `seen_ms` of a node was raised from `before_ms`.
    SeenRaised { row: u32, before_ms: i64 },
    /// `hash_seen_ms` of a node was raised from `before_ms`.
    HashSeenRaised { row: u32, before_ms: i64 },
    /// The entry of an extra hash was changed from `before`; None if it had no entry.
    Hash { hash: u64, before: Option<HashState> },
}

#[derive(Default, Debug)]
struct Step {
    changes: Vec<Change>,
    live_since_ms: i64,
    // The roots that were compared by their numbers of leaves, because an arrival could join any of them.
    contested: Vec<u32>,
}

/// The nodes and content hashes of a forest. When an expired node's id arrives again, the new node gets another row.
pub struct Nodes<R: Relation> {
    /// How long nodes and hashes live.
    pub aging: Aging,
    /// The nodes' signatures, by row.
    pub index: Index<R>,
    // By row; in a row without a node, `root` is `NONE`.
    nodes: Chunks<Node>,
    // Each row with a node is in the ring of its root. Empty if the relation does not count leaves.
    pub(super) trees: Trees,
    // A hash that created a node is stored here as the node's row; other (extra) hashes have entries.
    hashes: ContentHashes,
    // The rows of nodes that can be found only by id, because they have no keys or have a name. If several such nodes
    // have the same id, the entry has the row of the node added last.
    by_id: HashMap<Id, u32>,
    // By row: ids that do not follow from the signature, such as the id of a root recreated from a leaf.
    names: HashMap<u32, Id>,
    // By the row of a root; few roots have links.
    links: HashMap<u32, Links>,
    // Steps that were neither kept nor undone, oldest first.
    steps: VecDeque<Step>,
    next_swept: usize,
}

impl<R: Relation> Nodes<R> {
    /// Creates an empty forest.
    pub fn new(relation: R, aging: Aging) -> Nodes<R> {
        Nodes {
            aging,
            index: Index::new(relation),
            nodes: Chunks::default(),
            trees: Trees::default(),
            hashes: ContentHashes::default(),
            by_id: HashMap::new(),
            names: HashMap::new(),
            links: HashMap::new(),
            steps: VecDeque::new(),
            next_swept: 0,
        }
    }

    /// Returns the memory used by nodes and hashes, without the undo steps and the few nodes found only by id.
    pub fn size_bytes(&self) -> usize {
        let columns = self.nodes.size_bytes() + self.trees.size_bytes();
        self.index.size_bytes() + columns + self.hashes.size_bytes()
    }

    /// Returns the number of remembered content hashes that did not create a node.
    pub fn extra_hash_count(&self) -> usize {
        self.hashes.extra_count()
    }

    /// Returns the number of steps that were neither kept nor undone.
    pub fn depth(&self) -> usize {
        self.steps.len()
    }

    /// Returns the number of rows, including those without a node.
    pub fn row_count(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Returns the node in a row.
    #[inline]
    pub fn node(&self, row: u32) -> &Node {
        &self.nodes[row as usize]
    }

    /// Returns the id of the node in a row.
    pub fn id(&self, row: u32) -> Id {
        self.names.get(&row).copied().unwrap_or_else(|| R::id(self.index.signature(row)))
    }

    /// Returns whether a node's id differs from the id computed from its signature.
    pub fn has_name(&self, row: u32) -> bool {
        !self.names.is_empty() && self.names.contains_key(&row)
    }

    /// Returns the node with an id, if that node can be found only by id.
    pub fn by_id(&self, id: impl FnOnce() -> Id) -> Option<u32> {
        if self.by_id.is_empty() { None } else { self.by_id.get(&id()).copied() }
    }

    /// Returns the latest node with this id and signature.
    pub fn find(&self, id: Id, signature: &R::Signature) -> Option<u32> {
        let mut found = Matches::default();
        self.index.search(signature, &mut found);
        let equal = found.equal.into_iter().filter(|row| !self.has_name(*row));
        equal.max_by_key(|row| self.node(*row).seq).or_else(|| self.by_id(|| id))
    }

    /// Returns the state of a hash, even if the hash has expired.
    pub fn remembered(&self, hash: u64) -> Option<HashState> {
        if hash == NO_HASH { None } else { self.hashes.find(hash, own_hashes(&self.nodes)) }
    }

    /// Adds a node and returns its row. The node becomes a root if its `root` is [`NONE`].
    pub fn add(&mut self, signature: R::Signature, node: Node) -> u32 {
        let row = self.index.add(signature);
        if self.nodes.len() == row as usize {
            self.nodes.push(node);
        }
        let root = if node.root == NONE { row } else { node.root };
        self.nodes[row as usize] = Node { root, ..node };
        if R::COUNTS_LEAVES {
            self.trees.add(row, root);
        }
        self.hashes.add(node.hash, row, own_hashes(&self.nodes));
        let is_found = R::keys(&signature).next().is_some();
        let by_id = if is_found { None } else { self.by_id.insert(R::id(&signature), row) };
        self.note(Change::Added { row, by_id });
        row
    }

    /// Gives the node in a row an id that does not follow from its signature.
    pub fn name(&mut self, row: u32, id: Id) {
        self.names.insert(row, id);
        self.by_id.insert(id, row);
    }

    /// Returns the links of the root of a row; the linked roots may have expired.
    pub fn links(&self, row: u32) -> Links {
        self.links.get(&self.node(row).root).copied().unwrap_or_default()
    }

    /// Sets the links of a root, if there are any.
    pub fn set_links(&mut self, row: u32, links: Links) {
        if links != Links::default() {
            self.links.insert(row, links);
        }
    }

    /// Makes the node in `row` a leaf of `root`, or a root if `root` is `row`.
    pub fn set_root(&mut self, row: u32, root: u32) {
        if R::COUNTS_LEAVES && self.node(row).root != root {
            self.trees.remove(row);
            self.trees.add(row, root);
        }
        self.nodes[row as usize].root = root;
    }

    /// Raises `seen_ms` of a node, if it is earlier.
    pub fn raise_seen(&mut self, row: u32, seen_ms: i64) {
        let node = &mut self.nodes[row as usize];
        let before_ms = node.seen_ms;
        if before_ms < seen_ms {
            node.seen_ms = seen_ms;
            self.note(Change::SeenRaised { row, before_ms });
        }
    }

    /// Raises `hash_seen_ms` of a node, if it is earlier.
    pub fn raise_hash_seen(&mut self, row: u32, seen_ms: i64) {
        let node = &mut self.nodes[row as usize];
        let before_ms = node.hash_seen_ms;
        if before_ms < seen_ms {
            node.hash_seen_ms = seen_ms;
            self.note(Change::HashSeenRaised { row, before_ms });
        }
    }

    /// Remembers the state of a hash, unless the hash's node already stores it.
    pub fn remember(&mut self, hash: u64, last: HashState) {
        if hash != NO_HASH && !self.is_own(hash, last) {
            let before = self.hashes.set_extra(hash, Some(last), own_hashes(&self.nodes));
            if before != Some(last) {
                self.note(Change::Hash { hash, before });
            }
        }
    }

    /// Removes the node in a row.
    pub fn remove(&mut self, row: u32) {
        let hash = self.node(row).hash;
        self.hashes.remove(hash, row);
        let is_found = R::keys(self.index.signature(row)).next().is_some();
        if !is_found || self.has_name(row) {
            let id = self.id(row);
            if self.by_id.get(&id) == Some(&row) {
                self.by_id.remove(&id);
            }
            self.names.remove(&row);
        }
        self.links.remove(&row);
        self.index.remove(row);
        if R::COUNTS_LEAVES {
            self.trees.remove(row);
        }
        self.nodes[row as usize].root = NONE;
    }

    /// Begins a step, to which later changes belong.
    pub fn begin(&mut self) {
        self.steps.push_back(Step::default());
    }

    /// Ends the last step; `live_since_ms` is the minimum `seen_ms` of a node that is live after the step.
    pub fn end(&mut self, live_since_ms: i64) {
        if let Some(step) = self.steps.back_mut() {
            step.live_since_ms = live_since_ms;
        }
    }

    /// Returns the changes of the last step.
    pub fn changes(&self) -> &[Change] {
        self.steps.back().map_or(&[], |step| &step.changes)
    }

    /// Records that the last step compared these roots by their number of live leaves.
    pub(super) fn contest(&mut self, roots: &[u32]) {
        if let Some(step) = self.steps.back_mut() {
            step.contested.extend(roots);
        }
    }

    /// Returns the ids of the roots that the last step compared by their number of live leaves.
    pub fn contested(&self) -> Vec<Id> {
        let rows = self.steps.back().map_or(&[][..], |step| &step.contested);
        rows.iter().map(|row| self.id(*row)).collect()
    }

    /// Makes the first step permanent, and removes some of the nodes and hashes that had expired when the step ended.
    /// Later steps can still be undone, because they did not change any of the removed nodes and hashes.
    pub fn keep(&mut self) {
        let Some(step) = self.steps.pop_front() else { return };
        if step.live_since_ms == NO_TIME {
            return;
        }
        self.forget_expired(SWEPT_PER_CHANGE * step.changes.len(), step.live_since_ms);
    }

    /// Checks the next `most` rows and the next `most` extra hashes, and removes the expired ones.
    pub fn forget_expired(&mut self, most: usize, live_since_ms: i64) {
        self.hashes.sweep(most, live_since_ms);
        for _ in 0..most.min(self.nodes.len()) {
            self.next_swept = (self.next_swept + 1) % self.nodes.len();
            let node = &self.nodes[self.next_swept];
            if node.root != NONE && node.seen_ms < live_since_ms {
                self.remove(self.next_swept as u32);
            }
        }
    }

    /// Undoes the last step.
    pub fn undo(&mut self) {
        let Some(step) = self.steps.pop_back() else { return };
        for change in step.changes.into_iter().rev() {
            match change {
                Change::Added { row, by_id } => {
                    let id = by_id.map(|before| (self.id(row), before));
                    self.remove(row);
                    let has_id = |(id, row): &(Id, u32)| self.node(*row).root != NONE && self.id(*row) == *id;
                    if let Some((id, before)) = id.filter(has_id) {
                        self.by_id.insert(id, before);
                    }
                }
                Change::SeenRaised { row, before_ms } => self.nodes[row as usize].seen_ms = before_ms,
                Change::HashSeenRaised { row, before_ms } => {
                    self.nodes[row as usize].hash_seen_ms = before_ms
                }
                Change::Hash { hash, before } => {
                    self.hashes.set_extra(hash, before, own_hashes(&self.nodes));
                }
            }
        }
    }

    /// Returns whether the node in `last.row` stores this state of the hash.
    pub fn is_own(&self, hash: u64, last: HashState) -> bool {
        last.row != NONE
            && (self.node(last.row).hash, self.node(last.row).hash_seen_ms) == (hash, last.seen_ms)
    }

    fn note(&mut self, change: Change) {
        if let Some(step) = self.steps.back_mut() {
            step.changes.push(change);
        }
    }
}

/// Returns a function from a row to `hash` and `hash_seen_ms` of its node.
fn own_hashes(nodes: &Chunks<Node>) -> impl Fn(u32) -> (u64, i64) + '_ {
    |row| {
        let node = &nodes[row as usize];
        (node.hash, node.hash_seen_ms)
    }
}
