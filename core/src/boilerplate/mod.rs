//! The learner of boilerplate: which passages of pages belong to their sites, and not to an article.
//!
//! Boilerplate repeats while the rest of the page differs; an article repeats with the rest. So a passage becomes
//! boilerplate when it has been seen in five `contexts`, and a page is a new context only if its longest other passages,
//! its marks, are none of those of the contexts before. An edited version of a page takes a context back. It also becomes
//! boilerplate of a site that is known by being on many of its pages: `site_pages`. What one site teaches counts there
//! alone, since each knows a passage by another hash.
//!
//! `learner` takes pages one after the other: `judge` says what is left out of each by what is known in `memory`, and
//! `learning` what blocks of them teach. What changes in one of its `steps` can be undone, and stored as `changes`,
//! which can be made elsewhere.

pub mod changes;
pub mod contexts;
pub mod judge;
pub mod learner;
pub mod learning;
pub mod memory;
pub mod pages;
pub mod site_pages;
pub mod steps;
pub mod table;
