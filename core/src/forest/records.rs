//! Packs nodes and content hashes (`hash`) for documents, and writes logs of them. Numbers are little-endian.

use std::collections::{HashMap, HashSet};

use bytemuck::{Pod, Zeroable, bytes_of, bytes_of_mut};

use super::content_hashes::{HashState, NO_HASH};
use super::laws::{Assignment, Kind};
use super::nodes::{Change, Links, Node, Nodes};
use super::relation::{Id, Relation};
use super::table::NONE;
use crate::hashing::word;

/// A node or a content hash.
#[derive(Clone, Copy, Debug)]
pub enum Record<S> {
    /// A node; only roots have links.
    Node {
        id: Id,
        root: Id,
        signature: S,
        node: Node,
        links: Links,
    },
    Hash {
        hash: u64,
        node: Option<Id>,
        seen_ms: i64,
    },
}

/// An entry of a log, stored as one byte for its kind followed by its content.
#[derive(Clone, Copy, Debug)]
pub enum Entry<S> {
    /// The new state of a node or hash.
    Record(Record<S>),
    /// The new times of an existing node that was seen again.
    Refreshed {
        /// The id of the node.
        id: Id,
        /// When the node was last seen, rounded up.
        seen_ms: i64,
        /// When the hash that created the node was last seen with it, rounded up.
        hash_seen_ms: i64,
    },
}

const NODE: u8 = 0;
const HASH: u8 = 1;
const BARE_HASH: u8 = 2;
const REFRESHED: u8 = 3;
const LINKED: u8 = 4;
const NO_LINKS: Links = [0; 2];

/// Returns the kind and content of each entry of a log, up to the first invalid entry.
pub fn entries<R: Relation>(log: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = log;
    std::iter::from_fn(move || {
        let kind = *rest.first()?;
        let node = 2 * R::ID_BYTES + 40 + R::SIZE;
        let sizes = [node, 16 + R::ID_BYTES, 16, 16 + R::ID_BYTES, node + 2 * R::ID_BYTES];
        let entry = rest.get(1..1 + sizes.get(usize::from(kind))?)?;
        rest = &rest[1 + entry.len()..];
        Some((kind, entry))
    })
}

impl<S: Pod> Entry<S> {
    /// Reads an entry returned by [`entries`].
    pub fn read<R: Relation<Signature = S>>((kind, entry): (u8, &[u8])) -> Option<Entry<S>> {
        if kind != REFRESHED {
            return Record::unpack::<R>(entry).map(Entry::Record);
        }
        let number = |at: usize| word(&entry[at..at + 8]) as i64;
        let (seen_ms, hash_seen_ms) = (number(R::ID_BYTES), number(R::ID_BYTES + 8));
        Some(Entry::Refreshed { id: read_id(&entry[..R::ID_BYTES]), seen_ms, hash_seen_ms })
    }

    /// Appends a record to a log. For a node that was only refreshed, only its id and times are written.
    pub fn write<R: Relation<Signature = S>>(record: &Record<S>, is_refreshed: bool, log: &mut Vec<u8>) {
        match record {
            Record::Node { id, node, .. } if is_refreshed => {
                log.push(REFRESHED);
                write_id::<R>(*id, log);
                log.extend({ node.seen_ms }.to_le_bytes());
                log.extend({ node.hash_seen_ms }.to_le_bytes());
            }
            _ => {
                log.push(match record {
                    Record::Node { links: NO_LINKS, .. } => NODE,
                    Record::Node { .. } => LINKED,
                    Record::Hash { node: Some(_), .. } => HASH,
                    Record::Hash { node: None, .. } => BARE_HASH,
                });
                log.extend(record.pack::<R>());
            }
        }
    }
}

impl<S: Pod> Record<S> {
    /// Returns when the node or hash was last seen, rounded up.
    pub fn seen_ms(&self) -> i64 {
        match self {
            Record::Node { node, .. } => node.seen_ms,
            Record::Hash { seen_ms, .. } => *seen_ms,
        }
    }

    /// Returns the packed form.
    pub fn pack<R: Relation<Signature = S>>(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 * R::ID_BYTES + 40 + R::SIZE);
        match self {
            Record::Node { id, root, signature, node, links } => {
                write_id::<R>(*id, &mut bytes);
                write_id::<R>(*root, &mut bytes);
                // All fields except `root`, which is a row.
                bytes.extend_from_slice(&bytes_of(node)[size_of::<u32>()..]);
                bytes.extend_from_slice(bytes_of(signature));
                if *links != NO_LINKS {
                    links.iter().for_each(|id| write_id::<R>(*id, &mut bytes));
                }
            }
            Record::Hash { hash, node, seen_ms } => {
                bytes.extend(hash.to_le_bytes());
                bytes.extend(seen_ms.to_le_bytes());
                node.iter().for_each(|id| write_id::<R>(*id, &mut bytes));
            }
        }
        bytes
    }

    /// Reads the packed form; returns None if the length fits neither a node nor a hash.
    pub fn unpack<R: Relation<Signature = S>>(bytes: &[u8]) -> Option<Record<S>> {
        let number = |at: usize| word(&bytes[at..at + 8]);
        let id = |at: usize| read_id(&bytes[at..at + R::ID_BYTES]);
        if bytes.len() == 16 || bytes.len() == 16 + R::ID_BYTES {
            let node = (bytes.len() > 16).then(|| id(16));
            return Some(Record::Hash { hash: number(0), node, seen_ms: number(8) as i64 });
        }
        let numbers = 2 * R::ID_BYTES;
        let end = numbers + 40 + R::SIZE;
        if bytes.len() != end && bytes.len() != end + 2 * R::ID_BYTES {
            return None;
        }
        let mut node = Node { root: NONE, ..Node::zeroed() };
        bytes_of_mut(&mut node)[size_of::<u32>()..].copy_from_slice(&bytes[numbers..numbers + 40]);
        let signature = R::read(&bytes[numbers + 40..end]);
        let links = if bytes.len() > end { [id(end), id(end + R::ID_BYTES)] } else { NO_LINKS };
        Some(Record::Node { id: id(0), root: id(R::ID_BYTES), signature, node, links })
    }
}

/// Returns an id in hexadecimal, as in documents.
pub fn hex<R: Relation>(id: Id) -> String {
    format!("{id:0digits$x}", digits = 2 * R::ID_BYTES)
}

fn write_id<R: Relation>(id: Id, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&id.to_be_bytes()[size_of::<Id>() - R::ID_BYTES..]);
}

fn read_id(bytes: &[u8]) -> Id {
    bytes.iter().fold(0, |sum, byte| sum << 8 | Id::from(*byte))
}

impl<R: Relation> Nodes<R> {
    /// Returns the records that the last step changed when it assigned a batch with these hashes. A flag tells
    /// whether a record is a node that was only refreshed. Refreshed nodes come first, by `seq`, then new nodes and
    /// hashes in order of arrival. Each id occurs once.
    pub fn written(&self, hashes: &[u64], assigned: &[Assignment]) -> Vec<(Record<R::Signature>, bool)> {
        let made: HashSet<u32> =
            assigned.iter().filter(|each| makes_node(each)).map(|each| each.row).collect();
        let refreshed_row = |change: &Change| match change {
            Change::SeenRaised { row, .. } | Change::HashSeenRaised { row, .. } => Some(*row),
            Change::Added { .. } | Change::Hash { .. } => None,
        };
        let mut refreshed: Vec<u32> = self.changes().iter().filter_map(refreshed_row).collect();
        refreshed.sort_unstable_by_key(|row| self.node(*row).seq);
        refreshed.dedup();
        refreshed.retain(|row| !made.contains(row));
        let mut records: Vec<_> = refreshed.into_iter().map(|row| Some(self.record(row))).collect();
        let refreshed = records.len();
        // By hash: the state before its first arrival in the batch, and the position of its last arrival.
        let mut lasts: HashMap<u64, (Option<HashState>, usize)> = HashMap::new();
        for (at, (hash, each)) in hashes.iter().zip(assigned).enumerate() {
            lasts.entry(*hash).or_insert((each.before, at)).1 = at;
        }
        for (at, (hash, each)) in hashes.iter().zip(assigned).enumerate() {
            if makes_node(each) {
                records.push(Some(self.record(each.row)));
            }
            let (before, last) = lasts[hash];
            if *hash != NO_HASH && last == at {
                records.push(self.extra_record(*hash, before));
            }
        }
        // If a node expires within the batch and its text arrives again, its id has several rows, of which the last
        // is live.
        let mut places = HashMap::new();
        for at in 0..records.len() {
            if let Some(Record::Node { id, .. }) = records[at] {
                if let Some(earlier) = places.insert(id, at) {
                    records[earlier] = None;
                }
            }
        }
        let marked = records.into_iter().enumerate();
        marked.filter_map(|(at, record)| record.map(|record| (record, at < refreshed))).collect()
    }

    /// Returns the current state, packed, of the live nodes and hashes that have records in a log.
    pub fn living(&self, log: &[u8], live_since_ms: i64) -> Vec<Vec<u8>> {
        let records = entries::<R>(log).filter_map(|entry| match Entry::read::<R>(entry)? {
            Entry::Record(record) => self.current(&record, live_since_ms),
            Entry::Refreshed { .. } => None,
        });
        records.map(|record| record.pack::<R>()).collect()
    }

    /// Returns the current state of a live node, or of a live hash that did not create its node.
    fn current(&self, record: &Record<R::Signature>, live_since_ms: i64) -> Option<Record<R::Signature>> {
        match record {
            Record::Node { id, signature, .. } => {
                let row = self.find(*id, signature)?;
                (self.node(row).seen_ms >= live_since_ms).then(|| self.record(row))
            }
            Record::Hash { hash, .. } => {
                let last = self.remembered(*hash).filter(|last| last.seen_ms >= live_since_ms)?;
                let node = (last.row != NONE).then(|| self.id(last.row));
                let is_own = last.row != NONE && self.node(last.row).hash == *hash;
                (!is_own).then_some(Record::Hash { hash: *hash, node, seen_ms: last.seen_ms })
            }
        }
    }

    fn record(&self, row: u32) -> Record<R::Signature> {
        let node = *self.node(row);
        let (id, root) = (self.id(row), self.id(node.root));
        let links = if node.root == row { self.links(row) } else { NO_LINKS };
        Record::Node { id, root, signature: *self.index.signature(row), node, links }
    }

    /// Returns the record of a hash, unless the hash is unchanged or the document of its node contains its state.
    fn extra_record(&self, hash: u64, before: Option<HashState>) -> Option<Record<R::Signature>> {
        let last = self.remembered(hash).filter(|last| before != Some(*last) && !self.is_own(hash, *last))?;
        let node = (last.row != NONE).then(|| self.id(last.row));
        Some(Record::Hash { hash, node, seen_ms: last.seen_ms })
    }
}

fn makes_node(assigned: &Assignment) -> bool {
    matches!(assigned.kind, Kind::NewRoot | Kind::Joined)
}
