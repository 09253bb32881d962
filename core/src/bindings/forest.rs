//! A forest in memory for Python: one call for each batch of arrivals.

use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{Column, column, numbers};
use crate::forest::aging::{Aging, State};
use crate::forest::agreement::{Agreement, ByAgreement, Comparison, Text};
use crate::forest::documents::document;
use crate::forest::index::{Found, Index};
use crate::forest::laws::Arrival;
use crate::forest::loading::Loading;
use crate::forest::nodes::Nodes as Core;
use crate::forest::records::{Entry, Record, write_id};
use crate::forest::relation::{ByDistance, Id, Relation as Rules};
use crate::forest::table::NONE;
use crate::forest::terms::Layout;

// In messages.
const NAME: &str = "the forest in memory";

type Numbers = (i64, i64, i64);
type Outcomes<'py> =
    (Column<'py>, Column<'py>, Column<'py>, Column<'py>, Column<'py>, Vec<Column<'py>>, Column<'py>, Numbers);

/// Which signatures are near each other.
#[pyclass(frozen, module = "esdedup._core")]
#[derive(Clone, Copy)]
pub struct Relation {
    max_distance_bits: u32,
    agreement: Option<(Agreement, usize)>,
}

impl Relation {
    fn by_distance(&self) -> ByDistance {
        ByDistance { max_distance_bits: self.max_distance_bits }
    }

    fn by_agreement(&self) -> Option<ByAgreement> {
        let max_distance_bits = self.max_distance_bits;
        self.agreement.map(|(agreement, max_postings)| ByAgreement {
            max_distance_bits,
            max_postings,
            agreement,
        })
    }
}

#[pymethods]
impl Relation {
    #[new]
    #[pyo3(signature = (max_distance_bits, agreement))]
    fn new(max_distance_bits: u32, agreement: Option<([f64; 10], usize)>) -> Relation {
        let agreement = agreement.map(|(rules, max_postings)| {
            let agreement = Agreement {
                least_resemblance: rules[0],
                most_resemblance: rules[1],
                short_letters: rules[2],
                tiny_resemblance: rules[3],
                tiny_runs: rules[4],
                root_slack: rules[5],
                least_contained: rules[6],
                // Larger counts than these hold have no text.
                contained_letters: rules[7] as u32,
                contained_runs: rules[8] as u16,
                contained_resemblance: rules[9],
            };
            (agreement, max_postings)
        });
        Relation { max_distance_bits, agreement }
    }

    fn ids<'py>(&self, py: Python<'py>, signatures: &[u8]) -> Column<'py> {
        fn all<R: Rules>(signatures: &[u8]) -> Vec<u8> {
            let mut ids = Vec::with_capacity(signatures.len() / R::SIZE * R::ID_BYTES);
            signatures.chunks_exact(R::SIZE).for_each(|each| write_id::<R>(R::id(&R::read(each)), &mut ids));
            ids
        }
        let ids = match self.agreement {
            None => all::<ByDistance>(signatures),
            Some(_) => all::<ByAgreement>(signatures),
        };
        PyBytes::new(py, &ids)
    }

    fn documents(
        &self,
        packed: Vec<Bound<'_, PyBytes>>,
        tables: Vec<Vec<(u32, u32)>>,
        written: (u32, u32, u32),
    ) -> PyResult<Vec<(String, String)>> {
        let layout = layout_of(tables, written)?;
        let documents = packed.iter().map(|each| match self.agreement {
            None => document::<ByDistance>(each.as_bytes(), &layout),
            Some(_) => document::<ByAgreement>(each.as_bytes(), &layout),
        });
        let documents: Option<Vec<_>> = documents.collect();
        documents.ok_or_else(|| PyValueError::new_err("what is packed is neither a node nor a page"))
    }

    fn terms(
        &self,
        signatures: &[u8],
        tables: Vec<Vec<(u32, u32)>>,
        written: (u32, u32, u32),
        is_indexed: bool,
    ) -> PyResult<Vec<Vec<String>>> {
        fn all<R: Rules>(layout: &Layout, signatures: &[u8], is_indexed: bool) -> Vec<Vec<String>> {
            let signatures = signatures.chunks_exact(R::SIZE).map(R::read);
            signatures.map(|each| layout.terms::<R>(&each, is_indexed)).collect()
        }
        let layout = layout_of(tables, written)?;
        Ok(match self.agreement {
            None => all::<ByDistance>(&layout, signatures, is_indexed),
            Some(_) => all::<ByAgreement>(&layout, signatures, is_indexed),
        })
    }

    fn compare<'py>(&self, py: Python<'py>, one: &[u8], other: &[u8]) -> PyResult<[Column<'py>; 6]> {
        let Some((agreement, _)) = self.agreement.filter(|_| one.len() == other.len()) else {
            return Err(PyValueError::new_err("there are no pairs of texts to compare"));
        };
        let signatures =
            |bytes: &[u8]| bytes.chunks_exact(ByAgreement::SIZE).map(ByAgreement::read).collect();
        let (ones, others): (Vec<Text>, Vec<Text>) = (signatures(one), signatures(other));
        let pairs = ones.iter().zip(&others);
        let compared: Vec<Comparison> = pairs.map(|(one, other)| agreement.compare(one, other)).collect();
        let shares =
            |of: fn(&Comparison) -> f64| column(py, compared.iter().map(|each| of(each).to_ne_bytes()));
        let flags = |of: fn(&Comparison) -> bool| column(py, compared.iter().map(|each| [of(each).into()]));
        Ok([
            shares(|each| each.resemblance),
            shares(|each| each.needed),
            shares(|each| each.contained),
            flags(|each| each.may_contain),
            flags(|each| each.agree),
            flags(|each| each.may_join),
        ])
    }
}

fn layout_of(tables: Vec<Vec<(u32, u32)>>, written: (u32, u32, u32)) -> PyResult<Layout> {
    if tables.iter().flatten().any(|(start, stop)| start >= stop || *stop > 64 || stop - start == 64) {
        return Err(PyValueError::new_err("a key has 1 to 63 of the bits of a simhash"));
    }
    let (digit_bits, key_bits, digits) = written;
    if !(1..=6).contains(&digit_bits) || key_bits > 63 || digits > 64 / digit_bits {
        return Err(PyValueError::new_err("a term has at most 64 bits, and a digit of it at most 6"));
    }
    Ok(Layout { tables, digit_bits, key_bits, digits })
}

/// What `Nodes` calls, whatever the relation.
trait Held: Send {
    fn len(&self) -> usize;
    fn lone_page_count(&self) -> usize;
    fn size_bytes(&self) -> usize;
    fn depth(&self) -> usize;
    fn load(&mut self, packed: &[&[u8]], live_since_ms: i64);
    fn load_logs(&mut self, logs: &[&[u8]]);
    fn missing(&self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>);
    fn settle(&mut self, live_since_ms: i64);
    fn living(&self, log: &[u8], live_since_ms: i64) -> Vec<Vec<u8>>;
    /// None if the columns differ in length.
    fn assign(&mut self, batch: &Batch, state: &mut State, now_ms: i64) -> Option<Outcome>;
    fn keep(&mut self);
    fn undo(&mut self);
}

struct Batch {
    signatures: Vec<u8>,
    exist: Vec<bool>,
    pages: Vec<u64>,
    times_ms: Vec<i64>,
}

#[derive(Default)]
struct Outcome {
    kinds: Vec<u8>,
    ids: Vec<u8>,
    roots: Vec<u8>,
    times_ms: Vec<i64>,
    signatures: Vec<u8>,
    written: Vec<Vec<u8>>,
    // The same, as a log has it.
    log: Vec<u8>,
}

struct Forest<R: Rules> {
    nodes: Core<R>,
    // Until the first batch.
    loading: Option<Loading>,
}

impl<R: Rules> Held for Forest<R> {
    fn len(&self) -> usize {
        self.nodes.index.len()
    }

    fn lone_page_count(&self) -> usize {
        self.nodes.lone_page_count()
    }

    fn size_bytes(&self) -> usize {
        self.nodes.size_bytes()
    }

    fn depth(&self) -> usize {
        self.nodes.depth()
    }

    fn load(&mut self, packed: &[&[u8]], live_since_ms: i64) {
        let loading = self.loading.get_or_insert_with(|| Loading::new(&self.nodes));
        let records = packed.iter().filter_map(|bytes| Record::unpack::<R>(bytes));
        records.for_each(|record| self.nodes.load(loading, record, live_since_ms));
    }

    fn missing(&self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let written = |ids: Vec<Id>| {
            let ids = ids.into_iter().map(|id| {
                let mut bytes = Vec::new();
                write_id::<R>(id, &mut bytes);
                bytes
            });
            ids.collect()
        };
        let (roots, nodes) = self.loading.as_ref().map(Loading::missing).unwrap_or_default();
        (written(roots), written(nodes))
    }

    fn load_logs(&mut self, logs: &[&[u8]]) {
        let loading = self.loading.get_or_insert_with(|| Loading::new(&self.nodes));
        let entries = logs.iter().flat_map(|log| Entry::read_all::<R>(log));
        entries.for_each(|entry| self.nodes.load_entry(loading, entry));
    }

    fn settle(&mut self, live_since_ms: i64) {
        if let Some(loading) = &mut self.loading {
            self.nodes.settle(loading, live_since_ms);
        }
    }

    fn living(&self, log: &[u8], live_since_ms: i64) -> Vec<Vec<u8>> {
        let records = Entry::read_all::<R>(log).filter_map(|entry| match entry {
            Entry::Record(record) => self.nodes.current(&record, live_since_ms),
            Entry::Refreshed { .. } => None,
        });
        records.map(|record| record.pack::<R>()).collect()
    }

    fn assign(&mut self, batch: &Batch, state: &mut State, now_ms: i64) -> Option<Outcome> {
        let lengths = [batch.exist.len(), batch.pages.len(), batch.times_ms.len()];
        if lengths.iter().any(|length| length * R::SIZE != batch.signatures.len()) {
            return None;
        }
        self.loading = None;
        self.nodes.begin();
        let signatures = batch.signatures.chunks_exact(R::SIZE).zip(&batch.exist);
        let arrivals = signatures.zip(batch.pages.iter().zip(&batch.times_ms));
        let arrivals = arrivals.map(|((signature, exists), (page, time_ms))| Arrival {
            signature: exists.then(|| R::read(signature)),
            page: *page,
            time_ms: *time_ms,
        });
        let assigned = self.nodes.assign(arrivals, state, now_ms);
        self.nodes.end(state.live_since_ms(&self.nodes.aging));
        let mut outcome = Outcome::default();
        for each in &assigned {
            outcome.kinds.push(each.kind as u8);
            outcome.times_ms.push(each.time_ms);
            if each.row == NONE {
                outcome.ids.resize(outcome.ids.len() + R::ID_BYTES, 0);
                outcome.roots.resize(outcome.roots.len() + R::ID_BYTES, 0);
                outcome.signatures.resize(outcome.signatures.len() + R::SIZE, 0);
            } else {
                write_id::<R>(self.nodes.id(each.row), &mut outcome.ids);
                write_id::<R>(self.nodes.id(self.nodes.node(each.row).root), &mut outcome.roots);
                R::write(self.nodes.index.signature(each.row), &mut outcome.signatures);
            }
        }
        let written = self.nodes.written(&batch.pages, &assigned);
        outcome.written = written.iter().map(|(record, _)| record.pack::<R>()).collect();
        for (record, is_refreshed) in &written {
            Entry::write::<R>(record, *is_refreshed, &mut outcome.log);
        }
        Some(outcome)
    }

    fn keep(&mut self) {
        self.nodes.keep();
    }

    fn undo(&mut self) {
        self.nodes.undo();
    }
}

/// A forest in memory. Threads may share it: one waits for the other.
#[pyclass(frozen, module = "esdedup._core")]
pub struct Nodes(Mutex<Box<dyn Held>>);

#[pymethods]
#[allow(clippy::type_complexity)] // columns
impl Nodes {
    #[new]
    #[pyo3(signature = (relation, *, retention_ms, granularity_ms))]
    fn new(relation: &Relation, retention_ms: i64, granularity_ms: i64) -> Nodes {
        fn empty<R: Rules>(rules: R, aging: Aging) -> Box<dyn Held> {
            Box::new(Forest { nodes: Core::new(rules, aging), loading: None })
        }
        let aging = Aging { retention_ms, granularity_ms };
        Nodes(Mutex::new(match relation.by_agreement() {
            None => empty(relation.by_distance(), aging),
            Some(rules) => empty(rules, aging),
        }))
    }

    #[pyo3(signature = (packed, *, live_since_ms))]
    fn load(&self, py: Python<'_>, packed: Vec<Bound<'_, PyBytes>>, live_since_ms: i64) -> PyResult<()> {
        let packed: Vec<&[u8]> = packed.iter().map(|each| each.as_bytes()).collect();
        self.with(py, |held| held.load(&packed, live_since_ms))
    }

    fn missing(&self, py: Python<'_>) -> PyResult<(Vec<Vec<u8>>, Vec<Vec<u8>>)> {
        self.with(py, |held| held.missing())
    }

    fn load_logs(&self, py: Python<'_>, logs: Vec<Bound<'_, PyBytes>>) -> PyResult<()> {
        let logs: Vec<&[u8]> = logs.iter().map(|each| each.as_bytes()).collect();
        self.with(py, |held| held.load_logs(&logs))
    }

    #[pyo3(signature = (*, live_since_ms))]
    fn settle(&self, py: Python<'_>, live_since_ms: i64) -> PyResult<()> {
        self.with(py, |held| held.settle(live_since_ms))
    }

    #[pyo3(signature = (log, *, live_since_ms))]
    fn living<'py>(
        &self,
        py: Python<'py>,
        log: &[u8],
        live_since_ms: i64,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let found = self.with(py, |held| held.living(log, live_since_ms))?;
        Ok(found.iter().map(|each| PyBytes::new(py, each)).collect())
    }

    #[allow(clippy::too_many_arguments)] // columns of arrivals
    #[pyo3(signature = (signatures, exist, pages, times_ms, *, state, now_ms))]
    fn assign<'py>(
        &self,
        py: Python<'py>,
        signatures: &[u8],
        exist: &[u8],
        pages: &[u8],
        times_ms: &[u8],
        state: Numbers,
        now_ms: i64,
    ) -> PyResult<Outcomes<'py>> {
        let batch = Batch {
            signatures: signatures.to_vec(),
            exist: exist.iter().map(|each| *each != 0).collect(),
            pages: numbers(pages).map(u64::from_ne_bytes).collect(),
            times_ms: numbers(times_ms).map(i64::from_ne_bytes).collect(),
        };
        let mut state = State { seq: state.0, time_ms: state.1, origin_ms: state.2 };
        let found = self.with(py, |held| held.assign(&batch, &mut state, now_ms))?;
        let found = found.ok_or_else(|| PyValueError::new_err("the columns of arrivals differ in length"))?;
        Ok((
            PyBytes::new(py, &found.kinds),
            PyBytes::new(py, &found.ids),
            PyBytes::new(py, &found.roots),
            column(py, found.times_ms.into_iter().map(i64::to_ne_bytes)),
            PyBytes::new(py, &found.signatures),
            found.written.iter().map(|each| PyBytes::new(py, each)).collect(),
            PyBytes::new(py, &found.log),
            (state.seq, state.time_ms, state.origin_ms),
        ))
    }

    fn keep(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |held| held.keep())
    }

    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |held| held.undo())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.briefly(py, |held| held.len())
    }

    #[getter]
    fn lone_page_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.briefly(py, |held| held.lone_page_count())
    }

    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.briefly(py, |held| held.size_bytes())
    }

    #[getter]
    fn depth(&self, py: Python<'_>) -> PyResult<usize> {
        self.briefly(py, |held| held.depth())
    }

    #[getter]
    fn is_torn(&self) -> bool {
        self.0.is_poisoned()
    }
}

impl Nodes {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut dyn Held) -> T + Send) -> PyResult<T> {
        super::held(py, &self.0, NAME, |held| work(held.as_mut()))
    }

    fn briefly<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut dyn Held) -> T + Send) -> PyResult<T> {
        super::held_briefly(py, &self.0, NAME, |held| work(held.as_mut()))
    }
}

/// What `NeighbourIndex` calls, whatever the relation.
trait Searched: Send {
    fn len(&self) -> usize;
    fn size_bytes(&self) -> usize;
    fn add(&mut self, signatures: &[u8]);
    fn find_pairs(&self, signatures: &[u8]) -> Vec<(u64, u64)>;
}

impl<R: Rules> Searched for Index<R> {
    fn len(&self) -> usize {
        Index::len(self)
    }

    fn size_bytes(&self) -> usize {
        Index::size_bytes(self)
    }

    fn add(&mut self, signatures: &[u8]) {
        for each in signatures.chunks_exact(R::SIZE) {
            Index::add(self, R::read(each));
        }
    }

    fn find_pairs(&self, signatures: &[u8]) -> Vec<(u64, u64)> {
        let (mut pairs, mut found) = (Vec::new(), Found::default());
        for (at, signature) in signatures.chunks_exact(R::SIZE).enumerate() {
            self.search(&R::read(signature), &mut found);
            pairs.extend(found.near.iter().map(|row| (at as u64, u64::from(*row))));
        }
        pairs
    }
}

/// Signatures by row, searched for those near others. Threads may share it: one waits for the other.
#[pyclass(frozen, module = "esdedup._core")]
pub struct NeighbourIndex(Mutex<Box<dyn Searched>>);

#[pymethods]
impl NeighbourIndex {
    #[new]
    fn new(relation: &Relation) -> NeighbourIndex {
        NeighbourIndex(Mutex::new(match relation.by_agreement() {
            None => Box::new(Index::new(relation.by_distance())),
            Some(rules) => Box::new(Index::new(rules)),
        }))
    }

    fn add(&self, py: Python<'_>, signatures: &[u8]) -> PyResult<()> {
        self.with(py, |index| index.add(signatures))
    }

    fn find_pairs<'py>(&self, py: Python<'py>, signatures: &[u8]) -> PyResult<(Column<'py>, Column<'py>)> {
        let pairs = self.with(py, |index| index.find_pairs(signatures))?;
        let positions = column(py, pairs.iter().map(|(at, _)| at.to_ne_bytes()));
        Ok((positions, column(py, pairs.iter().map(|(_, row)| row.to_ne_bytes()))))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |index| index.len())
    }

    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |index| index.size_bytes())
    }
}

impl NeighbourIndex {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut dyn Searched) -> T + Send) -> PyResult<T> {
        super::held(py, &self.0, "the index in memory", |index| work(index.as_mut()))
    }
}
