//! Converting a MindSpore configuration to a session's request.

use std::path::{Path, PathBuf};

use opscope_capture::Purpose;
use opscope_config::dialect::mindspore::{self, MindSporeConfig};
use opscope_config::{ConfigEnvironment, ConfigError, ConfigIssue, Severity};
use opscope_dump::DumpRequest;
use opscope_store::atomic_file::PermissionModes;
use opscope_store::tree::mindspore::TreeTarget;
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;

use super::request::{one_line, tell};
use crate::os_error;

/// Names of the supported trees.
const TARGETS: [(&str, TreeTarget); 6] = [
    ("cpu", TreeTarget::Cpu),
    ("gpu", TreeTarget::Gpu),
    ("ascend-o0", TreeTarget::AscendKernels),
    ("ascend-o1", TreeTarget::AscendKernels),
    ("ascend-o2", TreeTarget::AscendGraph),
    ("ge", TreeTarget::GraphEngine),
];

/// The identity that a dump claims.
#[derive(Clone, Copy)]
pub(super) struct DumpOwner {
    pub(super) target: TreeTarget,
    pub(super) rank: u32,
    pub(super) device: u32,
}

impl DumpOwner {
    /// # Errors
    /// `ValueError` if there is no such target.
    pub(super) fn new(target: &str, rank: u32, device: u32) -> PyResult<DumpOwner> {
        let known = TARGETS.iter().find(|(name, _)| *name == target);
        let Some((_, target)) = known else {
            let names = TARGETS.map(|(name, _)| name).join(", ");
            let message = format!("target `{target}` is none of {names}");
            return Err(PyValueError::new_err(message));
        };
        Ok(DumpOwner {
            target: *target,
            rank,
            device,
        })
    }
}

/// Returns the request of a configuration; `None` if it requests nothing.
///
/// # Errors
///
/// `ValueError` for mistakes in it; `NotImplementedError` if only this project's engines support
/// the request.
pub(super) fn request(text: &str, place: DumpOwner, time: &str) -> PyResult<Option<DumpRequest>> {
    let dump = load(text, place)?.dump;
    let modes = PermissionModes::default();
    let request =
        dump.map(|dump| DumpRequest::from_mindspore(dump, place.rank, modes, time.to_owned()));
    let request = request.transpose();
    request.map_err(|error| PyValueError::new_err(one_line(error)))
}

fn load(text: &str, place: DumpOwner) -> PyResult<MindSporeConfig> {
    let environment = ConfigEnvironment {
        device_id: place.device,
        ..ConfigEnvironment::of_process()?
    };
    let config = mindspore::load(text, place.target, &environment).map_err(|issues| {
        let errors = issues.iter().filter(|i| i.severity == Severity::Error);
        PyValueError::new_err(errors.map(told).collect::<Vec<_>>().join("; "))
    })?;
    let purpose = config.dump.as_ref().map(|dump| dump.purpose);
    if purpose == Some(Purpose::Overflow) && !place.target.has_ranks() {
        return Err(PyNotImplementedError::new_err(
            "`op_debug_mode` 3 of whole graphs detects overflowing operators; graphs of PyTorch support that on the \
             targets gpu, ascend-o0 and ascend-o1 only",
        ));
    }
    Ok(config)
}

/// Returns the text of an issue, in MindSpore's wording if it has one.
fn told(issue: &ConfigIssue) -> String {
    match &issue.vendor_text {
        Some(text) => format!("{} ({text})", tell(issue)),
        None => tell(issue),
    }
}

/// Whether a MindSpore configuration requests a dump, and warnings; raises its mistakes.
#[pyfunction]
pub(super) fn check_mindspore_json(
    text: &str,
    target: &str,
    device: u32,
) -> PyResult<(bool, Vec<String>)> {
    let place = DumpOwner::new(target, 0, device)?;
    let warnings = load(text, place)?.issues.iter().map(tell).collect();
    // This request creates nothing, so it needs no time for a directory name.
    let is_asked = request(text, place, "")?.is_some();
    Ok((is_asked, warnings))
}

/// The text of a configuration file.
#[pyfunction]
pub(super) fn read_configuration(path: PathBuf) -> PyResult<String> {
    opscope_config::read_text(&path).map_err(|error| {
        if let ConfigError::Io { .. } = &error {
            return os_error::of_chain(&error, "cannot read the configuration", Some(&path));
        }
        let path = path.display();
        PyValueError::new_err(one_line(format_args!(
            "the configuration `{path}` cannot be read: {error}"
        )))
    })
}

/// Raises if the file name in `MINDSPORE_DUMP_CONFIG` is invalid.
#[pyfunction]
pub(super) fn check_mindspore_file(path: &str) -> PyResult<()> {
    mindspore::check_file_name(Path::new(path))
        .map_err(|issue| PyValueError::new_err(one_line(format_args!("{path}: {}", told(&issue)))))
}
