//! The extension module `esdedup._core`. Its functions take and return strings and bytes, and release the
//! interpreter's lock while they work.
//!
//! `esdedup/_core.pyi` documents the arguments and the result of each function.

mod forest;
mod learner;
mod shared;

use std::borrow::Cow;

use bytemuck::Zeroable;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use learner::PyPassageFilter;

use crate::batch::{Fault, each, guarded};
use crate::characters::Point;
use crate::columns::{Column, column, numbers};
use crate::markup::visible_beginning;
use crate::normal_form::{normalise, normalise_line, to_string};
use crate::parsed::{ParseRules, ParsedSentence, ParsedText, sentence_places};
use crate::passages::Passage;
use crate::runs::{Overlap, overlap};
use crate::sentences::{Sentence, longest, with_rows_joined};
use crate::signature::{SignatureRules, Text, hashed_tokens, signature};
use crate::surrogates::{StandIns, comparable};
use crate::tokens::{CharacterHash, USUAL_HASH, units};

// For each text: a string, the number of letters, and the fault if processing failed.
type Represented = (Vec<String>, Column, Vec<String>);
// For each passage: the hash, the number of letters, and whether it is prose and has figures.
type PassageRow = (u64, usize, bool, bool);
type Strings<'py> = Vec<Bound<'py, PyString>>;

/// Parsed texts, stored here while Python decides which of their passages to omit.
#[pyclass(frozen, module = "esdedup._core")]
struct Parsed {
    texts: Vec<ParsedText>,
    /// For each text, the source line where parsing panicked, or "" if parsing succeeded. A text that failed is
    /// treated as empty.
    faults: Vec<String>,
    /// The number of threads that work on the texts.
    threads: usize,
}

#[pymethods]
impl Parsed {
    fn __len__(&self) -> usize {
        self.texts.len()
    }

    /// Creates texts that have only a content hash and passages.
    #[staticmethod]
    fn of_passages(texts: Vec<(u64, Vec<PassageRow>)>) -> Parsed {
        let passage =
            |(hash, letters, is_prose, has_figures)| Passage { hash, letters, is_prose, has_figures };
        let parsed = texts.into_iter().map(|(content_hash, passages)| {
            let passages = passages.into_iter().map(passage).collect();
            ParsedText { passages, content_hash, ..ParsedText::default() }
        });
        let texts: Vec<ParsedText> = parsed.collect();
        Parsed { faults: vec![String::new(); texts.len()], texts, threads: 1 }
    }

    #[getter]
    fn faults(&self) -> Vec<String> {
        self.faults.clone()
    }

    #[getter]
    fn content_hashes(&self) -> Column {
        column(self.texts.iter().map(|text| text.content_hash))
    }

    #[getter]
    fn are_cut(&self) -> Column {
        column(self.texts.iter().map(|text| text.is_cut))
    }

    #[getter]
    fn units(&self) -> Column {
        column(self.texts.iter().map(|text| units(&text.tokens) as i64))
    }

    #[getter]
    fn passages(&self) -> (Column, Column, Column, Column, Column) {
        let all = || self.texts.iter().flat_map(|text| &text.passages);
        let flag = |of: fn(&Passage) -> bool| column(all().map(of));
        let texts = self.texts.iter().enumerate();
        (
            column(all().map(|each| each.hash)),
            column(all().map(|each| each.letters as i64)),
            flag(|each| each.is_prose),
            flag(|each| each.has_figures),
            column(texts.flat_map(|(at, text)| std::iter::repeat_n(at as i64, text.passages.len()))),
        )
    }

    fn left_out(&self, py: Python<'_>, filter: Option<&PyPassageFilter>) -> PyResult<Column> {
        Ok(column(filter.map_or(Ok(Vec::new()), |filter| filter.omitted(py, &self.texts))?))
    }

    fn longest_sentences(&self, py: Python<'_>, omitted: &[u8], max_length: usize) -> PyResult<Represented> {
        self.represented(py, omitted, |points, sentences| {
            let joined = with_rows_joined(points, sentences);
            longest(&joined, |each| each.letters).map_or(String::new(), |each| {
                to_string(&points[each.start..each.end.min(each.start.saturating_add(max_length))])
            })
        })
    }

    fn whole_texts(&self, py: Python<'_>, omitted: &[u8]) -> PyResult<Represented> {
        self.represented(py, omitted, |points, _| to_string(&points[..points.len() - 1]))
    }

    fn longest_of_halves(
        &self,
        py: Python<'_>,
        omitted: &[u8],
        max_sentence_length: usize,
    ) -> PyResult<Vec<Vec<String>>> {
        let texts = self.with_omitted(omitted)?;
        results_of(py, &texts, |(text, omitted)| longest_of_halves(text, omitted, max_sentence_length))
    }

    fn overlap(
        &self,
        py: Python<'_>,
        omitted: &[u8],
        other: &Parsed,
        omitted_of_other: &[u8],
    ) -> PyResult<Vec<[Overlap; 2]>> {
        let pairs: Vec<_> =
            self.with_omitted(omitted)?.into_iter().zip(other.with_omitted(omitted_of_other)?).collect();
        results_of(py, &pairs, |((one, omitted), (other, omitted_of_other))| {
            let (one, other) = (one.remaining_tokens(omitted), other.remaining_tokens(omitted_of_other));
            overlap(&one, &other)
        })
    }
}

impl Parsed {
    /// Returns each text with flags for its omitted passages. `omitted` has a byte per passage, or is empty.
    fn with_omitted(&self, omitted: &[u8]) -> PyResult<Vec<(&ParsedText, Vec<bool>)>> {
        let count: usize = self.texts.iter().map(|text| text.passages.len()).sum();
        if !omitted.is_empty() && omitted.len() != count {
            return Err(PyValueError::new_err(format!("{} flags for {count} passages", omitted.len())));
        }
        let mut flags = omitted.iter().map(|&each| each != 0);
        let texts = self.texts.iter().map(|text| (text, flags.by_ref().take(text.passages.len()).collect()));
        Ok(texts.collect())
    }

    /// Returns the result of `work` for each text and its omitted passages, or the default for a text that fails; and
    /// each text's fault, from this call or from parsing.
    fn of_each<T: Default + Send>(
        &self,
        py: Python<'_>,
        omitted: &[u8],
        work: impl Fn(&ParsedText, &[bool]) -> T + Send + Sync,
    ) -> PyResult<(Vec<T>, Vec<String>)> {
        let texts = self.with_omitted(omitted)?;
        let found = py.detach(|| each(&texts, self.threads, |(text, omitted)| work(text, omitted)));
        let all = found.into_iter().zip(&self.faults).map(|(result, before)| match result {
            Ok(found) => (found, before.clone()),
            Err(Fault(place)) => (T::default(), place),
        });
        Ok(all.unzip())
    }

    /// Returns, for each text, the string that `string` makes from its remaining passages, their number of letters, and
    /// the fault.
    fn represented(
        &self,
        py: Python<'_>,
        omitted: &[u8],
        string: impl Fn(&[Point], &[Sentence]) -> String + Send + Sync,
    ) -> PyResult<Represented> {
        let (found, faults) = self.of_each(py, omitted, |text, omitted| {
            let (points, sentences) = text.remaining_points(omitted);
            let letters: usize = sentences.iter().map(|each| each.letters).sum();
            (string(&points, &sentences), letters as i64)
        })?;
        let (strings, letters): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        Ok((strings, column(letters), faults))
    }
}

#[pyfunction]
#[pyo3(signature = (texts, max_length, keep_points = false, character_hash = None, threads = 1))]
fn parse(
    py: Python<'_>,
    texts: Strings<'_>,
    max_length: usize,
    keep_points: bool,
    character_hash: Option<(u64, u64)>,
    threads: usize,
) -> PyResult<Parsed> {
    let hash = character_hash.map_or(*USUAL_HASH, |(factor, offset)| CharacterHash::new(factor, offset));
    let rules = ParseRules { max_length, are_visible: false, keep_points, hash };
    let texts = utf8(&texts)?;
    let (texts, faults) = py.detach(|| {
        let parsed = each(&texts, threads, |text| ParsedText::of(text, &rules));
        let whole = parsed.into_iter().map(|result| match result {
            Ok(text) => (text, String::new()),
            Err(Fault(place)) => (ParsedText::of("", &rules), place),
        });
        whole.unzip()
    });
    Ok(Parsed { texts, faults, threads })
}

#[pyfunction]
fn fingerprint(
    py: Python<'_>,
    texts: Strings<'_>,
    rules: (usize, usize, usize),
    filter: Option<&PyPassageFilter>,
    character_hash: Option<(u64, u64)>,
    threads: usize,
) -> PyResult<([Column; 6], Vec<String>)> {
    let (max_length, min_letters, max_sentence_length) = rules;
    let parsed = parse(py, texts, max_length, false, character_hash, threads)?;
    let rules = SignatureRules { min_letters, max_sentence_length };
    let (found, faults) = parsed.of_each(py, &parsed.left_out(py, filter)?, |text, omitted| {
        let (found, letters) = signature(text, omitted, rules);
        (found, letters, text.letters() - letters, text.content_hash)
    })?;
    let columns = [
        column(found.iter().map(|each| each.0.unwrap_or(Text::zeroed()))),
        column(found.iter().map(|each| each.0.is_some())),
        column(found.iter().map(|each| each.1 as i64)),
        column(found.iter().map(|each| each.2 as i64)),
        parsed.are_cut(),
        column(found.iter().map(|each| each.3)),
    ];
    Ok((columns, faults))
}

/// Parses one text and returns its visible text, the parsed text, and the starts and ends of its passages.
#[pyfunction]
fn locate<'py>(
    py: Python<'py>,
    text: Bound<'py, PyString>,
    max_length: usize,
) -> PyResult<(Bound<'py, PyString>, Parsed, Column, Column)> {
    let visible = visible_text(py, text, max_length)?;
    let rules = ParseRules { max_length, are_visible: true, keep_points: false, hash: *USUAL_HASH };
    let (parsed, places) = result_of(py, &visible, |text| {
        let parsed = ParsedText::of(text, &rules);
        // Characters after the first `max_length` are not in the parsed text.
        let end = text.char_indices().nth(max_length).map_or(text.len(), |(end, _)| end);
        let places = sentence_places(&text[..end], &parsed);
        (parsed, places)
    })?;
    Ok((
        visible,
        Parsed { texts: vec![parsed], faults: vec![String::new()], threads: 1 },
        column(places.iter().map(|(start, _)| *start as i64)),
        column(places.iter().map(|(_, end)| *end as i64)),
    ))
}

#[pyfunction]
fn visible_text<'py>(
    py: Python<'py>,
    text: Bound<'py, PyString>,
    max_length: usize,
) -> PyResult<Bound<'py, PyString>> {
    if text.to_str().is_ok() {
        let visible = result_of(py, &text, |text| visible_beginning(text, max_length).into_owned())?;
        return Ok(PyString::new(py, &visible));
    }
    let codes = code_points(&text)?;
    let stand_ins = StandIns::of(&codes);
    let text = stand_ins.put_into(&codes);
    let visible = py.detach(|| guarded(|| visible_beginning(&text, max_length).into_owned()));
    let visible = visible.map_err(|fault| failed(py, 0, fault))?;
    let bytes: Vec<u8> = stand_ins.taken_out(&visible).into_iter().flat_map(u32::to_le_bytes).collect();
    let text = PyBytes::new(py, &bytes).call_method1("decode", ("utf-32-le", "surrogatepass"))?;
    Ok(text.cast_into()?)
}

/// Removes the markup of raw texts and normalises them. Returns the results, and which texts were truncated.
#[pyfunction(name = "normalise")]
fn normal_texts(py: Python<'_>, texts: Strings<'_>, max_length: usize) -> PyResult<(Vec<String>, Column)> {
    let texts = utf8(&texts)?;
    let (strings, are_cut): (Vec<_>, Vec<_>) = results_of(py, &texts, |text| {
        let mut points = Vec::new();
        let is_cut = normalise(&visible_beginning(text, max_length), max_length, &mut points);
        (to_string(&points[..points.len() - 1]), is_cut)
    })?
    .into_iter()
    .unzip();
    Ok((strings, column::<bool>(are_cut)))
}

#[pyfunction]
fn normal_form(py: Python<'_>, text: Bound<'_, PyString>) -> PyResult<String> {
    result_of(py, &text, |text| {
        let mut points = Vec::new();
        normalise_line(text, &mut points);
        to_string(&points)
    })
}

#[pyfunction]
fn words(py: Python<'_>, text: Bound<'_, PyString>) -> PyResult<Vec<String>> {
    result_of(py, &text, |text| crate::tokens::words(text).into_iter().map(str::to_owned).collect())
}

#[pyfunction]
fn letters(py: Python<'_>, text: Bound<'_, PyString>) -> PyResult<String> {
    result_of(py, &text, crate::tokens::letters)
}

/// Returns the simhash of each group of weighted hashes. `starts` has the start of each group, ascending from 0.
#[pyfunction]
fn weighted_simhashes(py: Python<'_>, hashes: &[u8], weights: &[u8], starts: &[u8]) -> PyResult<Column> {
    let (hashes, weights, starts): (Vec<u64>, Vec<i64>, Vec<u64>) =
        (numbers(hashes), numbers(weights), numbers(starts));
    let starts = || starts.iter().map(|start| *start as usize);
    let groups: Vec<_> = starts().zip(starts().skip(1).chain([hashes.len()])).collect();
    if weights.len() != hashes.len() || groups.iter().any(|(start, end)| start > end || *end > hashes.len()) {
        return Err(PyValueError::new_err("weights or groups do not match the hashes"));
    }
    let weighted: Vec<_> = hashes.into_iter().zip(weights).collect();
    let found = results_of(py, &groups, |(start, end)| {
        crate::hashing::weighted_simhash(weighted[*start..*end].iter().copied())
    })?;
    Ok(column(found))
}

/// The module `esdedup._core`.
#[pymodule]
#[pyo3(name = "_core")]
mod module {
    #[pymodule_export]
    use super::forest::{NeighbourIndex, PyNodes, PyRelation};
    #[pymodule_export]
    use super::learner::{PyChanges, PyLearner, PyOverrideTable, PyPassageFilter};
    #[pymodule_export]
    use super::{
        Parsed, fingerprint, letters, locate, normal_form, normal_texts, parse, visible_text,
        weighted_simhashes, words,
    };
}

fn longest_of_halves(text: &ParsedText, omitted: &[bool], max_length: usize) -> Vec<String> {
    let sentences = text.remaining_sentences(omitted);
    let chosen = crate::sentences::longest_of_halves(&sentences, ParsedSentence::letters).map(|each| {
        let hashed = hashed_tokens(text, each, max_length);
        // The sentence is cut before the first token that is not hashed.
        let is_cut = hashed.len() < each.tokens().len();
        let next = each.tokens().start + hashed.len();
        let end = if is_cut { text.tokens[next].start as usize } else { each.sentence.end };
        to_string(&text.points[each.sentence.start..end])
    });
    chosen.collect()
}

fn result_of<T: Send>(
    py: Python<'_>,
    text: &Bound<'_, PyString>,
    work: impl Fn(&str) -> T + Send + Sync,
) -> PyResult<T> {
    let texts = utf8(std::slice::from_ref(text))?;
    Ok(results_of(py, &texts, |text| work(text))?.remove(0))
}

/// Returns the results of `work` for the items, or the first fault as an error.
fn results_of<I: Sync, T: Send>(
    py: Python<'_>,
    items: &[I],
    work: impl Fn(&I) -> T + Send + Sync,
) -> PyResult<Vec<T>> {
    let found = py.detach(|| each(items, 1, work));
    let found = found.into_iter().enumerate();
    found.map(|(position, result)| result.map_err(|fault| failed(py, position, fault))).collect()
}

/// Returns strings as UTF-8: borrowed, or a slow copy if a string has lone surrogates.
fn utf8<'a>(texts: &'a [Bound<'_, PyString>]) -> PyResult<Vec<Cow<'a, str>>> {
    let borrowed = texts.iter().map(|text| match text.to_str() {
        Ok(plain) => Ok(Cow::Borrowed(plain)),
        Err(_) => Ok(Cow::Owned(comparable(&code_points(text)?))),
    });
    borrowed.collect()
}

fn code_points(text: &Bound<'_, PyString>) -> PyResult<Vec<u32>> {
    let encoded = text.call_method1("encode", ("utf-32-le", "surrogatepass"))?;
    let bytes: &[u8] = encoded.extract()?;
    Ok(bytes.chunks_exact(4).map(|each| u32::from_le_bytes([each[0], each[1], each[2], each[3]])).collect())
}

/// Converts a fault to `esdedup.errors.TextFailed`.
fn failed(py: Python<'_>, position: usize, Fault(place): Fault) -> PyErr {
    let raised = || -> PyResult<PyErr> {
        let class = py.import("esdedup.errors")?.getattr("TextFailed")?;
        Ok(PyErr::from_value(class.call1((format!("text {}", position + 1), place))?))
    };
    raised().unwrap_or_else(|error| error)
}
