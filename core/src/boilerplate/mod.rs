//! The learner of boilerplate: which passages of pages belong to their sites, and not to an article.
//!
//! Boilerplate repeats while the rest of the page differs; an article repeats with the rest. So a passage becomes
//! boilerplate when it has been seen in five [`contexts`]. A page is a new context only if its marks, its longest other
//! passages, differ from those of all earlier contexts. An edited version of a page removes a context. A passage also
//! becomes boilerplate of a site by being on many of its pages: [`site_pages`]. What one site teaches counts there
//! alone, since each site hashes passages differently.
//!
//! [`learner`] takes pages one after the other: [`judge`] decides what is left out of each, given what is known in
//! [`memory`], and [`learning`] learns from blocks of pages. The changes of one of the learner's [`steps`] can be
//! undone, and stored as [`changes`], which another process can apply.

pub mod changes;
pub mod contexts;
pub mod judge;
pub mod learner;
pub mod learning;
pub mod memory;
pub mod pages;
pub mod sharded_table;
pub mod site_pages;
pub mod steps;
