//! A forest in memory for Python: one call for each batch of arrivals.

use bytemuck::bytes_of;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{Column, Shared, column, numbers};
use crate::forest::agreement::{Agreement, ByAgreement, Comparison, Text};
use crate::forest::documents::{Layout, document};
use crate::forest::index::{Index, Matches};
use crate::forest::laws::{Aging, Arrival, State};
use crate::forest::loading::Loader;
use crate::forest::nodes::Nodes as Core;
use crate::forest::records::{Entry, Record, write_id};
use crate::forest::relation::{ByDistance, Id, Relation as Rules};
use crate::forest::table::NONE;

type Numbers = (i64, i64, i64);
type Outcome = (Column, Column, Column, Column, Column, Vec<Column>, Column, Numbers);

/// Which signatures are near each other.
#[pyclass(frozen, module = "esdedup._core")]
#[derive(Clone, Copy)]
pub struct Relation(Either<ByDistance, ByAgreement>);

/// One for each of the two relations.
#[derive(Clone, Copy)]
enum Either<D, A> {
    Distance(D),
    Agreement(A),
}

/// Does the same whatever the relation.
macro_rules! whichever {
    ($either:expr, $each:ident => $work:expr) => {
        match $either {
            Either::Distance($each) => $work,
            Either::Agreement($each) => $work,
        }
    };
}

#[pymethods]
impl Relation {
    #[new]
    #[pyo3(signature = (max_distance_bits, agreement))]
    fn new(max_distance_bits: u32, agreement: Option<Agreement>) -> Relation {
        Relation(match agreement {
            None => Either::Distance(ByDistance { max_distance_bits }),
            Some(agreement) => Either::Agreement(ByAgreement { max_distance_bits, agreement }),
        })
    }

    fn ids(&self, signatures: &[u8]) -> Column {
        fn all<R: Rules>(_: &R, signatures: &[u8]) -> Column {
            let mut ids = Vec::with_capacity(signatures.len() / R::SIZE * R::ID_BYTES);
            signatures.chunks_exact(R::SIZE).for_each(|each| write_id::<R>(R::id(&R::read(each)), &mut ids));
            ids
        }
        whichever!(&self.0, rules => all(rules, signatures))
    }

    fn documents(
        &self,
        packed: Vec<Bound<'_, PyBytes>>,
        tables: Vec<Vec<(u32, u32)>>,
        written: (u32, u32, u32),
    ) -> PyResult<Vec<(String, String)>> {
        fn all<R: Rules>(
            _: &R,
            layout: &Layout,
            packed: &[Bound<'_, PyBytes>],
        ) -> Option<Vec<(String, String)>> {
            packed.iter().map(|each| document::<R>(each.as_bytes(), layout)).collect()
        }
        let layout = layout_of(tables, written)?;
        let documents = whichever!(&self.0, rules => all(rules, &layout, &packed));
        documents.ok_or_else(|| PyValueError::new_err("what is packed is neither a node nor a page"))
    }

    fn terms(
        &self,
        signatures: &[u8],
        tables: Vec<Vec<(u32, u32)>>,
        written: (u32, u32, u32),
        is_indexed: bool,
    ) -> PyResult<Vec<Vec<String>>> {
        fn all<R: Rules>(_: &R, layout: &Layout, signatures: &[u8], is_indexed: bool) -> Vec<Vec<String>> {
            let signatures = signatures.chunks_exact(R::SIZE).map(R::read);
            signatures.map(|each| layout.terms::<R>(&each, is_indexed)).collect()
        }
        let layout = layout_of(tables, written)?;
        Ok(whichever!(&self.0, rules => all(rules, &layout, signatures, is_indexed)))
    }

    fn compare(&self, one: &[u8], other: &[u8]) -> PyResult<[Column; 6]> {
        let no_pairs = || PyValueError::new_err("there are no pairs of texts to compare");
        let Either::Agreement(ByAgreement { agreement, .. }) = &self.0 else { return Err(no_pairs()) };
        if one.len() != other.len() {
            return Err(no_pairs());
        }
        let texts = |bytes: &[u8]| bytes.chunks_exact(ByAgreement::SIZE).map(ByAgreement::read).collect();
        let (ones, others): (Vec<Text>, Vec<Text>) = (texts(one), texts(other));
        let pairs = ones.iter().zip(&others);
        let compared: Vec<Comparison> = pairs.map(|(one, other)| agreement.compare(one, other)).collect();
        let shares = |of: fn(&Comparison) -> f64| column(compared.iter().map(of));
        let flags = |of: fn(&Comparison) -> bool| column(compared.iter().map(of));
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

/// A forest, and what is still to be settled of it, until the first batch.
struct Forest<R: Rules> {
    nodes: Core<R>,
    loading: Option<Loader>,
}

impl<R: Rules> Forest<R> {
    fn new(rules: R, aging: Aging) -> Forest<R> {
        Forest { nodes: Core::new(rules, aging), loading: None }
    }

    fn load(&mut self, packed: &[&[u8]], live_since_ms: i64) {
        let loading = self.loading.get_or_insert_with(|| Loader::new(&self.nodes));
        let records = packed.iter().filter_map(|bytes| Record::unpack::<R>(bytes));
        records.for_each(|record| self.nodes.load(loading, record, live_since_ms));
    }

    fn load_logs(&mut self, logs: &[&[u8]]) {
        let loading = self.loading.get_or_insert_with(|| Loader::new(&self.nodes));
        let entries = logs.iter().flat_map(|log| Entry::read_all::<R>(log));
        entries.for_each(|entry| self.nodes.load_entry(loading, entry));
    }

    fn missing(&self) -> (Vec<Column>, Vec<Column>) {
        let written = |id: Id| {
            let mut bytes = Vec::new();
            write_id::<R>(id, &mut bytes);
            bytes
        };
        let (roots, nodes) = self.loading.as_ref().map(Loader::missing).unwrap_or_default();
        (roots.into_iter().map(written).collect(), nodes.into_iter().map(written).collect())
    }

    fn settle(&mut self, live_since_ms: i64) {
        if let Some(loading) = &mut self.loading {
            self.nodes.settle(loading, live_since_ms);
        }
    }

    fn living(&self, log: &[u8], live_since_ms: i64) -> Vec<Column> {
        let records = Entry::read_all::<R>(log).filter_map(|entry| match entry {
            Entry::Record(record) => self.nodes.current(&record, live_since_ms),
            Entry::Refreshed { .. } => None,
        });
        records.map(|record| record.pack::<R>()).collect()
    }

    /// Begins a step, and assigns arrivals; None if the columns differ in length.
    fn assign(
        &mut self,
        [signatures, exist, pages, times_ms]: [&[u8]; 4],
        (seq, time_ms, origin_ms): Numbers,
        now_ms: i64,
    ) -> Option<Outcome> {
        let (pages, arrival_times): (Vec<u64>, Vec<i64>) = (numbers(pages), numbers(times_ms));
        let lengths = [exist.len(), pages.len(), arrival_times.len()];
        if lengths.iter().any(|length| length * R::SIZE != signatures.len()) {
            return None;
        }
        self.loading = None;
        self.nodes.begin();
        let signatures = signatures.chunks_exact(R::SIZE).zip(exist);
        let arrivals = signatures.zip(pages.iter().zip(&arrival_times));
        let arrivals = arrivals.map(|((signature, exists), (page, time_ms))| Arrival {
            signature: (*exists != 0).then(|| R::read(signature)),
            page: *page,
            time_ms: *time_ms,
        });
        let mut state = State { seq, time_ms, origin_ms };
        let assigned = self.nodes.assign(arrivals, &mut state, now_ms);
        self.nodes.end(state.live_since_ms(&self.nodes.aging));
        let (mut ids, mut roots, mut signatures) = (Vec::new(), Vec::new(), Vec::new());
        for row in assigned.iter().map(|each| each.row) {
            if row == NONE {
                ids.resize(ids.len() + R::ID_BYTES, 0);
                roots.resize(roots.len() + R::ID_BYTES, 0);
                signatures.resize(signatures.len() + R::SIZE, 0);
            } else {
                write_id::<R>(self.nodes.id(row), &mut ids);
                write_id::<R>(self.nodes.id(self.nodes.node(row).root), &mut roots);
                signatures.extend_from_slice(bytes_of(self.nodes.index.signature(row)));
            }
        }
        let (kinds, times_ms) =
            (assigned.iter().map(|each| each.kind as u8), assigned.iter().map(|each| each.time_ms));
        let (kinds, times_ms) = (kinds.collect(), column(times_ms));
        let (mut written, mut log) = (Vec::new(), Vec::new());
        for (record, is_refreshed) in self.nodes.written(&pages, &assigned) {
            written.push(record.pack::<R>());
            Entry::write::<R>(&record, is_refreshed, &mut log);
        }
        let state = (state.seq, state.time_ms, state.origin_ms);
        Some((kinds, ids, roots, times_ms, signatures, written, log, state))
    }
}

/// A forest in memory. Threads may share it: one waits for the other.
#[pyclass(frozen, module = "esdedup._core")]
pub struct Nodes(Shared<Either<Forest<ByDistance>, Forest<ByAgreement>>>);

#[pymethods]
impl Nodes {
    #[new]
    fn new(relation: &Relation, retention_ms: i64, granularity_ms: i64) -> Nodes {
        let aging = Aging { retention_ms, granularity_ms };
        let forest = match relation.0 {
            Either::Distance(rules) => Either::Distance(Forest::new(rules, aging)),
            Either::Agreement(rules) => Either::Agreement(Forest::new(rules, aging)),
        };
        Nodes(Shared::new("the forest in memory", forest))
    }

    fn load(&self, py: Python<'_>, packed: Vec<Bound<'_, PyBytes>>, live_since_ms: i64) -> PyResult<()> {
        let packed: Vec<&[u8]> = packed.iter().map(|each| each.as_bytes()).collect();
        self.0.with(py, |forest| whichever!(forest, forest => forest.load(&packed, live_since_ms)))
    }

    fn missing(&self, py: Python<'_>) -> PyResult<(Vec<Column>, Vec<Column>)> {
        self.0.with(py, |forest| whichever!(forest, forest => forest.missing()))
    }

    fn load_logs(&self, py: Python<'_>, logs: Vec<Bound<'_, PyBytes>>) -> PyResult<()> {
        let logs: Vec<&[u8]> = logs.iter().map(|each| each.as_bytes()).collect();
        self.0.with(py, |forest| whichever!(forest, forest => forest.load_logs(&logs)))
    }

    fn settle(&self, py: Python<'_>, live_since_ms: i64) -> PyResult<()> {
        self.0.with(py, |forest| whichever!(forest, forest => forest.settle(live_since_ms)))
    }

    fn living(&self, py: Python<'_>, log: &[u8], live_since_ms: i64) -> PyResult<Vec<Column>> {
        self.0.with(py, |forest| whichever!(forest, forest => forest.living(log, live_since_ms)))
    }

    #[allow(clippy::too_many_arguments)] // columns of arrivals
    fn assign(
        &self,
        py: Python<'_>,
        signatures: &[u8],
        exist: &[u8],
        pages: &[u8],
        times_ms: &[u8],
        state: Numbers,
        now_ms: i64,
    ) -> PyResult<Outcome> {
        let columns = [signatures, exist, pages, times_ms];
        let found =
            self.0.with(py, |forest| whichever!(forest, forest => forest.assign(columns, state, now_ms)))?;
        found.ok_or_else(|| PyValueError::new_err("the columns of arrivals differ in length"))
    }

    fn keep(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, |forest| whichever!(forest, forest => forest.nodes.keep()))
    }

    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, |forest| whichever!(forest, forest => forest.nodes.undo()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |forest| whichever!(forest, forest => forest.nodes.index.len()))
    }

    #[getter]
    fn lone_page_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |forest| whichever!(forest, forest => forest.nodes.lone_page_count()))
    }

    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |forest| whichever!(forest, forest => forest.nodes.size_bytes()))
    }

    #[getter]
    fn depth(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |forest| whichever!(forest, forest => forest.nodes.depth()))
    }

    #[getter]
    fn is_torn(&self) -> bool {
        self.0.held.is_poisoned()
    }
}

/// Signatures by row, searched for those near others. Threads may share it: one waits for the other.
#[pyclass(frozen, module = "esdedup._core")]
pub struct NeighbourIndex(Shared<Either<Index<ByDistance>, Index<ByAgreement>>>);

#[pymethods]
impl NeighbourIndex {
    #[new]
    fn new(relation: &Relation) -> NeighbourIndex {
        let index = match relation.0 {
            Either::Distance(rules) => Either::Distance(Index::new(rules)),
            Either::Agreement(rules) => Either::Agreement(Index::new(rules)),
        };
        NeighbourIndex(Shared::new("the index in memory", index))
    }

    fn add(&self, py: Python<'_>, signatures: &[u8]) -> PyResult<()> {
        fn add_all<R: Rules>(index: &mut Index<R>, signatures: &[u8]) {
            for each in signatures.chunks_exact(R::SIZE) {
                index.add(R::read(each));
            }
        }
        self.0.with(py, |index| whichever!(index, index => add_all(index, signatures)))
    }

    fn find_pairs(&self, py: Python<'_>, signatures: &[u8]) -> PyResult<(Column, Column)> {
        fn pairs<R: Rules>(index: &Index<R>, signatures: &[u8]) -> Vec<(i64, i64)> {
            let (mut pairs, mut found) = (Vec::new(), Matches::default());
            for (at, signature) in (0..).zip(signatures.chunks_exact(R::SIZE)) {
                index.search(&R::read(signature), &mut found);
                pairs.extend(found.near.iter().map(|row| (at, i64::from(*row))));
            }
            pairs
        }
        let pairs = self.0.with(py, |index| whichever!(index, index => pairs(index, signatures)))?;
        Ok((column(pairs.iter().map(|pair| pair.0)), column(pairs.iter().map(|pair| pair.1))))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.with(py, |index| whichever!(index, index => index.len()))
    }

    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.with(py, |index| whichever!(index, index => index.size_bytes()))
    }
}
