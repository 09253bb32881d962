//! A forest in memory: its nodes and content hashes, the rules by which nodes are near each other, and the laws by
//! which arrivals get roots.
//!
//! [`relation`] defines which signatures are near each other; [`agreement`] does so for the profile `verified`. An
//! [`index`] searches for near signatures by the keys of their representatives: simhashes in [`simhash_tables`] and
//! [`postings`], exact keys in a [`table`]. [`nodes`] stores the nodes, their [`trees`] and the [`content_hashes`],
//! and can undo changes; [`laws`] assigns roots, given the forest's [`times`]. [`records`] packs nodes and hashes for
//! storage, [`loading`] loads them, and [`documents`] writes them as JSON for Elasticsearch.

pub mod agreement;
pub mod chunks;
pub mod content_hashes;
pub mod documents;
pub mod index;
pub mod laws;
pub mod loading;
pub mod nodes;
pub mod postings;
pub mod records;
pub mod relation;
pub mod simhash_tables;
pub mod table;
pub mod times;
pub mod trees;
