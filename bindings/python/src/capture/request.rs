//! What a session is to do: options of Python's, or an `acl.json`.

use std::path::PathBuf;

use opscope_capture::sink::Content;
use opscope_capture::{Plan, Sides, Steps};
use opscope_config::dialect::acl::{self, Mode};
use opscope_config::{Environment, Issue, Severity, check_nesting};
use opscope_store::file_format::stats_csv::Columns;
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;

/// What a session is to do.
pub(super) struct Request {
    pub(super) plan: Plan,
    pub(super) content: Content,
    /// The directory above that of the time.
    pub(super) place: PathBuf,
    /// Whether an `acl.json` asks for operators that belong to no model.
    pub(super) has_single_operators: bool,
}

impl Request {
    /// What options ask for.
    ///
    /// # Errors
    /// `ValueError` for a word that is none of those allowed.
    pub(super) fn of_options(
        place: PathBuf,
        data: &str,
        mode: &str,
        steps: Option<Vec<(u64, u64)>>,
        has_graph_inputs: bool,
    ) -> PyResult<Request> {
        let ranges = |steps: Vec<(u64, u64)>| {
            let ranges = steps.into_iter().map(|(first, last)| first..=last);
            Steps::in_ranges(ranges.collect())
        };
        Ok(Request {
            plan: Plan {
                sides: sides(mode)?,
                steps: steps.map_or_else(Steps::every, ranges),
                has_graph_inputs,
                ..Plan::everything()
            },
            content: content(data)?,
            place,
            has_single_operators: false,
        })
    }

    /// What an `acl.json` asks for; `None` if that is nothing.
    ///
    /// # Errors
    /// `ValueError` with what is wrong in it; `NotImplementedError` if it asks for a kind of dump that
    /// only an engine of this project can make.
    pub(super) fn of_acl_json(text: &str) -> PyResult<Option<Request>> {
        check_nesting(text).map_err(|issue| PyValueError::new_err(tell(&issue)))?;
        let environment = Environment::of_process()?;
        let config = acl::load(text, &environment).map_err(|issues| {
            let errors = issues.iter().filter(|i| i.severity == Severity::Error);
            PyValueError::new_err(errors.map(tell).collect::<Vec<_>>().join("; "))
        })?;
        let Some(dump) = config.dump else {
            return Ok(None);
        };
        if dump.mode != Mode::Operator {
            let kind = dump.mode.name();
            return Err(PyNotImplementedError::new_err(format!(
                "the acl.json asks for a dump of the kind `{kind}`; graphs of PyTorch are dumped by operator only"
            )));
        }
        let place = dump.places.into_iter().next();
        let place = place.ok_or_else(|| PyValueError::new_err("the acl.json names no place"))?;
        Ok(Some(Request {
            plan: dump.plan,
            content: dump.content,
            place,
            has_single_operators: dump.has_single_operators,
        }))
    }
}

/// Whether an `acl.json` asks for a dump; raises what is wrong with it.
#[pyfunction]
pub(super) fn check_acl_json(text: &str) -> PyResult<bool> {
    Request::of_acl_json(text).map(|request| request.is_some())
}

fn tell(issue: &Issue) -> String {
    let (item, message) = (&issue.item, &issue.message);
    match item.as_str() {
        "" => message.clone(),
        _ => format!("{item}: {message}"),
    }
}

fn content(data: &str) -> PyResult<Content> {
    match data {
        "tensor" => Ok(Content::Tensors),
        "stats" => Ok(Content::Statistics(Columns::Plain)),
        _ => Err(PyValueError::new_err(format!(
            "data `{data}` is neither `tensor` nor `stats`"
        ))),
    }
}

fn sides(mode: &str) -> PyResult<Sides> {
    match mode {
        "input" => Ok(Sides::Inputs),
        "output" => Ok(Sides::Outputs),
        "all" => Ok(Sides::Both),
        _ => Err(PyValueError::new_err(format!(
            "mode `{mode}` is neither `input` nor `output` nor `all`"
        ))),
    }
}
