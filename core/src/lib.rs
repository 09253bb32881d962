//! The part of esdedup that reads every character, from raw text to signatures, and holds forests in memory (`forest`).
//!
//! Plain loops over one text at a time; nothing here knows Python but `bindings`. From text to signature, in the order of
//! use: `markup` → `normal_form` → `sentences` and `tokens` → `passages`, all of which `parsed` does, and then
//! `signature`. Every bit that comes out is decided here, by the tables in `data/` and the crate for normal forms, so it
//! is the same on every machine.

pub mod batch;
pub mod boilerplate;
pub mod characters;
pub mod forest;
pub mod hashing;
pub mod markup;
pub mod normal_form;
pub mod parsed;
pub mod passages;
pub mod references;
pub mod runs;
pub mod sentences;
pub mod signature;
pub mod surrogates;
pub mod tags;
pub mod tokens;
pub mod wrapping;

#[cfg(feature = "python")]
mod bindings;
