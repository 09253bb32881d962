//! The learner of boilerplate for Python: one call for each batch of pages.

use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::{Column, column, held, held_briefly, numbers};
use crate::boilerplate::changes::{Changes as Taught, pages_of};
use crate::boilerplate::judge::Passage;
use crate::boilerplate::learn::SiteRule;
use crate::boilerplate::learner::{Arrival, Learner as Core, Pace};
use crate::boilerplate::names::origin_of;
use crate::boilerplate::overrides::Overrides as Declared;
use crate::boilerplate::periods::Puts;
use crate::boilerplate::window::Window;

// In messages.
const NAME: &str = "the learner of boilerplate";

type Names<'py> = Vec<Option<Bound<'py, PyString>>>;

/// Passages that a person has declared boilerplate, or text.
#[pyclass(frozen, module = "esdedup._core")]
pub struct Overrides(Declared);

#[pymethods]
impl Overrides {
    #[new]
    fn new(declared: Vec<(u64, Option<Bound<'_, PyString>>, bool)>) -> PyResult<Overrides> {
        let mut overrides = Declared::default();
        for (hash, site, is_boilerplate) in declared {
            overrides.declare(hash, site.as_ref().map(bytes_of).transpose()?.as_deref(), is_boilerplate);
        }
        Ok(Overrides(overrides))
    }
}

/// What pages have taught. Threads may share it: one waits for the other.
#[pyclass(frozen, module = "esdedup._core")]
pub struct Learner(Mutex<Core>);

#[pymethods]
impl Learner {
    #[new]
    #[pyo3(signature = (*, block_pages, end_passages, least_article_bits, most_foreign_pages, period_records))]
    fn new(
        block_pages: usize,
        end_passages: usize,
        least_article_bits: u32,
        most_foreign_pages: u64,
        period_records: u64,
    ) -> Learner {
        let site_rule = SiteRule { least_article_bits, most_foreign_pages };
        Learner(Mutex::new(Core::new(Pace { block_pages, end_passages, period_records, site_rule })))
    }

    #[pyo3(signature = (passages, ids, sites, articles, overrides))]
    fn filter<'py>(
        &self,
        py: Python<'py>,
        passages: [Column<'py>; 5],
        ids: &[u8],
        sites: Names<'py>,
        articles: Names<'py>,
        overrides: &Overrides,
    ) -> PyResult<Column<'py>> {
        let [hashes, letters, are_prose, have_figures, positions] =
            std::array::from_fn(|at| passages[at].as_bytes());
        let count = hashes.len() / size_of::<u64>();
        let ids: Vec<u64> = numbers(ids).map(u64::from_ne_bytes).collect();
        let columns = [letters.len() / 8, are_prose.len(), have_figures.len(), positions.len() / 8];
        if columns.iter().any(|length| *length != count)
            || [sites.len(), articles.len()].iter().any(|length| *length != ids.len())
        {
            return Err(PyValueError::new_err("the columns of passages or pages differ in length"));
        }
        let mut origins = Vec::with_capacity(ids.len());
        for ((site, article), id) in sites.iter().zip(&articles).zip(&ids) {
            let site = site.as_ref().map(bytes_of).transpose()?;
            let article = article.as_ref().map(bytes_of).transpose()?;
            let scope = overrides.0.scope_of(site.as_deref());
            origins.push((origin_of(site.as_deref(), article.as_deref(), *id), scope));
        }
        let omitted = self.with(py, |learner| {
            let letters = numbers(letters).map(i64::from_ne_bytes);
            let flags = are_prose.iter().zip(have_figures);
            let passages = numbers(hashes).map(u64::from_ne_bytes).zip(letters).zip(flags);
            let passages: Vec<Passage> = passages
                .map(|((hash, letters), (is_prose, has_figures))| Passage {
                    hash,
                    letters: letters as u32,
                    is_prose: *is_prose != 0,
                    has_figures: *has_figures != 0,
                    is_learned: false,
                })
                .collect();
            let positions: Vec<usize> = numbers(positions).map(usize::from_ne_bytes).collect();
            let (mut omitted, mut start) = (vec![false; count], 0);
            for (at, (id, (origin, scope))) in ids.iter().zip(&origins).enumerate() {
                let end = start + positions[start..].partition_point(|position| *position <= at);
                let page =
                    Arrival { id: *id, origin: *origin, scope: *scope, passages: &passages[start..end] };
                learner.filter(&page, &overrides.0, &mut omitted[start..end]);
                start = end;
            }
            omitted
        })?;
        Ok(column(py, omitted.into_iter().map(|each| [each.into()])))
    }

    fn learn_rest(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Core::learn_rest)
    }

    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        self.briefly(py, Core::begin)
    }

    fn keep(&self, py: Python<'_>) -> PyResult<()> {
        self.briefly(py, Core::keep)
    }

    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Core::undo)
    }

    fn changes(&self, py: Python<'_>) -> PyResult<Changes> {
        let changes = self.with(py, |learner| learner.changes())?;
        Ok(Changes(changes.ok_or_else(|| PyValueError::new_err("no step has begun"))?))
    }

    fn everything(&self, py: Python<'_>) -> PyResult<Changes> {
        Ok(Changes(self.with(py, |learner| learner.everything())?))
    }

    fn apply(&self, py: Python<'_>, changes: &Changes) -> PyResult<()> {
        self.with(py, |learner| learner.apply(&changes.0))?
            .map_err(|refused| PyValueError::new_err(refused.0))
    }

    fn are_learned<'py>(&self, py: Python<'py>, hashes: &[u8]) -> PyResult<Column<'py>> {
        let found = self.with(py, |learner| {
            let hashes = numbers(hashes).map(u64::from_ne_bytes);
            hashes.map(|hash| learner.is_learned(hash)).collect::<Vec<bool>>()
        })?;
        Ok(column(py, found.into_iter().map(|each| [each.into()])))
    }

    fn learned<'py>(&self, py: Python<'py>) -> PyResult<Column<'py>> {
        let learned = self.with(py, |learner| learner.learned())?;
        Ok(column(py, learned.into_iter().map(u64::to_ne_bytes)))
    }

    #[getter]
    fn depth(&self, py: Python<'_>) -> PyResult<usize> {
        self.briefly(py, |learner| learner.depth())
    }

    #[getter]
    fn last_page(&self, py: Python<'_>) -> PyResult<u32> {
        self.briefly(py, |learner| learner.last_page())
    }

    #[getter]
    fn last_learned_page(&self, py: Python<'_>) -> PyResult<u32> {
        self.briefly(py, |learner| learner.memory().last_learned)
    }

    /// The capacity, the records of the present period, and the first pages of this period and of the former one.
    #[getter]
    fn window(&self, py: Python<'_>) -> PyResult<(u64, u64, u32, u32)> {
        let window = self.briefly(py, |learner| learner.memory().window)?;
        Ok((window.capacity, window.count, window.present_from, window.former_from))
    }

    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.briefly(py, |learner| learner.memory().size_bytes())
    }

    /// Whether a mistake in the crate has stopped a change halfway.
    #[getter]
    fn is_torn(&self) -> bool {
        self.0.is_poisoned()
    }
}

impl Learner {
    /// Works without the interpreter's lock; a panic is raised as an `EsdedupError`, and leaves the learner torn.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Core) -> T + Send) -> PyResult<T> {
        held(py, &self.0, NAME, work)
    }

    fn briefly<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Core) -> T + Send) -> PyResult<T> {
        held_briefly(py, &self.0, NAME, work)
    }
}

/// What a step has taught.
#[pyclass(frozen, module = "esdedup._core")]
pub struct Changes(Taught);

#[pymethods]
impl Changes {
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // as PyO3 gives them
    fn of_columns(columns: Vec<Bound<'_, PyBytes>>) -> PyResult<Changes> {
        let columns: Vec<&[u8]> = columns.iter().map(|each| each.as_bytes()).collect();
        let changes = <[&[u8]; 15]>::try_from(columns).ok().and_then(read);
        let (changes, numbers) = changes.ok_or_else(|| PyValueError::new_err("columns differ in length"))?;
        Ok(Changes(changes.checked(numbers).map_err(|refused| PyValueError::new_err(refused.0))?))
    }

    fn columns<'py>(&self, py: Python<'py>) -> Vec<Column<'py>> {
        let Taught { numbers, sites, passages, contexts, pages, window, .. } = &self.0;
        let state = [
            i64::from(self.0.last_learned),
            i64::from(self.0.last_page),
            window.capacity as i64,
            window.count as i64,
            i64::from(window.present_from),
            i64::from(window.former_from),
        ];
        let words = |some: &[u32]| column(py, some.iter().map(|word| word.to_ne_bytes()));
        let keys = |some: &[u64]| column(py, some.iter().map(|key| key.to_ne_bytes()));
        let marks: Vec<u32> = pages.iter().flat_map(|page| page.marks).collect();
        let origins = pages.iter().map(|page| page.origin);
        let origins: Vec<u32> =
            origins.flat_map(|origin| [origin.site, origin.article, origin.number]).collect();
        vec![
            column(py, state.iter().map(|number| number.to_ne_bytes())),
            words(&marks),
            words(&origins),
            words(&self.0.site_numbers),
            keys(&self.0.hashes),
            words(&self.0.letters),
            words(&self.0.counts),
            keys(&numbers.keys),
            words(numbers.numbers.as_flattened()),
            keys(&sites.keys),
            words(sites.numbers.as_flattened()),
            keys(&passages.keys),
            words(passages.numbers.as_flattened()),
            keys(&contexts.keys),
            words(contexts.numbers.as_flattened()),
        ]
    }

    fn then(&self, later: &Changes) -> Changes {
        Changes(self.0.then(&later.0))
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

    /// Whether a block has ended.
    #[getter]
    fn has_learned(&self) -> bool {
        !self.0.site_numbers.is_empty()
    }
}

/// Reads columns as `Changes.columns` returns them; None if their lengths do not fit.
fn read(columns: [&[u8]; 15]) -> Option<(Taught, [i64; 6])> {
    let [state, marks, origins, site_numbers, hashes, letters, counts, tables @ ..] = columns;
    let (marks, origins) = (rows::<3>(marks), rows::<3>(origins));
    if marks.len() != origins.len() {
        return None;
    }
    let state: Vec<i64> = numbers(state).map(i64::from_ne_bytes).collect();
    let changes = Taught {
        numbers: puts(tables[0], tables[1])?,
        sites: puts(tables[2], tables[3])?,
        passages: puts(tables[4], tables[5])?,
        contexts: puts(tables[6], tables[7])?,
        pages: pages_of(&marks, &origins),
        site_numbers: words(site_numbers),
        hashes: numbers(hashes).map(u64::from_ne_bytes).collect(),
        letters: words(letters),
        counts: words(counts),
        last_learned: 0,
        last_page: 0,
        window: Window::new(1),
    };
    Some((changes, state.try_into().ok()?))
}

fn puts<const C: usize>(keys: &[u8], values: &[u8]) -> Option<Puts<C>> {
    let puts = Puts { keys: numbers(keys).map(u64::from_ne_bytes).collect(), numbers: rows(values) };
    (puts.keys.len() == puts.numbers.len()).then_some(puts)
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|each| u32::from_ne_bytes([each[0], each[1], each[2], each[3]])).collect()
}

fn rows<const C: usize>(bytes: &[u8]) -> Vec<[u32; C]> {
    let words = words(bytes);
    words.chunks_exact(C).map(|row| std::array::from_fn(|at| row[at])).collect()
}

/// Returns the UTF-8 of a name; that of a lone surrogate as if there were one.
fn bytes_of(name: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    match name.to_str() {
        Ok(plain) => Ok(plain.as_bytes().to_vec()),
        Err(_) => name.call_method1("encode", ("utf-8", "surrogatepass"))?.extract(),
    }
}
