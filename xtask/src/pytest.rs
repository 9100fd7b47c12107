//! Tests in Python.

use std::process::Command;
use std::thread::available_parallelism;

use anyhow::Result;

use crate::python;

/// Runs every case of families of which otherwise a sample runs.
pub(crate) const EXHAUSTIVE: &str = "--exhaustive";
/// Seconds after which a test counts as hung. The longest takes four minutes.
const HUNG_AFTER: u32 = 900;
/// Most tests at once. A process with torch takes up to 2 GiB.
const N_PROCESSES_MAX: usize = 8;

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
    pytest
        .arg("-o")
        .arg(format!("faulthandler_timeout={HUNG_AFTER}"));
    pytest.args(["-o", "faulthandler_exit_on_timeout=true"]);
    if let AtOnce::AllProcessors = at_once {
        let n_processes = available_parallelism()?
            .get()
            .min(N_PROCESSES_MAX)
            .to_string();
        // Tests of one file share what takes long to make.
        pytest.args(["-n", &n_processes, "--dist", "loadfile"]);
        // Threads of torch would be as many for each process as there are processors.
        pytest.env("OMP_NUM_THREADS", "1");
    }
    if std::env::args().any(|argument| argument == EXHAUSTIVE) {
        pytest.arg(EXHAUSTIVE);
    }
    pytest.arg(folder);
    Ok(pytest)
}
