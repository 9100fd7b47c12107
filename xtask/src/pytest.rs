//! Tests in Python.

use std::process::Command;
use std::thread::available_parallelism;

use anyhow::Result;

use crate::python;

/// Seconds after which a test counts as hung. The longest takes four minutes.
const HUNG_AFTER: u32 = 900;

/// How many tests run at once.
#[derive(Clone, Copy)]
pub(crate) enum AtOnce {
    /// One, as a cluster or a browser is shared.
    One,
    /// As many as there are processors.
    AllProcessors,
}

/// pytest for a folder, in a Python that has the packages of a requirements file.
///
/// A hung test ends its process, with the places where its threads were.
pub(crate) fn in_folder(requirements: &str, folder: &str, at_once: AtOnce) -> Result<Command> {
    let mut pytest = python::with_packages(requirements)?;
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    pytest.arg("-o").arg(format!("faulthandler_timeout={HUNG_AFTER}"));
    pytest.args(["-o", "faulthandler_exit_on_timeout=true"]);
    if let AtOnce::AllProcessors = at_once {
        let n_processes = available_parallelism()?.to_string();
        pytest.args(["-n", &n_processes, "--dist", "worksteal"]);
    }
    pytest.arg(folder);
    Ok(pytest)
}
