//! `--on ray`: passes the command to the Python package, which drives the cluster.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::exit::{CommandFailure, CommandResult, USAGE};

/// Environment variable with the Python interpreter that has the package.
const PYTHON: &str = "OPSCOPE_PYTHON";
/// Interpreter if `OPSCOPE_PYTHON` is unset.
const DEFAULT_PYTHON: &str = "python3";
/// The module that runs commands on a cluster.
const MODULE: &str = "opscope.cluster";
/// Exits with 0 if both the package and Ray are installed.
const PROBE: &str = "import importlib.util as u
raise SystemExit(not all(map(u.find_spec, ('opscope', 'opscope.cluster', 'ray'))))";

/// The interpreter that has the Python package.
pub(crate) fn python() -> OsString {
    std::env::var_os(PYTHON).unwrap_or_else(|| DEFAULT_PYTHON.into())
}

/// Replaces this process with a command run by the Python package; `arguments` omit the program's
/// name.
///
/// # Errors
///
/// Returns only on failure: a usage error if no Python has both the package and Ray.
pub(crate) fn hand_over(arguments: &[OsString]) -> CommandResult {
    let python = python();
    let mut probe = Command::new(&python);
    probe.args(["-c", PROBE]);
    // The interpreter's own error would only obscure ours.
    probe
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        let message = format!(
            "`--on` needs the Python package `opscope` with Ray, and `{}` does not have both",
            python.display()
        );
        return Err(CommandFailure::message(USAGE, message).with_hint(format!(
            "`pip install 'opscope[ray]'`, or set {PYTHON} to a Python that has both"
        )));
    }
    let mut command = Command::new(&python);
    command.args(["-m", MODULE]).args(arguments);
    // Keeps Ray from sending usage statistics.
    command.env("RAY_USAGE_STATS_ENABLED", "0");
    // From here on, Python handles signals and sets the exit code.
    let error = command.exec();
    Err(CommandFailure::new(USAGE, error))
}
