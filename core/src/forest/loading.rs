//! Loads stored nodes and pages, in any order; at the end each node gets its root.
//!
//! In a damaged forest, roots that are missing are made again from one of their leaves, and pages whose node is missing
//! are left out.

use std::collections::{BTreeMap, HashMap};

use bytemuck::bytes_of;

use super::index::Matches;
use super::laws::NO_TIME;
use super::nodes::{Node, Nodes};
use super::pages::{NO_PAGE, PageState};
use super::records::{Entry, Record, written_id};
use super::relation::{Id, Relation};
use super::table::NONE;
use crate::columns::Column;

/// The rows that were loaded, and the roots and pages that `settle` has to resolve.
#[derive(Default)]
pub struct Loader {
    // Whether the index was empty, so that `rows` has all of its nodes.
    is_new: bool,
    rows: HashMap<Id, u32>,
    // Rows of leaves, with the ids of their roots.
    leaves: Vec<(u32, Id)>,
    // Rows that were loaded more than once, with the root of the last record.
    again: BTreeMap<u32, Id>,
    pages: Vec<(u64, Option<Id>, i64)>,
}

impl<R: Relation> Nodes<R> {
    /// Adds nodes and pages that have not expired; skips records that cannot be read.
    pub fn load(&mut self, packed: &[&[u8]], live_since_ms: i64) {
        let mut loading = self.loader();
        let records = packed.iter().filter_map(|bytes| Record::unpack::<R>(bytes));
        records.for_each(|record| self.load_record(&mut loading, record, live_since_ms));
        self.loading = Some(loading);
    }

    /// Adds the entries of logs, in order; skips the rest of a log from an entry that cannot be read.
    pub fn load_logs(&mut self, logs: &[&[u8]]) {
        let mut loading = self.loader();
        for entry in logs.iter().flat_map(|log| Entry::read_all::<R>(log)) {
            match entry {
                Entry::Record(record) => self.load_record(&mut loading, record, NO_TIME),
                Entry::Refreshed { id, seen_ms, page_seen_ms } => {
                    // In a damaged forest it may be missing.
                    if let Some(row) = loading.rows.get(&id).copied() {
                        self.raise_seen(row, seen_ms);
                        self.raise_page_seen(row, page_seen_ms.min(seen_ms));
                    }
                }
            }
        }
        self.loading = Some(loading);
    }

    /// Returns the ids of roots, and of nodes of pages, that were not loaded.
    pub fn missing(&self) -> (Vec<Column>, Vec<Column>) {
        let Some(loading) = &self.loading else { return Default::default() };
        let missing = |mut ids: Vec<Id>| {
            ids.retain(|id| !loading.rows.contains_key(id));
            ids.sort_unstable();
            ids.dedup();
            ids.into_iter().map(written_id::<R>).collect()
        };
        let roots = loading.leaves.iter().map(|(_, root)| *root).collect();
        (missing(roots), missing(loading.pages.iter().filter_map(|(_, node, _)| *node).collect()))
    }

    fn loader(&mut self) -> Loader {
        let begun = || Loader { is_new: self.index.is_empty(), ..Loader::default() };
        self.loading.take().unwrap_or_else(begun)
    }

    /// Adds a node or page. Of two with one id, the later one counts.
    fn load_record(&mut self, loading: &mut Loader, record: Record<R::Signature>, live_since_ms: i64) {
        match record {
            Record::Page { page, node, seen_ms } if seen_ms >= live_since_ms => {
                loading.pages.push((page, node, seen_ms));
            }
            Record::Node { id, root, signature, node, links } if node.seen_ms >= live_since_ms => {
                let known = loading.rows.get(&id).copied();
                let known = if loading.is_new { known } else { known.or_else(|| self.find(id, &signature)) };
                if let Some(row) = known {
                    loading.rows.insert(id, row);
                    let before = *self.node(row);
                    if (before.seq, before.page) == (node.seq, node.page)
                        && bytes_of(self.index.signature(row)) == bytes_of(&signature)
                    {
                        self.raise_seen(row, node.seen_ms);
                        self.raise_page_seen(row, node.page_seen_ms);
                        // A repair may have given it another root.
                        loading.again.insert(row, root);
                        return;
                    }
                    // It has expired, and its text came again; leaves of the old one have expired too.
                    self.remove(row);
                }
                let row_count = self.row_count();
                let row = self.load_node(loading, id, signature, node);
                self.set_links(row, links);
                if row < row_count {
                    loading.again.insert(row, root);
                } else if root != id {
                    loading.leaves.push((row, root));
                }
            }
            _ => {}
        }
    }

    /// Forgets what has expired, gives each node its root, and remembers the pages. More may be loaded afterwards.
    pub fn settle(&mut self, live_since_ms: i64) {
        let Some(mut loading) = self.loading.take() else { return };
        if live_since_ms != NO_TIME {
            self.forget_expired(usize::MAX, live_since_ms);
            loading.rows.retain(|_, row| self.node(*row).root != NONE);
        }
        let again = std::mem::take(&mut loading.again);
        let mut leaves = std::mem::take(&mut loading.leaves);
        leaves.retain(|(row, _)| !again.contains_key(row));
        leaves.extend(again);
        // Drop expired leaves before roots are made again, which may reuse their rows.
        leaves.retain(|(row, _)| self.node(*row).root != NONE);
        for (row, root_id) in leaves {
            let leaf = *self.node(row);
            let root = loading.rows.get(&root_id).copied().unwrap_or_else(|| {
                // If its id does not contain the signature, it has the leaf's until an article brings its own.
                let signature = R::signature_of(root_id).unwrap_or(*self.index.signature(row));
                let node = Node { root: NONE, page: NO_PAGE, page_seen_ms: i64::MIN, ..leaf };
                self.load_node(&mut loading, root_id, signature, node)
            });
            // In a damaged forest a root may be a leaf of another tree, or have expired before its leaf.
            self.hang(root, root);
            if row == root {
                continue;
            }
            self.hang(row, root);
            self.raise_seen(root, leaf.seen_ms);
        }
        for (page, node, seen_ms) in std::mem::take(&mut loading.pages) {
            let Some(row) = node.map_or(Some(NONE), |id| loading.rows.get(&id).copied()) else { continue };
            // In a damaged forest a page may have been seen later than its node.
            let seen_ms = if row == NONE { seen_ms } else { seen_ms.min(self.node(row).seen_ms) };
            if self.remembered(page).is_none_or(|before| before.seen_ms <= seen_ms) {
                self.remember(page, PageState { row, seen_ms });
            }
        }
        self.loading = Some(loading);
    }

    /// Returns the latest node with an id and its signature.
    pub fn find(&self, id: Id, signature: &R::Signature) -> Option<u32> {
        let mut found = Matches::default();
        self.index.search(signature, &mut found);
        let equal = found.equal.into_iter().filter(|row| !self.has_name(*row));
        equal.max_by_key(|row| self.node(*row).seq).or_else(|| self.by_id(|| id))
    }

    fn load_node(&mut self, loading: &mut Loader, id: Id, signature: R::Signature, node: Node) -> u32 {
        // In a damaged forest a page may have been seen later than its node.
        let page_seen_ms = node.page_seen_ms.min(node.seen_ms);
        let row = self.add(signature, Node { page_seen_ms, ..node });
        if R::id(&signature) != id {
            self.name(row, id);
        }
        loading.rows.insert(id, row);
        row
    }
}
