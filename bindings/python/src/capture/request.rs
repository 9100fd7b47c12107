//! Requests to a session, from Python's options or an `acl.json`.

use std::path::PathBuf;

use opscope_capture::{FailureDetail, Plan, Purpose, SlotSides, Steps};
use opscope_config::dialect::acl::{self, AclContent, DumpMode};
use opscope_config::{ConfigEnvironment, ConfigIssue, Severity, check_nesting};
use opscope_dump::{DumpForm, DumpRequest, NativeContent, NativeOptions};
use opscope_store::file_format::stats_csv::StatsColumns;
use opscope_store::visible::visible;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The plan of a session without a configuration file: a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct SessionPlan {
    /// `tensor`, `stats` or `table`.
    data: String,
    /// `acl` or `native`.
    form: String,
    rank: u32,
    /// A name of [`PURPOSES`].
    purpose: String,
    /// `input`, `output` or `all`.
    mode: String,
    /// Pairs of a first and a last step; `None` for all.
    steps: Option<Vec<(u64, u64)>>,
    /// Whether a selected operator's graph inputs have separate records.
    has_graph_inputs: bool,
}

impl SessionPlan {
    /// The request of a dump below `place`.
    ///
    /// # Errors
    ///
    /// `ValueError` for a word that is not allowed.
    pub(super) fn request(self, place: PathBuf) -> PyResult<DumpRequest> {
        let form = self.form(place)?;
        let plan = Plan {
            purpose: of_name(&self.purpose)?,
            sides: sides(&self.mode)?,
            steps: self.steps.map_or_else(Steps::every, |steps| {
                let ranges = steps.into_iter().map(|(first, last)| first..=last);
                Steps::in_ranges(ranges.collect())
            }),
            has_graph_inputs: self.has_graph_inputs,
            ..Plan::everything()
        };
        Ok(DumpRequest {
            has_single_operators: false,
            ..DumpRequest::new(plan, form)
        })
    }

    fn form(&self, place: PathBuf) -> PyResult<DumpForm> {
        match &*self.form {
            "acl" => Ok(DumpForm::Acl {
                places: vec![place],
                content: content(&self.data, of_name(&self.purpose)?)?,
            }),
            "native" => Ok(DumpForm::Native(NativeOptions {
                places: vec![place],
                content: match content(&self.data, of_name(&self.purpose)?)? {
                    AclContent::Tensors => NativeContent::Tensors,
                    _ => NativeContent::Statistics,
                },
                rank: self.rank,
            })),
            form => Err(PyValueError::new_err(format!(
                "form `{form}` is neither `native` nor `acl`"
            ))),
        }
    }
}

/// Creates the request of an `acl.json`; `None` if it requests nothing.
///
/// # Errors
///
/// `ValueError` for mistakes in it.
pub(super) fn request_of_acl_json(text: &str) -> PyResult<Option<DumpRequest>> {
    // The vendor's library counts brackets before it parses, also those inside strings.
    check_nesting(text).map_err(|issue| PyValueError::new_err(tell(&issue)))?;
    let environment = ConfigEnvironment::of_process()?;
    let config = acl::load(text, &environment).map_err(|issues| {
        let errors = issues.iter().filter(|i| i.severity == Severity::Error);
        PyValueError::new_err(errors.map(tell).collect::<Vec<_>>().join("; "))
    })?;
    // A graph has no operators outside models.
    let dump = config
        .dump
        .filter(|dump| dump.mode != DumpMode::SingleOperators);
    let Some(dump) = dump else {
        return Ok(None);
    };
    if dump.places.is_empty() {
        return Err(PyValueError::new_err("the acl.json sets no path"));
    }
    Ok(Some(DumpRequest::from_acl(dump)))
}

/// Returns the purpose of an `acl.json`: `values`, `watch`, `overflow` or `exception_` with the
/// detail; `None` if it requests nothing. Raises its mistakes.
#[pyfunction]
pub(super) fn acl_json_purpose(text: &str) -> PyResult<Option<&'static str>> {
    let request = request_of_acl_json(text)?;
    Ok(request.map(|request| name_of(request.plan.purpose)))
}

/// Whether an `acl.json` requests a dump; raises its mistakes.
#[pyfunction]
pub(super) fn check_acl_json(text: &str) -> PyResult<bool> {
    request_of_acl_json(text).map(|request| request.is_some())
}

pub(super) fn tell(issue: &ConfigIssue) -> String {
    let (item, message) = (&issue.item, &issue.message);
    match item.as_str() {
        "" => one_line(message),
        _ => one_line(format_args!("{item}: {message}")),
    }
}

/// A message for an exception, escaped for terminals because it may contain text from files.
pub(super) fn one_line(message: impl std::fmt::Display) -> String {
    visible(&message.to_string()).into_owned()
}

/// Python's names of purposes.
const PURPOSES: [(&str, Purpose); 6] = [
    ("values", Purpose::Values),
    ("watch", Purpose::Watch),
    ("overflow", Purpose::Overflow),
    ("exception_brief", Purpose::Failures(FailureDetail::Brief)),
    ("exception_norm", Purpose::Failures(FailureDetail::Normal)),
    ("exception_detail", Purpose::Failures(FailureDetail::Full)),
];

fn of_name(name: &str) -> PyResult<Purpose> {
    let found = PURPOSES.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, purpose)| *purpose)
        .ok_or_else(|| PyValueError::new_err(format!("`{name}` is not a purpose of a dump")))
}

/// Returns Python's name of a purpose.
pub(super) fn name_of(purpose: Purpose) -> &'static str {
    let found = PURPOSES.iter().find(|(_, known)| *known == purpose);
    found.map_or("values", |(name, _)| name)
}

fn content(data: &str, purpose: Purpose) -> PyResult<AclContent> {
    match data {
        "tensor" => Ok(AclContent::Tensors),
        // Tables of steps are for sessions that write every record.
        "table" if purpose == Purpose::Values => Ok(AclContent::StepTable),
        "stats" | "table" => Ok(AclContent::Statistics(StatsColumns::Plain)),
        _ => Err(PyValueError::new_err(format!(
            "data `{data}` is neither `tensor` nor `stats` nor `table`"
        ))),
    }
}

fn sides(mode: &str) -> PyResult<SlotSides> {
    match mode {
        "input" => Ok(SlotSides::Inputs),
        "output" => Ok(SlotSides::Outputs),
        "all" => Ok(SlotSides::Both),
        _ => Err(PyValueError::new_err(format!(
            "mode `{mode}` is neither `input` nor `output` nor `all`"
        ))),
    }
}
