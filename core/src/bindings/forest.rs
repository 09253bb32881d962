//! Python's interface to a forest in memory, with one call per batch of arrivals.

use bytemuck::bytes_of;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::shared::Shared;
use crate::columns::{Column, column, numbers};
use crate::forest::agreement::{Agreement, ByAgreement};
use crate::forest::content_hashes::NO_HASH;
use crate::forest::documents::{Layout, document};
use crate::forest::index::{Index, Matches};
use crate::forest::laws::Arrival;
use crate::forest::loading::Loader;
use crate::forest::nodes::{Node, Nodes};
use crate::forest::records::{Entry, Record, entries, hex};
use crate::forest::relation::{ByDistance, Id, Relation};
use crate::forest::table::NONE;
use crate::forest::times::{Aging, NO_TIME, State};
use crate::signature::Text;

type Numbers = (i64, i64, i64);
// For an arrival: kind, id of its node, id of the root, time, signature, and the ids of the two roots linked with the
// root.
type Answer = (u8, Option<String>, Option<String>, i64, Column, Option<String>, Option<String>);
type Outcome = (Vec<Answer>, Vec<Column>, Column, Numbers);

/// Defines which signatures are near each other.
#[pyclass(frozen, name = "Relation", module = "esdedup._core")]
#[derive(Clone, Copy)]
pub struct PyRelation(Either<ByDistance, ByAgreement>);

/// A value for one of the two relations.
#[derive(Clone, Copy)]
enum Either<D, A> {
    Distance(D),
    Agreement(A),
}

/// The fields of a `StoredNode` or `StoredHash`.
#[derive(IntoPyObject)]
enum Stored {
    Node((String, String, Column, i64, i64, i64, String, i64, String, String)),
    Hash((String, Option<String>, i64)),
}

impl Stored {
    fn of<R: Relation>(record: Record<R::Signature>) -> Stored {
        match record {
            Record::Node { id, root, signature, node, links } => {
                let Node { seq, made_ms, seen_ms, hash, hash_seen_ms, .. } = node;
                let hash = if hash == NO_HASH { String::new() } else { format!("{hash:016x}") };
                let [id, root] = [id, root].map(hex::<R>);
                let [whole, part] = links.map(|id| if id == 0 { String::new() } else { hex::<R>(id) });
                let signature = bytes_of(&signature).to_vec();
                Stored::Node((id, root, signature, seq, made_ms, seen_ms, hash, hash_seen_ms, whole, part))
            }
            Record::Hash { hash, node, seen_ms } => {
                Stored::Hash((format!("{hash:016x}"), node.map(hex::<R>), seen_ms))
            }
        }
    }
}

/// Reads the fields of a `StoredNode` or `StoredHash` by position.
struct Fields<'a, 'py>(&'a Bound<'py, PyTuple>);

impl Fields<'_, '_> {
    /// Returns an id; None if the field is None, 0 if it is an empty string.
    fn id(&self, at: usize) -> PyResult<Option<Id>> {
        let hex: Option<String> = self.0.get_item(at)?.extract()?;
        let number = |hex: String| if hex.is_empty() { Ok(0) } else { Id::from_str_radix(&hex, 16) };
        hex.map(number).transpose().map_err(|_| unreadable())
    }

    fn hash(&self, at: usize) -> PyResult<u64> {
        self.id(at)?.and_then(|id| id.try_into().ok()).ok_or_else(unreadable)
    }

    fn number(&self, at: usize) -> PyResult<i64> {
        self.0.get_item(at)?.extract()
    }

    fn record<R: Relation>(&self) -> PyResult<Record<R::Signature>> {
        if self.0.len() == 3 {
            return Ok(Record::Hash { hash: self.hash(0)?, node: self.id(1)?, seen_ms: self.number(2)? });
        }
        let [seq, made_ms, seen_ms, hash_seen_ms] = [3, 4, 5, 7].map(|at| self.number(at));
        let [id, root, whole, part] = [0, 1, 8, 9].map(|at| self.id(at)?.ok_or_else(unreadable));
        let signature: Vec<u8> = self.0.get_item(2)?.extract()?;
        let signature = (signature.len() == R::SIZE).then(|| R::read(&signature)).ok_or_else(unreadable)?;
        let (hash, hash_seen_ms) = (self.hash(6)?, hash_seen_ms?);
        let node = Node { root: NONE, seq: seq?, made_ms: made_ms?, seen_ms: seen_ms?, hash, hash_seen_ms };
        Ok(Record::Node { id: id?, root: root?, signature, node, links: [whole?, part?] })
    }
}

/// An entry of a log: a packed node or content hash, or the id and times of a refreshed node.
#[derive(IntoPyObject)]
enum LogEntry {
    Stored(Column),
    Refreshed((String, i64, i64)),
}

/// Evaluates an expression in which `R` is the type of the relation in use.
macro_rules! dispatch {
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
impl PyRelation {
    #[new]
    #[pyo3(signature = (max_distance_bits, agreement))]
    fn new(max_distance_bits: u32, agreement: Option<Agreement>) -> PyRelation {
        PyRelation(match agreement {
            None => Either::Distance(ByDistance { max_distance_bits }),
            Some(agreement) => Either::Agreement(ByAgreement { max_distance_bits, agreement }),
        })
    }

    fn ids(&self, signatures: &[u8]) -> Vec<String> {
        dispatch!(self.0, _ => {
            signatures.chunks_exact(R::SIZE).map(|each| hex::<R>(R::id(&R::read(each)))).collect()
        })
    }

    fn pack(&self, stored: &Bound<'_, PyTuple>) -> PyResult<Column> {
        dispatch!(self.0, _ => Fields(stored).record::<R>().map(|record| record.pack::<R>()))
    }

    fn unpack(&self, packed: &[u8]) -> Option<Stored> {
        dispatch!(self.0, _ => Record::unpack::<R>(packed).map(Stored::of::<R>))
    }

    fn log(&self, packed: Vec<Bound<'_, PyBytes>>) -> PyResult<(Column, i64)> {
        let (mut log, mut latest_ms) = (Vec::new(), NO_TIME);
        dispatch!(self.0, _ => {
            for each in &packed {
                let record = Record::unpack::<R>(each.as_bytes()).ok_or_else(unreadable)?;
                Entry::write::<R>(&record, false, &mut log);
                latest_ms = latest_ms.max(record.seen_ms());
            }
        });
        Ok((log, latest_ms))
    }

    fn entries(&self, log: &[u8]) -> (Vec<LogEntry>, bool) {
        let mut read = 0;
        let found = dispatch!(self.0, _ => {
            let raw = entries::<R>(log).inspect(|(_, entry)| read += 1 + entry.len());
            let found = raw.filter_map(|each| match Entry::read::<R>(each)? {
                Entry::Record(_) => Some(LogEntry::Stored(each.1.to_vec())),
                Entry::Refreshed { id, seen_ms, hash_seen_ms } => {
                    Some(LogEntry::Refreshed((hex::<R>(id), seen_ms, hash_seen_ms)))
                }
            });
            found.collect()
        });
        (found, read == log.len())
    }

    fn documents(&self, packed: Vec<Bound<'_, PyBytes>>, layout: Layout) -> PyResult<Vec<(String, String)>> {
        let packed = packed.iter().map(|each| each.as_bytes());
        let documents: Option<_> =
            dispatch!(self.0, _ => packed.map(|each| document::<R>(each, &layout)).collect());
        documents.ok_or_else(unreadable)
    }

    fn terms(&self, signatures: &[u8], layout: Layout, is_indexed: bool) -> Vec<Vec<String>> {
        dispatch!(self.0, _ => {
            let signatures = signatures.chunks_exact(R::SIZE).map(R::read);
            signatures.map(|each| layout.terms::<R>(&each, is_indexed)).collect()
        })
    }

    fn are_equal(&self, one: &[u8], other: &[u8]) -> bool {
        dispatch!(self.0, _ => R::are_equal(&R::read(one), &R::read(other)))
    }

    fn have_common_key(&self, one: &[u8], other: &[u8]) -> bool {
        dispatch!(self.0, rules => {
            let (one, other) = (R::read(one), R::read(other));
            R::distinct(&one).any(|(_, key)| R::distinct(&other).any(|(_, its)| rules.in_common(key, its)))
        })
    }

    fn compare(&self, one: &[u8], other: &[u8]) -> PyResult<Column> {
        let (Either::Agreement(rules), true) = (&self.0, one.len() == other.len()) else {
            return Err(PyValueError::new_err("comparing needs an agreement and columns of equal length"));
        };
        let (ones, others): (Vec<Text>, Vec<Text>) = (numbers(one), numbers(other));
        Ok(column(ones.iter().zip(&others).map(|(one, other)| rules.agreement.compare(one, other))))
    }
}

fn unreadable() -> PyErr {
    PyValueError::new_err("the packed bytes are neither a node nor a content hash")
}

/// Begins a step and assigns arrivals; returns None if the columns differ in length.
fn assign<R: Relation>(
    nodes: &mut Nodes<R>,
    [signatures, exist, hashes, times_ms]: [&[u8]; 4],
    (seq, time_ms, origin_ms): Numbers,
    now_ms: i64,
) -> Option<Outcome> {
    let (hashes, arrival_times): (Vec<u64>, Vec<i64>) = (numbers(hashes), numbers(times_ms));
    let lengths = [exist.len(), hashes.len(), arrival_times.len()];
    if lengths.iter().any(|length| length * R::SIZE != signatures.len()) {
        return None;
    }
    nodes.begin();
    let signatures = signatures.chunks_exact(R::SIZE).zip(exist);
    let arrivals = signatures.zip(hashes.iter().zip(&arrival_times));
    let arrivals = arrivals.map(|((signature, exists), (&hash, &time_ms))| Arrival {
        signature: (*exists != 0).then(|| R::read(signature)),
        hash,
        time_ms,
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
    for (record, is_refreshed) in nodes.written(&hashes, &assigned) {
        written.push(record.pack::<R>());
        Entry::write::<R>(&record, is_refreshed, &mut log);
    }
    let state = (state.seq, state.time_ms, state.origin_ms);
    Some((answers, written, log, state))
}

/// A forest in memory. Threads may share it; only one call runs at a time.
#[pyclass(frozen, subclass, name = "Nodes", module = "esdedup._core")]
pub struct PyNodes(Shared<Forest>);

struct Forest {
    nodes: Either<Nodes<ByDistance>, Nodes<ByAgreement>>,
    // Each call of `assign_columns` creates a new loader.
    loader: Loader,
}

#[pymethods]
impl PyNodes {
    #[new]
    fn new(relation: &PyRelation, retention_ms: i64, granularity_ms: i64) -> PyNodes {
        let aging = Aging { retention_ms, granularity_ms };
        let nodes = match relation.0 {
            Either::Distance(rules) => Either::Distance(Nodes::new(rules, aging)),
            Either::Agreement(rules) => Either::Agreement(Nodes::new(rules, aging)),
        };
        PyNodes(Shared::new("the forest in memory", Forest { nodes, loader: Loader::default() }))
    }

    fn load(&self, py: Python<'_>, packed: Vec<Bound<'_, PyBytes>>, live_since_ms: i64) -> PyResult<()> {
        let packed: Vec<&[u8]> = packed.iter().map(|each| each.as_bytes()).collect();
        self.0.with(py, |Forest { nodes, loader }| {
            dispatch!(nodes, nodes => loader.load(nodes, &packed, live_since_ms));
        })
    }

    fn missing(&self, py: Python<'_>) -> PyResult<(Vec<String>, Vec<String>)> {
        self.0.with(py, |Forest { nodes, loader }| dispatch!(nodes, _ => loader.missing::<R>()))
    }

    fn load_logs(&self, py: Python<'_>, logs: Vec<Bound<'_, PyBytes>>) -> PyResult<()> {
        let logs: Vec<&[u8]> = logs.iter().map(|each| each.as_bytes()).collect();
        self.0.with(py, |Forest { nodes, loader }| {
            dispatch!(nodes, nodes => loader.load_logs(nodes, &logs));
        })
    }

    #[pyo3(signature = (*, live_since_ms = i64::MIN))]
    fn settle(&self, py: Python<'_>, live_since_ms: i64) -> PyResult<()> {
        self.0.with(py, |Forest { nodes, loader }| {
            dispatch!(nodes, nodes => loader.settle(nodes, live_since_ms));
        })
    }

    fn living(&self, py: Python<'_>, log: &[u8], live_since_ms: i64) -> PyResult<Vec<Column>> {
        self.0.with(py, |Forest { nodes, .. }| dispatch!(nodes, nodes => nodes.living(log, live_since_ms)))
    }

    #[allow(clippy::too_many_arguments)] // columns of arrivals
    fn assign_columns(
        &self,
        py: Python<'_>,
        signatures: &[u8],
        exist: &[u8],
        hashes: &[u8],
        times_ms: &[u8],
        state: Numbers,
        now_ms: i64,
    ) -> PyResult<Outcome> {
        let columns = [signatures, exist, hashes, times_ms];
        let found = self.0.with(py, |Forest { nodes, loader }| {
            *loader = Loader::default();
            dispatch!(nodes, nodes => assign(nodes, columns, state, now_ms))
        })?;
        found.ok_or_else(|| PyValueError::new_err("the columns of arrivals differ in length"))
    }

    fn contested(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.0.with(py, |Forest { nodes, .. }| {
            dispatch!(nodes, nodes => nodes.contested().into_iter().map(hex::<R>).collect())
        })
    }

    fn keep(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, |Forest { nodes, .. }| dispatch!(nodes, nodes => nodes.keep()))
    }

    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, |Forest { nodes, .. }| dispatch!(nodes, nodes => nodes.undo()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |Forest { nodes, .. }| dispatch!(nodes, nodes => nodes.index.len()))
    }

    #[getter]
    fn extra_hash_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |Forest { nodes, .. }| dispatch!(nodes, nodes => nodes.extra_hash_count()))
    }

    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |Forest { nodes, .. }| dispatch!(nodes, nodes => nodes.size_bytes()))
    }

    #[getter]
    fn depth(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.briefly(py, |Forest { nodes, .. }| dispatch!(nodes, nodes => nodes.depth()))
    }

    #[getter]
    fn is_broken(&self) -> bool {
        self.0.is_broken()
    }
}

/// Signatures by row, with a search for near signatures. Threads may share it; only one call runs at a time.
#[pyclass(frozen, subclass, module = "esdedup._core")]
pub struct NeighbourIndex(Shared<Either<Index<ByDistance>, Index<ByAgreement>>>);

#[pymethods]
impl NeighbourIndex {
    #[new]
    fn new(relation: &PyRelation) -> NeighbourIndex {
        let index = match relation.0 {
            Either::Distance(rules) => Either::Distance(Index::new(rules)),
            Either::Agreement(rules) => Either::Agreement(Index::new(rules)),
        };
        NeighbourIndex(Shared::new("the index in memory", index))
    }

    fn add(&self, py: Python<'_>, signatures: &[u8]) -> PyResult<()> {
        self.0.with(py, |index| {
            dispatch!(index, index => {
                signatures.chunks_exact(R::SIZE).for_each(|each| _ = index.add(R::read(each)));
            });
        })
    }

    fn pair_columns(&self, py: Python<'_>, signatures: &[u8]) -> PyResult<(Column, Column)> {
        self.0.with(py, |index| {
            let (mut positions, mut rows, mut found) = (Vec::new(), Vec::new(), Matches::default());
            dispatch!(index, index => {
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
        self.0.with(py, |index| dispatch!(index, index => index.size_bytes()))
    }
}
