//! Loads stored nodes and content hashes (`hash`), in any order; at the end, `settle` connects each node to its root.
//!
//! In a damaged forest, a missing root is recreated from one of its leaves, and a hash without its node is skipped.

use std::collections::{BTreeMap, HashMap};

use bytemuck::bytes_of;

use super::content_hashes::{HashState, NO_HASH};
use super::nodes::{Node, Nodes};
use super::records::{Entry, Record, entries, hex};
use super::relation::{Id, Relation};
use super::table::NONE;
use super::times::NO_TIME;

/// The loaded rows, and the roots and hashes that `settle` has to resolve.
#[derive(Default)]
pub struct Loader {
    // Whether the index was empty before the first load: then `rows` contains all of its nodes.
    is_new: Option<bool>,
    rows: HashMap<Id, u32>,
    // The rows of leaves, with the ids of their roots.
    leaves: Vec<(u32, Id)>,
    // The rows of nodes that were loaded before or reuse a row, with the root's id in the latest record.
    reloaded: BTreeMap<u32, Id>,
    hashes: Vec<(u64, Option<Id>, i64)>,
}

impl Loader {
    /// Adds the nodes and hashes that have not expired; skips records that cannot be unpacked.
    pub fn load<R: Relation>(&mut self, forest: &mut Nodes<R>, packed: &[&[u8]], live_since_ms: i64) {
        self.is_new.get_or_insert(forest.index.is_empty());
        let records = packed.iter().filter_map(|bytes| Record::unpack::<R>(bytes));
        records.for_each(|record| self.load_record(forest, record, live_since_ms));
    }

    /// Adds the entries of logs, in order; skips the rest of a log after an invalid entry.
    pub fn load_logs<R: Relation>(&mut self, forest: &mut Nodes<R>, logs: &[&[u8]]) {
        self.is_new.get_or_insert(forest.index.is_empty());
        for entry in logs.iter().flat_map(|log| entries::<R>(log)).filter_map(Entry::read::<R>) {
            match entry {
                Entry::Record(record) => self.load_record(forest, record, NO_TIME),
                Entry::Refreshed { id, seen_ms, hash_seen_ms } => {
                    // In a damaged forest the node may be missing.
                    if let Some(row) = self.rows.get(&id).copied() {
                        forest.raise_seen(row, seen_ms);
                        forest.raise_hash_seen(row, hash_seen_ms.min(seen_ms));
                    }
                }
            }
        }
    }

    /// Returns the ids of roots, and the ids of hashes' nodes, that were referred to but not loaded.
    pub fn missing<R: Relation>(&self) -> (Vec<String>, Vec<String>) {
        let missing = |mut ids: Vec<Id>| {
            ids.retain(|id| !self.rows.contains_key(id));
            ids.sort_unstable();
            ids.dedup();
            ids.into_iter().map(hex::<R>).collect()
        };
        let roots = self.leaves.iter().map(|(_, root)| *root).collect();
        (missing(roots), missing(self.hashes.iter().filter_map(|(_, node, _)| *node).collect()))
    }

    /// Adds a node or hash. If the id was loaded before, the later record wins.
    fn load_record<R: Relation>(
        &mut self,
        forest: &mut Nodes<R>,
        record: Record<R::Signature>,
        live_since_ms: i64,
    ) {
        match record {
            Record::Hash { hash, node, seen_ms } if seen_ms >= live_since_ms => {
                self.hashes.push((hash, node, seen_ms));
            }
            Record::Node { id, root, signature, node, links } if node.seen_ms >= live_since_ms => {
                let find = || if self.is_new == Some(true) { None } else { forest.find(id, &signature) };
                let known = self.rows.get(&id).copied().or_else(find);
                if let Some(row) = known {
                    self.rows.insert(id, row);
                    let before = *forest.node(row);
                    if (before.seq, before.hash) == (node.seq, node.hash)
                        && bytes_of(forest.index.signature(row)) == bytes_of(&signature)
                    {
                        forest.raise_seen(row, node.seen_ms);
                        forest.raise_hash_seen(row, node.hash_seen_ms);
                        // A repair may have changed the root.
                        self.reloaded.insert(row, root);
                        return;
                    }
                    // The earlier node and its leaves expired before the node's text arrived again.
                    forest.remove(row);
                }
                let row_count = forest.row_count();
                let row = self.load_node(forest, id, signature, node);
                forest.set_links(row, links);
                if row < row_count {
                    self.reloaded.insert(row, root);
                } else if root != id {
                    self.leaves.push((row, root));
                }
            }
            _ => {}
        }
    }

    /// Removes expired nodes and hashes, connects each node to its root, and adds the hashes. More records may
    /// be loaded later.
    pub fn settle<R: Relation>(&mut self, forest: &mut Nodes<R>, live_since_ms: i64) {
        if self.is_new.is_none() {
            return;
        }
        if live_since_ms != NO_TIME {
            forest.forget_expired(usize::MAX, live_since_ms);
            self.rows.retain(|_, row| forest.node(*row).root != NONE);
        }
        let reloaded = std::mem::take(&mut self.reloaded);
        let mut leaves = std::mem::take(&mut self.leaves);
        leaves.retain(|(row, _)| !reloaded.contains_key(row));
        leaves.extend(reloaded);
        // Drop expired leaves first, because recreated roots may reuse their rows.
        leaves.retain(|(row, _)| forest.node(*row).root != NONE);
        for (row, root_id) in leaves {
            let leaf = *forest.node(row);
            let root = self.rows.get(&root_id).copied().unwrap_or_else(|| {
                // If the id does not contain the root's signature, the root gets the leaf's signature.
                let signature = R::signature_of(root_id).unwrap_or(*forest.index.signature(row));
                let node = Node { root: NONE, hash: NO_HASH, hash_seen_ms: i64::MIN, ..leaf };
                self.load_node(forest, root_id, signature, node)
            });
            // In a damaged forest a root may be a leaf of another tree, or may have expired before its leaf.
            forest.set_root(root, root);
            forest.set_root(row, root);
            forest.raise_seen(root, leaf.seen_ms);
        }
        for (hash, node, seen_ms) in std::mem::take(&mut self.hashes) {
            let Some(row) = node.map_or(Some(NONE), |id| self.rows.get(&id).copied()) else { continue };
            // In a damaged forest a hash may have a later time than its node.
            let seen_ms = if row == NONE { seen_ms } else { seen_ms.min(forest.node(row).seen_ms) };
            if forest.remembered(hash).is_none_or(|before| before.seen_ms <= seen_ms) {
                forest.remember(hash, HashState { row, seen_ms });
            }
        }
    }

    fn load_node<R: Relation>(
        &mut self,
        forest: &mut Nodes<R>,
        id: Id,
        signature: R::Signature,
        node: Node,
    ) -> u32 {
        // In a damaged forest a hash may have a later time than its node.
        let hash_seen_ms = node.hash_seen_ms.min(node.seen_ms);
        let row = forest.add(signature, Node { hash_seen_ms, ..node });
        if R::id(&signature) != id {
            forest.name(row, id);
        }
        self.rows.insert(id, row);
        row
    }
}
