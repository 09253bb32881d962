//! Turns raw texts into signatures, and holds forests ([`forest`]) and learned boilerplate ([`boilerplate`]) in
//! memory.
//!
//! Only [`bindings`] depends on Python. A text becomes a signature in this order: [`markup`] (with [`tags`] and
//! [`elements`]) → [`normal_form`] → [`tokens`] and [`sentences`] (with [`endings`] and [`wrapping`]) → [`passages`]
//! → [`figures`] → [`signature`]; [`parsed`] performs all steps but the last. The result depends only on this crate,
//! its tables in `data/` and the `unicode-normalization` crate, so it is the same on every machine.

// Without the feature `python`, functions called only from Python are unused.
#![cfg_attr(not(feature = "python"), allow(dead_code))]

#[cfg(target_endian = "big")]
compile_error!("stored data is little-endian and is read without conversion");

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
