//! The nodes and pages of a forest in memory, and steps of changes to them that can be undone.
//!
//! A row is a node's place in `index`, `nodes` and `trees`; it is used again after `remove`.

use std::collections::{HashMap, VecDeque};

use bytemuck::{Pod, Zeroable};

use super::chunks::Chunks;
use super::index::{Index, Matches};
use super::relation::{Id, Relation};
use super::seen_pages::{NO_PAGE, PageState, SeenPages};
use super::table::NONE;
use super::times::{Aging, NO_TIME};
use super::trees::Trees;

// How many rows are checked for expiry for each change.
const SWEPT_PER_CHANGE: usize = 4;

/// A node, without its signature.
#[derive(Clone, Copy, Pod, Zeroable, Debug)]
#[repr(C, packed(4))]
pub struct Node {
    /// The row of its root; [`NONE`] in a row without a node.
    pub root: u32,
    /// The number of the arrival that made it.
    pub seq: i64,
    /// When it was made.
    pub made_ms: i64,
    /// When it was last needed, rounded up.
    pub seen_ms: i64,
    /// The page of the arrival that made it; [`NO_PAGE`] if that is not known.
    pub page: u64,
    /// When that page was last seen with this node, rounded up.
    pub page_seen_ms: i64,
}

/// The ids of the root that a root is a part of, and of an earlier one that is a part of it; 0 for none.
pub type Links = [Id; 2];

/// A change, with the values that undo it.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// A node was added; `by_id` is the row that its id found in the table `by_id` before, if any.
    Added { row: u32, by_id: Option<u32> },
    /// The time at which a node was last needed was raised from this one.
    Seen { row: u32, before_ms: i64 },
    /// The time at which the page that made a node was last seen was raised from this one.
    PageSeen { row: u32, before_ms: i64 },
    /// A page without a node of its own had this state before; None: it was not remembered.
    Page { page: u64, before: Option<PageState> },
}

#[derive(Default, Debug)]
struct Step {
    changes: Vec<Change>,
    live_since_ms: i64,
    // Roots compared by their numbers of leaves, because an arrival could join several.
    contested: Vec<u32>,
}

/// The nodes and pages of a forest. When the id of an expired node arrives again, it gets a row of its own.
pub struct Nodes<R: Relation> {
    /// How long they live.
    pub aging: Aging,
    /// Their signatures, by row.
    pub index: Index<R>,
    // By row; `root` is `NONE` in one without a node.
    nodes: Chunks<Node>,
    // Each row with a node is in the ring of its root; empty where leaves are not counted.
    pub(super) trees: Trees,
    // A page that made a node is stored here as the node's row; other pages have entries of their own.
    pages: SeenPages,
    // The rows of nodes that are found only by their id: they have no keys, or a name. Of several nodes with the same
    // id, the one added last.
    by_id: HashMap<Id, u32>,
    // By row: ids that do not follow from the signature, such as that of a root made again with a leaf's signature.
    names: HashMap<u32, Id>,
    // By the row of a root; few have any.
    links: HashMap<u32, Links>,
    // Steps that were neither kept nor undone, the oldest first.
    steps: VecDeque<Step>,
    next_swept: usize,
}

impl<R: Relation> Nodes<R> {
    /// Makes an empty forest.
    pub fn new(relation: R, aging: Aging) -> Nodes<R> {
        Nodes {
            aging,
            index: Index::new(relation),
            nodes: Chunks::default(),
            trees: Trees::default(),
            pages: SeenPages::default(),
            by_id: HashMap::new(),
            names: HashMap::new(),
            links: HashMap::new(),
            steps: VecDeque::new(),
            next_swept: 0,
        }
    }

    /// Returns the memory of nodes and pages, but for changes that can be undone and the few nodes found by id.
    pub fn size_bytes(&self) -> usize {
        let columns = self.nodes.size_bytes() + self.trees.size_bytes();
        self.index.size_bytes() + columns + self.pages.size_bytes()
    }

    /// Returns how many pages are remembered besides those that made a node.
    pub fn lone_page_count(&self) -> usize {
        self.pages.lone_count()
    }

    /// Returns how many steps have begun that were neither kept nor undone.
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

    /// Returns whether a node's id differs from the one that its signature gives.
    pub fn has_name(&self, row: u32) -> bool {
        !self.names.is_empty() && self.names.contains_key(&row)
    }

    /// Returns the node with an id if it is found only by its id.
    pub fn by_id(&self, id: impl FnOnce() -> Id) -> Option<u32> {
        if self.by_id.is_empty() { None } else { self.by_id.get(&id()).copied() }
    }

    /// Returns the latest node with an id and its signature.
    pub fn find(&self, id: Id, signature: &R::Signature) -> Option<u32> {
        let mut found = Matches::default();
        self.index.search(signature, &mut found);
        let equal = found.equal.into_iter().filter(|row| !self.has_name(*row));
        equal.max_by_key(|row| self.node(*row).seq).or_else(|| self.by_id(|| id))
    }

    /// Returns the state of a page, even an expired one.
    pub fn remembered(&self, page: u64) -> Option<PageState> {
        if page == NO_PAGE { None } else { self.pages.find(page, own_pages(&self.nodes)) }
    }

    /// Adds a node, whose row becomes its root where `root` is [`NONE`]; returns that row.
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
        self.pages.add(node.page, row, own_pages(&self.nodes));
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

    /// Returns the links of a row's root; the linked roots may have expired.
    pub fn links(&self, row: u32) -> Links {
        self.links.get(&self.node(row).root).copied().unwrap_or_default()
    }

    /// Records the roots with which a row is linked, if any.
    pub fn set_links(&mut self, row: u32, links: Links) {
        if links != Links::default() {
            self.links.insert(row, links);
        }
    }

    /// Makes a row a leaf of a root, or a root.
    pub fn hang(&mut self, row: u32, root: u32) {
        if R::COUNTS_LEAVES && self.node(row).root != root {
            self.trees.remove(row);
            self.trees.add(row, root);
        }
        self.nodes[row as usize].root = root;
    }

    /// Raises the `seen` of a node, if it is earlier.
    pub fn raise_seen(&mut self, row: u32, seen_ms: i64) {
        let node = &mut self.nodes[row as usize];
        let before_ms = node.seen_ms;
        if before_ms < seen_ms {
            node.seen_ms = seen_ms;
            self.note(Change::Seen { row, before_ms });
        }
    }

    /// Raises the `seen` of the page that made a node, if it is earlier.
    pub fn raise_page_seen(&mut self, row: u32, seen_ms: i64) {
        let node = &mut self.nodes[row as usize];
        let before_ms = node.page_seen_ms;
        if before_ms < seen_ms {
            node.page_seen_ms = seen_ms;
            self.note(Change::PageSeen { row, before_ms });
        }
    }

    /// Remembers a page, with the row that it got or [`NONE`], unless its node does so.
    pub fn remember(&mut self, page: u64, last: PageState) {
        if page != NO_PAGE && !self.is_own(page, last) {
            let before = self.pages.set_lone(page, Some(last), own_pages(&self.nodes));
            if before != Some(last) {
                self.note(Change::Page { page, before });
            }
        }
    }

    /// Removes a node.
    pub fn remove(&mut self, row: u32) {
        let page = self.node(row).page;
        self.pages.remove(page, row);
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

    /// Begins a step.
    pub fn begin(&mut self) {
        self.steps.push_back(Step::default());
    }

    /// Sets the least `seen` of a live node after the last step.
    pub fn end(&mut self, live_since_ms: i64) {
        if let Some(step) = self.steps.back_mut() {
            step.live_since_ms = live_since_ms;
        }
    }

    /// Returns the changes of the last step.
    pub fn changes(&self) -> &[Change] {
        self.steps.back().map_or(&[], |step| &step.changes)
    }

    /// Notes that the last step compared roots by their numbers of leaves.
    pub(super) fn contest(&mut self, roots: &[u32]) {
        if let Some(step) = self.steps.back_mut() {
            step.contested.extend(roots);
        }
    }

    /// Returns the ids of the roots that the last step compared by their numbers of leaves.
    pub fn contested(&self) -> Vec<Id> {
        let rows = self.steps.back().map_or(&[][..], |step| &step.contested);
        rows.iter().map(|row| self.id(*row)).collect()
    }

    /// Keeps the first step, and forgets some of the nodes and pages that had expired by its end. Later steps can still
    /// be undone, since they have not changed any of the forgotten ones.
    pub fn keep(&mut self) {
        let Some(step) = self.steps.pop_front() else { return };
        if step.live_since_ms == NO_TIME {
            return;
        }
        self.forget_expired(SWEPT_PER_CHANGE * step.changes.len(), step.live_since_ms);
    }

    /// Forgets those of the next `most` rows and pages that have expired.
    pub fn forget_expired(&mut self, most: usize, live_since_ms: i64) {
        self.pages.sweep(most, live_since_ms);
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
                Change::Seen { row, before_ms } => self.nodes[row as usize].seen_ms = before_ms,
                Change::PageSeen { row, before_ms } => self.nodes[row as usize].page_seen_ms = before_ms,
                Change::Page { page, before } => {
                    self.pages.set_lone(page, before, own_pages(&self.nodes));
                }
            }
        }
    }

    /// Returns whether the node that a page got stores this state of the page.
    pub fn is_own(&self, page: u64, last: PageState) -> bool {
        last.row != NONE
            && (self.node(last.row).page, self.node(last.row).page_seen_ms) == (page, last.seen_ms)
    }

    fn note(&mut self, change: Change) {
        if let Some(step) = self.steps.back_mut() {
            step.changes.push(change);
        }
    }
}

/// Returns the page that made the node in a row, and when it was last seen with this node.
fn own_pages(nodes: &Chunks<Node>) -> impl Fn(u32) -> (u64, i64) + '_ {
    |row| {
        let node = &nodes[row as usize];
        (node.page, node.page_seen_ms)
    }
}
