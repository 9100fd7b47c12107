//! Python and its packages.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::Check;
use crate::commands::cluster;

/// Prints the versions as JSON. Only `opscope` is imported, because importing torch takes seconds.
const PROBE: &str = "\
import json, os, platform, sys
from importlib import metadata
def version(name):
    try: return metadata.version(name)
    except metadata.PackageNotFoundError: return None
names = ('numpy', 'torch', 'onnx', 'duckdb')
found = dict(version=platform.python_version(), path=sys.executable, packages={n: version(n) for n in names})
try:
    import opscope
    found.update(opscope=opscope.__version__, place=os.path.dirname(opscope.__file__))
    from opscope import _native
except Exception as error:
    found.update(error=f'{type(error).__name__}: {error}')
print(json.dumps(found))";
/// A start on a slow network disk takes seconds; one that takes longer hangs.
const SECONDS_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);
/// How to make the package from the sources.
const INSTALL: &str =
    "cargo xtask release wheel && pip install target/release-packages/*.whl, in the source tree";

/// The answer of the probe.
#[derive(Deserialize)]
struct FoundPython {
    version: String,
    path: String,
    packages: std::collections::BTreeMap<String, Option<String>>,
    opscope: Option<String>,
    place: Option<String>,
    error: Option<String>,
}

pub(super) fn check() -> Vec<Check> {
    let python = cluster::python();
    let shown = python.display().to_string();
    let found = match probe(Command::new(&python)) {
        Ok(found) => found,
        Err(reason) => {
            let advice = "install Python 3.9 or newer (for PyTorch, pyACL and TorchAir), or name it \
                          with OPSCOPE_PYTHON";
            return vec![Check::missing(
                "python",
                format!("`{shown}`: {reason}"),
                advice,
            )];
        }
    };
    let FoundPython { version, path, .. } = &found;
    let detail = format!("{version}, `{path}`");
    let values = json!({ "version": version, "path": path });
    let mut checks = vec![Check::ok("python", detail, values), package(&found)];
    for (name, purpose) in [
        ("numpy", "for the Python package"),
        ("torch", "for `opscope.torch` and TorchAir's options"),
        (
            "duckdb",
            "for `opscope sql`; the program `duckdb` serves as well",
        ),
    ] {
        checks.push(match found.packages.get(name).and_then(Option::as_ref) {
            Some(version) => Check::ok(name, version, json!({ "version": version })),
            None => {
                let detail = format!("not among the packages of `{path}`");
                Check::missing(name, detail, format!("pip install {name} ({purpose})"))
            }
        });
    }
    checks
}

/// The package of this project.
fn package(found: &FoundPython) -> Check {
    const NAME: &str = "python package";
    let own = env!("CARGO_PKG_VERSION");
    let version = found.opscope.as_deref().unwrap_or_default();
    let place = found.place.as_deref().unwrap_or_default();
    let values = json!({ "version": found.opscope, "path": found.place });
    match &found.error {
        None if version == own => Check::ok(NAME, format!("{version}, `{place}`"), values),
        None => {
            let detail = format!("{version}, `{place}`; this program has version {own}");
            Check::ok(NAME, detail, values).problem(INSTALL)
        }
        Some(error) if found.opscope.is_none() => {
            Check::missing(NAME, format!("`import opscope` fails: {error}"), INSTALL)
        }
        Some(error) => {
            let detail = format!("`{place}` has no usable extension module: {error}");
            Check::ok(NAME, detail, values).problem(INSTALL)
        }
    }
}

/// Runs the probe in an interpreter.
///
/// # Errors
/// The reason why it printed nothing.
fn probe(mut python: Command) -> Result<FoundPython, String> {
    python.args(["-c", PROBE]);
    python
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = python.spawn().map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < SECONDS_MAX => thread::sleep(POLL),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no answer within {} s", SECONDS_MAX.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    };
    // The answer is shorter than the buffer of a pipe, so reading after the end loses nothing.
    let mut answer = String::new();
    let read = child
        .stdout
        .take()
        .map(|mut out| out.read_to_string(&mut answer));
    match read {
        Some(Ok(_)) if status.success() => {
            serde_json::from_str(&answer).map_err(|error| format!("an unexpected answer: {error}"))
        }
        _ => Err(status.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_that_answers_otherwise_is_none() {
        for (program, reason) in [
            ("false", "exit status: 1"),
            ("true", "an unexpected answer"),
        ] {
            let error = probe(Command::new(program)).err().unwrap();
            assert!(error.contains(reason), "{error}");
        }
        assert!(probe(Command::new("/nowhere/python")).is_err());
    }

    #[test]
    fn the_state_of_the_package_follows_from_what_python_imports() {
        let own = env!("CARGO_PKG_VERSION");
        for (version, error, state) in [
            (Some(own), None, "ok"),
            (Some("0.0.0"), None, "problem"),
            (Some(own), Some("ImportError: _native"), "problem"),
            (None, Some("ModuleNotFoundError: opscope"), "missing"),
        ] {
            let found = FoundPython {
                version: String::new(),
                path: String::new(),
                packages: Default::default(),
                opscope: version.map(str::to_owned),
                place: version.map(|_| "place".to_owned()),
                error: error.map(str::to_owned),
            };
            assert_eq!(package(&found).state.name(), state, "{version:?} {error:?}");
        }
    }
}
