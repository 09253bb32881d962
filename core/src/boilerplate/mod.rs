//! Learns boilerplate: the passages of web pages that belong to a site, and not to an article.
//!
//! Boilerplate is repeated while the rest of the page differs; the passages of an article are repeated together. So
//! a passage becomes boilerplate when it has been seen in five [`contexts`]. The marks of a page are its longest
//! other passages; a page is a new context only if its marks differ from the marks of all earlier contexts. An
//! edited version of a page removes a context. A passage also becomes boilerplate if it is on many pages of its
//! site: see [`site_pages`]. Passages are hashed differently for each site, so boilerplate learned at one site has no
//! effect at other sites.
//!
//! The [`learner`] receives pages in order. For each page, [`judge`] decides which passages to omit, given the
//! boilerplate known to [`memory`], and [`learning`] learns from blocks of pages. The changes made in one of
//! the learner's [`steps`] can be undone, or stored as [`changes`] and applied by another process.

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
