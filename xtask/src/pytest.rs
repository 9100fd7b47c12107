//! Tests in Python.

use std::process::Command;
use std::thread::available_parallelism;

use anyhow::Result;

use crate::python;

/// Runs every case of the families of which a sample runs by default.
pub(crate) const EXHAUSTIVE: &str = "--exhaustive";
/// Seconds after which a test counts as hung. The longest takes four minutes.
const HUNG_AFTER: u32 = 900;
/// Maximum number of concurrent tests. A process with torch takes up to 2 GiB.
const N_PROCESSES_MAX: usize = 8;

/// Number of concurrent tests.
#[derive(Clone, Copy)]
pub(crate) enum AtOnce {
    /// One, because a cluster or a browser is shared.
    One,
    /// One for each processor.
    AllProcessors,
}

/// pytest for a folder, in a Python with the packages of a requirements file.
///
/// A hung test ends its process with a stack trace of each thread.
pub(crate) fn in_folder(requirements: &str, folder: &str, at_once: AtOnce) -> Result<Command> {
    let mut pytest = python::with_packages(requirements)?;
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    pytest
        .arg("-o")
        .arg(format!("faulthandler_timeout={HUNG_AFTER}"));
    pytest.args(["-o", "faulthandler_exit_on_timeout=true"]);
    // Dumps of all tests together take gigabytes.
    pytest.args(["-o", "tmp_path_retention_policy=failed"]);
    if let AtOnce::AllProcessors = at_once {
        let n_processes = available_parallelism()?
            .get()
            .min(N_PROCESSES_MAX)
            .to_string();
        // Tests in one file share expensive fixtures.
        pytest.args(["-n", &n_processes, "--dist", "loadfile"]);
        // Otherwise each process has as many torch threads as there are processors.
        pytest.env("OMP_NUM_THREADS", "1");
    }
    if std::env::args().any(|argument| argument == EXHAUSTIVE) {
        pytest.arg(EXHAUSTIVE);
    }
    pytest.arg(folder);
    Ok(pytest)
}
