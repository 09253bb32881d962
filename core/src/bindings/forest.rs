//! A forest in memory for Python: one call for each batch of arrivals.

use bytemuck::bytes_of;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::shared::Shared;
use crate::columns::{Column, column, numbers};
use crate::forest::agreement::{Agreement, ByAgreement, Comparison, Text};
use crate::forest::documents::{Layout, document, hex};
use crate::forest::index::{Index, Matches};
use crate::forest::laws::Arrival;
use crate::forest::loading::Loader;
use crate::forest::nodes::Nodes as Core;
use crate::forest::records::{Entry, written_ids};
use crate::forest::relation::{ByDistance, Relation as Rules};
use crate::forest::table::NONE;
use crate::forest::times::{Aging, State};

type Numbers = (i64, i64, i64);
// Of an arrival: its kind; its node and that one's root; the time; its signature; and with which roots its root is linked.
type Answer = (u8, Option<String>, Option<String>, i64, Column, Option<String>, Option<String>);
type Outcome = (Vec<Answer>, Vec<Column>, Column, Numbers);

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

/// Does the same for each relation, with `R` as its type.
macro_rules! whichever {
    ($either:expr, $each:pat => $work:expr) => {
        match $either {
            Either::Distance($each) => {
                #[allow(dead_code)]
                type R = ByDistance;
                $work
            }
            Either::Agreement($each) => {
                #[allow(dead_code)]
                type R = ByAgreement;
                $work
            }
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
        whichever!(self.0, _ => {
            written_ids::<R>(signatures.chunks_exact(R::SIZE).map(|each| R::id(&R::read(each))))
        })
    }

    fn documents(&self, packed: Vec<Bound<'_, PyBytes>>, layout: Layout) -> PyResult<Vec<(String, String)>> {
        let packed = packed.iter().map(|each| each.as_bytes());
        let documents: Option<_> =
            whichever!(self.0, _ => packed.map(|each| document::<R>(each, &layout)).collect());
        documents.ok_or_else(|| PyValueError::new_err("what is packed is neither a node nor a page"))
    }

    fn terms(&self, signatures: &[u8], layout: Layout, is_indexed: bool) -> Vec<Vec<String>> {
        whichever!(self.0, _ => {
            let signatures = signatures.chunks_exact(R::SIZE).map(R::read);
            signatures.map(|each| layout.terms::<R>(&each, is_indexed)).collect()
        })
    }

    fn compare(&self, one: &[u8], other: &[u8]) -> PyResult<[Column; 12]> {
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
            shares(|each| each.replaced),
            shares(|each| each.replaceable),
            flags(|each| each.is_form),
            shares(|each| each.contained),
            shares(|each| each.share),
            flags(|each| each.agree),
            flags(|each| each.may_join),
            flags(|each| each.is_part),
            compared.iter().map(|each| each.by_member).collect(),
            compared.iter().map(|each| each.to_root).collect(),
        ])
    }
}

/// Begins a step, and assigns arrivals; None if the columns differ in length.
fn assign<R: Rules>(
    nodes: &mut Core<R>,
    [signatures, exist, pages, times_ms]: [&[u8]; 4],
    (seq, time_ms, origin_ms): Numbers,
    now_ms: i64,
) -> Option<Outcome> {
    let (pages, arrival_times): (Vec<u64>, Vec<i64>) = (numbers(pages), numbers(times_ms));
    let lengths = [exist.len(), pages.len(), arrival_times.len()];
    if lengths.iter().any(|length| length * R::SIZE != signatures.len()) {
        return None;
    }
    nodes.begin();
    let signatures = signatures.chunks_exact(R::SIZE).zip(exist);
    let arrivals = signatures.zip(pages.iter().zip(&arrival_times));
    let arrivals = arrivals.map(|((signature, exists), (page, time_ms))| Arrival {
        signature: (*exists != 0).then(|| R::read(signature)),
        page: *page,
        time_ms: *time_ms,
    });
    let mut state = State { seq, time_ms, origin_ms };
    let assigned = nodes.assign(arrivals, &mut state, now_ms);
    nodes.end(state.live_since_ms(&nodes.aging));
    let answers = assigned.iter().map(|each| {
        let (kind, row, time_ms) = (each.kind as u8, each.row, each.time_ms);
        if row == NONE {
            return (kind, None, None, time_ms, vec![0; R::SIZE], None, None);
        }
        let [node, root] = [row, nodes.node(row).root].map(|row| Some(hex::<R>(nodes.id(row))));
        let [whole, part] = nodes.links(row).map(|id| (id != 0).then(|| hex::<R>(id)));
        (kind, node, root, time_ms, bytes_of(nodes.index.signature(row)).to_vec(), whole, part)
    });
    let answers = answers.collect();
    let (mut written, mut log) = (Vec::new(), Vec::new());
    for (record, is_refreshed) in nodes.written(&pages, &assigned) {
        written.push(record.pack::<R>());
        Entry::write::<R>(&record, is_refreshed, &mut log);
    }
    let state = (state.seq, state.time_ms, state.origin_ms);
    Some((answers, written, log, state))
}

/// A forest in memory. Threads may share it: one waits for the other.
#[pyclass(frozen, subclass, module = "esdedup._core")]
pub struct Nodes(Shared<Held>);

struct Held {
    forest: Either<Core<ByDistance>, Core<ByAgreement>>,
    // A new one for each step.
    loader: Loader,
}

#[pymethods]
impl Nodes {
    #[new]
    fn new(relation: &Relation, retention_ms: i64, granularity_ms: i64) -> Nodes {
        let aging = Aging { retention_ms, granularity_ms };
        let forest = match relation.0 {
            Either::Distance(rules) => Either::Distance(Core::new(rules, aging)),
            Either::Agreement(rules) => Either::Agreement(Core::new(rules, aging)),
        };
        Nodes(Shared::new("the forest in memory", Held { forest, loader: Loader::default() }))
    }

    fn load(&self, py: Python<'_>, packed: Vec<Bound<'_, PyBytes>>, live_since_ms: i64) -> PyResult<()> {
        let packed: Vec<&[u8]> = packed.iter().map(|each| each.as_bytes()).collect();
        self.0.with(py, |Held { forest, loader }| {
            whichever!(forest, forest => loader.load(forest, &packed, live_since_ms));
        })
    }

    fn missing_columns(&self, py: Python<'_>) -> PyResult<(Column, Column)> {
        self.0.with(py, |Held { forest, loader }| whichever!(forest, _ => loader.missing::<R>()))
    }

    fn load_logs(&self, py: Python<'_>, logs: Vec<Bound<'_, PyBytes>>) -> PyResult<()> {
        let logs: Vec<&[u8]> = logs.iter().map(|each| each.as_bytes()).collect();
        self.0.with(py, |Held { forest, loader }| {
            whichever!(forest, forest => loader.load_logs(forest, &logs));
        })
    }

    #[pyo3(signature = (*, live_since_ms = i64::MIN))]
    fn settle(&self, py: Python<'_>, live_since_ms: i64) -> PyResult<()> {
        self.0.with(py, |Held { forest, loader }| {
            whichever!(forest, forest => loader.settle(forest, live_since_ms));
        })
    }

    fn living(&self, py: Python<'_>, log: &[u8], live_since_ms: i64) -> PyResult<Vec<Column>> {
        self.0.with(py, |Held { forest, .. }| whichever!(forest, forest => forest.living(log, live_since_ms)))
    }

    #[allow(clippy::too_many_arguments)] // columns of arrivals
    fn assign_columns(
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
        let found = self.0.with(py, |Held { forest, loader }| {
            *loader = Loader::default();
            whichever!(forest, forest => assign(forest, columns, state, now_ms))
        })?;
        found.ok_or_else(|| PyValueError::new_err("the columns of arrivals differ in length"))
    }

    fn contested_column(&self, py: Python<'_>) -> PyResult<Column> {
        self.0.with(
            py,
            |Held { forest, .. }| whichever!(forest, forest => written_ids::<R>(forest.contested())),
        )
    }

    fn keep(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, |Held { forest, .. }| whichever!(forest, forest => forest.keep()))
    }

    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, |Held { forest, .. }| whichever!(forest, forest => forest.undo()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |Held { forest, .. }| whichever!(forest, forest => forest.index.len()))
    }

    #[getter]
    fn lone_page_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |Held { forest, .. }| whichever!(forest, forest => forest.lone_page_count()))
    }

    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |Held { forest, .. }| whichever!(forest, forest => forest.size_bytes()))
    }

    #[getter]
    fn depth(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |Held { forest, .. }| whichever!(forest, forest => forest.depth()))
    }

    #[getter]
    fn is_torn(&self) -> bool {
        self.0.held.is_poisoned()
    }
}

/// Signatures by row, searched for those near others. Threads may share it: one waits for the other.
#[pyclass(frozen, subclass, module = "esdedup._core")]
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
        self.0.with(py, |index| {
            whichever!(index, index => {
                signatures.chunks_exact(R::SIZE).for_each(|each| _ = index.add(R::read(each)));
            });
        })
    }

    fn pair_columns(&self, py: Python<'_>, signatures: &[u8]) -> PyResult<(Column, Column)> {
        self.0.with(py, |index| {
            let (mut positions, mut rows, mut found) = (Vec::new(), Vec::new(), Matches::default());
            whichever!(index, index => {
                for (at, signature) in (0_i64..).zip(signatures.chunks_exact(R::SIZE)) {
                    index.search(&R::read(signature), &mut found);
                    let others = found.versions.iter().filter(|row| found.near.binary_search(row).is_err());
                    let near: Vec<_> = found.near.iter().chain(others).collect();
                    positions.extend(near.iter().map(|_| at));
                    rows.extend(near.into_iter().map(|row| i64::from(*row)));
                }
            });
            (column(positions), column(rows))
        })
    }

    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.with(py, |index| whichever!(index, index => index.size_bytes()))
    }
}
