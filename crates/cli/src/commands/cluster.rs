//! `--on ray`: a command is handed over to the Python package, which has the driver of the cluster.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::exit::{CommandFailure, USAGE};

/// Names the Python that has the package.
const PYTHON: &str = "OPSCOPE_PYTHON";
/// Python where nothing names another.
const DEFAULT_PYTHON: &str = "python3";
/// The module that runs commands on a cluster.
const MODULE: &str = "opscope.cluster";
/// Ends with 0 if the package is there, and Ray.
const PROBE: &str = "import importlib.util as u
raise SystemExit(not all(map(u.find_spec, ('opscope', 'opscope.cluster', 'ray'))))";

/// Runs a command, without the program's name, in the place of this process.
///
/// # Errors
/// Usage, as it only returns if there is no Python with the package and Ray.
pub(crate) fn hand_over(arguments: &[OsString]) -> Result<(), CommandFailure> {
    let python = std::env::var_os(PYTHON).unwrap_or_else(|| DEFAULT_PYTHON.into());
    let mut probe = Command::new(&python);
    probe.args(["-c", PROBE]);
    // Its own words of what is missing would only hide ours.
    probe
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        let message = format!(
            "`--on` needs the Python package `opscope` with Ray, and `{}` has not both",
            python.display()
        );
        return Err(CommandFailure::message(USAGE, message).with_hint(format!(
            "`pip install 'opscope[ray]'`, or name a Python that has them by {PYTHON}"
        )));
    }
    let mut command = Command::new(&python);
    command.args(["-m", MODULE]).args(arguments);
    // Ray would tell its makers of this.
    command.env("RAY_USAGE_STATS_ENABLED", "0");
    // Signals and the exit code are Python's from here on.
    let error = command.exec();
    Err(CommandFailure::new(USAGE, error))
}
