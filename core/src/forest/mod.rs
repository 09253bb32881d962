//! A forest in memory: its nodes and pages, what is near what, and the laws by which arrivals get their roots.
//!
//! `relation` says which signatures are near each other, `agreement` does so for the profile `verified`. An `index` finds
//! them by the keys of their representatives: `simhash_tables` with `postings` by simhashes, a `table` by equal numbers.
//! `nodes` keeps what is known of each node, and which `trees` they form, remembers `pages`, and can undo; `laws` decides.
//! `records` is the packed form in which nodes and pages are stored, `loading` reads it; `documents` are those of an index.

pub mod agreement;
pub mod chunks;
pub mod documents;
pub mod index;
pub mod laws;
pub mod loading;
pub mod nodes;
pub mod pages;
pub mod postings;
pub mod records;
pub mod relation;
pub mod simhash_tables;
pub mod table;
pub mod trees;
