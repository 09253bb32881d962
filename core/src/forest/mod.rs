//! A forest in memory: its nodes and pages, which nodes are near each other, and the laws by which arrivals get roots.
//!
//! [`relation`] says which signatures are near each other, [`agreement`] does so for the profile `verified`. An
//! [`index`] finds them by the keys of their representatives: [`simhash_tables`] with [`postings`] by simhashes, a
//! [`table`] by equal numbers. [`nodes`] keeps the nodes, the [`trees`] that they form, and the [`seen_pages`], and can
//! undo changes; [`laws`] decides roots, by the forest's [`times`]. [`records`] packs nodes and pages for storage,
//! [`loading`] reads them back; [`documents`] writes them for Elasticsearch.

pub mod agreement;
pub mod chunks;
pub mod documents;
pub mod index;
pub mod laws;
pub mod loading;
pub mod nodes;
pub mod postings;
pub mod records;
pub mod relation;
pub mod seen_pages;
pub mod simhash_tables;
pub mod table;
pub mod times;
pub mod trees;
