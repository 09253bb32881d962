//! The part of esdedup that reads every character, from raw text to signatures, and holds forests in memory
//! ([`forest`]).
//!
//! Plain loops over one text at a time; only [`bindings`] depends on Python. From text to signature, in the
//! order of use: [`markup`] (by [`tags`] and [`elements`]) → [`normal_form`] → [`tokens`] and [`sentences`] (by
//! [`endings`] and [`wrapping`]) → [`passages`] → [`figures`], all of which [`parsed`] does, and then [`signature`].
//! Every bit that comes out is decided here, by the tables in `data/` and the crate for normal forms, so it is the same
//! on every machine.

// Without the feature `python`, functions that only Python calls are unused.
#![cfg_attr(not(feature = "python"), allow(dead_code))]

#[cfg(target_endian = "big")]
compile_error!("stored data is little-endian, and is read into memory unchanged");

mod batch;
mod boilerplate;
mod characters;
mod columns;
mod elements;
mod endings;
mod figures;
mod forest;
mod hashing;
mod markup;
mod names;
mod normal_form;
mod parsed;
mod passages;
mod references;
mod runs;
mod sentences;
mod signature;
mod surrogates;
mod tags;
mod tokens;
mod wrapping;

#[cfg(feature = "python")]
mod bindings;
