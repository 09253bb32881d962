//! Passages that a person has declared boilerplate, or text: that counts more than what pages teach.

use std::collections::HashMap;

use super::judge::Passage;

// The scope of what holds for all sites.
const EVERYWHERE: u32 = 0;

/// What is declared about passages, for all sites or for one.
#[derive(Clone, Default, Debug)]
pub struct Overrides {
    // By passage: scopes, and whether it is boilerplate there.
    declared: HashMap<u64, Vec<(u32, bool)>>,
    // Of the sites where something is declared.
    scopes: HashMap<Vec<u8>, u32>,
}

impl Overrides {
    /// Declares a passage, for one site or for all, to be boilerplate; if not, it is text.
    pub fn declare(&mut self, hash: u64, site: Option<&[u8]>, is_boilerplate: bool) {
        let next = self.scopes.len() as u32 + 1;
        let scope = site.map_or(EVERYWHERE, |site| *self.scopes.entry(site.to_vec()).or_insert(next));
        self.declared.entry(hash).or_default().push((scope, is_boilerplate));
    }

    /// Returns the scope of a page of a site.
    pub fn scope_of(&self, site: Option<&[u8]>) -> u32 {
        site.and_then(|site| self.scopes.get(site)).copied().unwrap_or(EVERYWHERE)
    }

    /// Declares what is declared of a passage of a page; in its scope that counts, and not what holds everywhere.
    ///
    /// What is declared text counts as prose, wherever it stands, and what is declared boilerplate says nothing by its
    /// figures.
    pub fn apply(&self, passage: &mut Passage, scope: u32) {
        let Some(declared) = self.declared.get(&passage.hash) else { return };
        let of_scope = |scope: u32| declared.iter().find(|(own, _)| *own == scope);
        if let Some((_, is_boilerplate)) = of_scope(scope).or_else(|| of_scope(EVERYWHERE)) {
            passage.is_learned = *is_boilerplate;
            passage.is_prose |= !is_boilerplate;
            passage.has_figures &= !is_boilerplate;
        }
    }
}
