//! Python's interface to the learner of boilerplate.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyString};

use super::shared::Shared;
use crate::boilerplate::changes::{Changes, Refusal};
use crate::boilerplate::judge::{OverrideTable, PagePassage};
use crate::boilerplate::learner::{IncomingPage, Learner, Pace};
use crate::boilerplate::pages::{hash_of_title, origin_of};
use crate::columns::{Column, column, numbers};
use crate::parsed::ParsedText;

/// Passages that a person has declared to be boilerplate or text.
#[pyclass(frozen, name = "OverrideTable", module = "esdedup._core")]
pub struct PyOverrideTable(OverrideTable);

#[pymethods]
impl PyOverrideTable {
    #[new]
    fn new(declared: Vec<(u64, Option<Bound<'_, PyString>>, bool)>) -> PyResult<PyOverrideTable> {
        let mut overrides = OverrideTable::default();
        for (hash, site, is_boilerplate) in declared {
            overrides.declare(hash, utf8_of(&site)?.as_deref(), is_boilerplate);
        }
        Ok(PyOverrideTable(overrides))
    }
}

/// Learns boilerplate from pages. Threads may share it; only one call runs at a time.
#[pyclass(frozen, subclass, name = "Learner", module = "esdedup._core")]
pub struct PyLearner(Shared<Learner>);

#[pymethods]
impl PyLearner {
    #[new]
    fn new(block_pages: usize, end_passages: usize, least_article_bits: u32, period_records: u64) -> Self {
        let pace = Pace { block_pages, end_passages, period_records, least_article_bits };
        PyLearner(Shared::new("the boilerplate learner", Learner::new(pace)))
    }

    fn learn_rest(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, Learner::learn_rest)
    }

    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        self.0.briefly(py, Learner::begin)
    }

    fn keep(&self, py: Python<'_>) -> PyResult<()> {
        self.0.briefly(py, Learner::keep)
    }

    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, Learner::undo)
    }

    fn changes(&self, py: Python<'_>) -> PyResult<PyChanges> {
        let changes = self.0.with(py, |learner| learner.changes())?;
        changes.map(PyChanges).ok_or_else(|| PyValueError::new_err("no step is open"))
    }

    fn everything(&self, py: Python<'_>) -> PyResult<PyChanges> {
        Ok(PyChanges(self.0.with(py, |learner| learner.everything())?))
    }

    fn apply(&self, py: Python<'_>, changes: &PyChanges) -> PyResult<()> {
        self.0.with(py, |learner| learner.apply(&changes.0))?.map_err(refused)
    }

    fn learned_flags(
        &self,
        py: Python<'_>,
        hashes: &[u8],
        site: Option<Bound<'_, PyString>>,
    ) -> PyResult<Column> {
        let hashes: Vec<u64> = numbers(hashes);
        let origin = origin_of(utf8_of(&site)?.as_deref(), None, 0);
        self.0.with(py, |learner| {
            column(hashes.into_iter().map(|hash| learner.is_learned(origin.local_hash(hash))))
        })
    }

    fn learned_hashes(&self, py: Python<'_>) -> PyResult<Column> {
        self.0.with(py, |learner| column(learner.learned()))
    }

    #[getter]
    fn depth(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |learner| learner.depth())
    }

    #[getter]
    fn last_page(&self, py: Python<'_>) -> PyResult<u32> {
        self.0.briefly(py, |learner| learner.last_page())
    }

    /// The fields of [`Window`](crate::boilerplate::memory::Window).
    #[getter]
    fn periods(&self, py: Python<'_>) -> PyResult<(u64, u64, u32, u32)> {
        let window = self.0.briefly(py, |learner| learner.memory.window)?;
        Ok((window.capacity, window.count, window.present_from, window.former_from))
    }

    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |learner| learner.memory.size_bytes())
    }

    /// Whether a call panicked in the middle of a change.
    #[getter]
    fn is_broken(&self) -> bool {
        self.0.is_broken()
    }
}

/// Omits boilerplate from pages, in order, and lets a learner learn from the pages.
#[pyclass(frozen, name = "PassageFilter", module = "esdedup._core")]
pub struct PyPassageFilter {
    learner: Py<PyLearner>,
    overrides: Py<PyOverrideTable>,
    /// Iterators over the sites, articles and titles of the pages.
    names: [Py<PyIterator>; 3],
}

#[pymethods]
impl PyPassageFilter {
    #[new]
    fn new(
        learner: Py<PyLearner>,
        overrides: Py<PyOverrideTable>,
        names: [Bound<'_, PyAny>; 3],
    ) -> PyResult<PyPassageFilter> {
        let [sites, articles, titles] = names.map(|each| each.try_iter().map(Bound::unbind));
        Ok(PyPassageFilter { learner, overrides, names: [sites?, articles?, titles?] })
    }
}

impl PyPassageFilter {
    /// Returns whether each passage of the next texts is omitted.
    pub fn omitted(&self, py: Python<'_>, texts: &[ParsedText]) -> PyResult<Vec<bool>> {
        let overrides = &self.overrides.get().0;
        let next = |at: usize| -> PyResult<Option<Vec<u8>>> {
            let name = self.names[at].bind(py).clone().next();
            let name = name.ok_or_else(|| PyValueError::new_err("there are fewer names than texts"))??;
            utf8_of(&name.extract()?)
        };
        let mut pages = Vec::with_capacity(texts.len());
        for text in texts {
            let (id, site, article) = (text.content_hash, next(0)?, next(1)?);
            let origin = origin_of(site.as_deref(), article.as_deref(), id);
            let title = next(2)?.as_deref().map_or(0, hash_of_title);
            pages.push((origin, title, overrides.scope_of(site.as_deref())));
        }
        self.learner.get().0.with(py, |learner| {
            let mut omitted = Vec::new();
            for (text, (origin, title, scope)) in texts.iter().zip(pages) {
                let passages: Vec<PagePassage> = text.passages.iter().map(PagePassage::from).collect();
                let (id, passages) = (text.content_hash, &passages[..]);
                let page = IncomingPage { id, origin, title, overrides, scope, passages };
                let start = omitted.len();
                omitted.resize(start + passages.len(), false);
                learner.filter(&page, &mut omitted[start..]);
            }
            omitted
        })
    }
}

/// The changes made in a step, which begins with `Learner.begin`.
#[pyclass(frozen, name = "Changes", module = "esdedup._core")]
pub struct PyChanges(Changes);

#[pymethods]
impl PyChanges {
    #[staticmethod]
    fn of_columns(columns: Vec<Bound<'_, PyBytes>>) -> PyResult<PyChanges> {
        let columns: Vec<&[u8]> = columns.iter().map(|each| each.as_bytes()).collect();
        Changes::of_columns(&columns).map(PyChanges).map_err(refused)
    }

    fn columns(&self) -> Vec<Column> {
        self.0.columns()
    }

    fn then(&self, later: &PyChanges) -> PyChanges {
        PyChanges(self.0.then(&later.0))
    }

    #[getter]
    fn page_count(&self) -> usize {
        self.0.pages.len()
    }

    #[getter]
    fn first_page(&self) -> u32 {
        self.0.first_page()
    }

    #[getter]
    fn last_page(&self) -> u32 {
        self.0.last_page
    }

    /// Whether the step added no page and ended no block.
    #[getter]
    fn are_empty(&self) -> bool {
        self.0.pages.is_empty() && self.0.site_numbers.is_empty()
    }
}

fn refused(Refusal(reason): Refusal) -> PyErr {
    PyValueError::new_err(reason)
}

/// Returns a name, if there is one, in UTF-8 with lone surrogates encoded like other characters.
fn utf8_of(name: &Option<Bound<'_, PyString>>) -> PyResult<Option<Vec<u8>>> {
    let Some(name) = name else { return Ok(None) };
    Ok(Some(match name.to_str() {
        Ok(plain) => plain.as_bytes().to_vec(),
        Err(_) => name.call_method1("encode", ("utf-8", "surrogatepass"))?.extract()?,
    }))
}
