//! Metrics written in Python by users, run by the interpreter of the converters.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use crate::compare::metrics::{ComparedElements, Outcome, TensorFacts};
use crate::compare::stop::CompareStop;
use crate::custom::process::{InterpreterProcess, ScriptLoad};
use crate::log;
use crate::paths::{self, PathKind};

/// The subdirectory with the scripts.
const SCRIPT_DIR: &str = "algorithm";
const PREFIX: &str = "alg_";
const FUNCTION: &str = "compare";
const N_ARGUMENTS: usize = 3;
/// Limits of the reference.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;
const SCRIPTS_MAX: usize = 1000;

/// The user's metrics.
#[derive(Default)]
pub(super) struct MetricScripts {
    scripts: Vec<MetricScript>,
    /// The directory from which scripts import.
    search_dir: PathBuf,
    /// Interpreters that no worker uses at the moment.
    idle: Mutex<Vec<InterpreterProcess>>,
}

/// A user's metric.
#[derive(Clone, Debug)]
pub(super) struct MetricScript {
    pub(super) name: String,
    path: PathBuf,
}

impl MetricScripts {
    /// Searches scripts below `dir`. Other files are skipped with a warning.
    pub(super) fn open(dir: &str) -> Result<MetricScripts, CompareStop> {
        paths::check_given(dir, PathKind::Directory)?;
        let search_dir = paths::resolve(dir);
        let dir = search_dir.join(SCRIPT_DIR);
        let mut scripts = Vec::new();
        if dir.is_dir() {
            check_files(&dir)?;
            for path in entries(&dir)? {
                scripts.extend(script(path));
            }
        } else {
            log::warning(&format!(
                "There is no '{SCRIPT_DIR}' in {}, please check the custom path.",
                log::quoted(&search_dir)
            ));
        }
        Ok(MetricScripts {
            scripts,
            search_dir,
            idle: Mutex::default(),
        })
    }

    pub(super) fn find(&self, name: &str) -> Option<&MetricScript> {
        self.scripts.iter().find(|script| script.name == name)
    }

    /// Whether a script has the required function. A script that cannot be loaded ends the command,
    /// except without Python or numpy: then its results are missing.
    pub(super) fn is_usable(&self, script: &MetricScript) -> Result<bool, CompareStop> {
        let path = script.path.display();
        let mut process = match self.take_process() {
            Ok(process) => process,
            Err(reason) => {
                log::warning(&format!("[Custom] {path} cannot be used. {reason}"));
                return Ok(true);
            }
        };
        let loaded = process.load(&script.path, FUNCTION, &self.search_dir);
        self.put_back(process);
        match loaded {
            Ok(ScriptLoad::Function(N_ARGUMENTS)) => Ok(true),
            Ok(ScriptLoad::Function(n)) => {
                log::warning(&format!(
                    "[Custom] The argument count ({n}) of '{FUNCTION}' in {path} is not \
                     {N_ARGUMENTS}. Please check the file."
                ));
                Ok(false)
            }
            Ok(ScriptLoad::NoFunction) => {
                log::warning(&format!(
                    "[Custom] The file {path} has no function '{FUNCTION}'."
                ));
                Ok(false)
            }
            Ok(ScriptLoad::NoNumpy) => {
                log::warning(&format!(
                    "[Custom] {path} needs numpy, which python3 lacks."
                ));
                Ok(true)
            }
            Err(reason) => Err(CompareStop::Fatal(reason)),
        }
    }

    /// Runs a script; an error holds the reason for the user.
    pub(super) fn run(
        &self,
        script: &MetricScript,
        pair: ComparedElements<'_>,
        about: &TensorFacts<'_>,
        options: &[(String, String)],
    ) -> Result<Outcome, String> {
        let own = [
            ("my_output_dump_file", about.my_file),
            ("ground_truth_dump_file", about.golden_file),
        ];
        let mut arguments: Map<String, Value> = options
            .iter()
            .map(|(key, value)| (key.clone(), json!(value)))
            .collect();
        arguments.extend(own.map(|(key, value)| (key.to_owned(), json!(value))));
        let (descr, mine, golden) = match pair {
            ComparedElements::Bools(a, b) => ("|b1", a.to_vec(), b.to_vec()),
            ComparedElements::Floats(a, b) => ("<f4", bytes(a), bytes(b)),
        };
        let request = json!({
            "path": script.path.to_string_lossy(),
            "search": self.search_dir.to_string_lossy(),
            "function": FUNCTION,
            "arguments": arguments,
            "is_scalar": about.is_scalar,
            "descr": descr,
            "n_bytes": mine.len() + golden.len(),
        });
        let mut process = self.take_process()?;
        let outcome = process.compare(&request, &[mine, golden].concat());
        self.put_back(process);
        outcome
    }

    fn take_process(&self) -> Result<InterpreterProcess, String> {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        idle.map_or_else(InterpreterProcess::start, Ok)
    }

    fn put_back(&self, process: InterpreterProcess) {
        if process.is_usable()
            && let Ok(mut idle) = self.idle.lock()
        {
            idle.push(process);
        }
    }
}

fn bytes(elements: &[f32]) -> Vec<u8> {
    elements.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// The entries of a directory, sorted by name.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, CompareStop> {
    let entries = std::fs::read_dir(dir).map_err(|error| CompareStop::Fatal(error.to_string()))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    Ok(paths)
}

/// Checks that every file has an ordinary name and size.
fn check_files(dir: &Path) -> Result<(), CompareStop> {
    let paths = entries(dir)?;
    if paths.len() > SCRIPTS_MAX {
        return Err(CompareStop::Fatal(format!(
            "there are more than {SCRIPTS_MAX} scripts"
        )));
    }
    for path in paths {
        paths::check_input(&path, PathKind::Any)?;
        if path
            .metadata()
            .is_ok_and(|m| m.is_file() && m.len() > SCRIPT_BYTES_MAX)
        {
            return Err(CompareStop::Fatal(format!(
                "{} is too large",
                path.display()
            )));
        }
    }
    Ok(())
}

/// A file called `alg_{name}.py` or `.pyc`.
fn script(path: PathBuf) -> Option<MetricScript> {
    if !path.is_file() {
        return None;
    }
    let file_name = path.file_name()?.to_str()?;
    let stem = file_name
        .strip_suffix(".py")
        .or_else(|| file_name.strip_suffix(".pyc"));
    let name = stem.and_then(|stem| stem.strip_prefix(PREFIX));
    let Some(name) = name.filter(|name| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    }) else {
        log::warning(&format!(
            "The file '{file_name}' does not match 'alg_{{algorithm_name}}.py', please check the \
             file."
        ));
        return None;
    };
    let name = name.to_owned();
    Some(MetricScript { name, path })
}
