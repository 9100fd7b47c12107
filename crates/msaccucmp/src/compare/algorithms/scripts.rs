//! Metrics that users wrote in Python, run by the interpreter that converters use too.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use crate::compare::metrics::{About, Outcome, Pair};
use crate::compare::stop::Stop;
use crate::custom::process::{Loaded, Process};
use crate::log;
use crate::paths::{self, Kind};

/// The directory below the given one that holds the scripts.
const SCRIPT_DIR: &str = "algorithm";
const PREFIX: &str = "alg_";
const FUNCTION: &str = "compare";
const N_ARGUMENTS: usize = 3;
/// Limits that the reference sets.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;
const SCRIPTS_MAX: usize = 1000;

/// The user's metrics.
#[derive(Default)]
pub(super) struct Scripts {
    scripts: Vec<Script>,
    /// Where scripts find what they import.
    search_dir: PathBuf,
    /// Interpreters that no worker uses at the moment.
    idle: Mutex<Vec<Process>>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) name: String,
    path: PathBuf,
}

impl Scripts {
    /// Looks for scripts below `dir`. Files that are none are passed over with a warning.
    pub(super) fn open(dir: &str) -> Result<Scripts, Stop> {
        paths::check_given(dir, Kind::Directory)?;
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
        Ok(Scripts {
            scripts,
            search_dir,
            idle: Mutex::default(),
        })
    }

    pub(super) fn find(&self, name: &str) -> Option<&Script> {
        self.scripts.iter().find(|script| script.name == name)
    }

    /// Whether a script has the function that is called. One that cannot be loaded ends the command,
    /// but for want of Python or numpy: then its results are missing.
    pub(super) fn is_usable(&self, script: &Script) -> Result<bool, Stop> {
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
            Ok(Loaded::Function(N_ARGUMENTS)) => Ok(true),
            Ok(Loaded::Function(n)) => {
                log::warning(&format!(
                    "[Custom] The argument count ({n}) of '{FUNCTION}' in {path} is not \
                     {N_ARGUMENTS}. Please check the file."
                ));
                Ok(false)
            }
            Ok(Loaded::NoFunction) => {
                log::warning(&format!(
                    "[Custom] The file {path} has no function '{FUNCTION}'."
                ));
                Ok(false)
            }
            Ok(Loaded::NoNumpy) => {
                log::warning(&format!(
                    "[Custom] {path} needs numpy, which python3 lacks."
                ));
                Ok(true)
            }
            Err(reason) => Err(Stop::Fatal(reason)),
        }
    }

    /// Runs a script; an error holds the reason in the user's words.
    pub(super) fn run(
        &self,
        script: &Script,
        pair: Pair<'_>,
        about: &About<'_>,
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
            Pair::Bools(a, b) => ("|b1", a.to_vec(), b.to_vec()),
            Pair::Floats(a, b) => ("<f4", bytes(a), bytes(b)),
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

    fn take_process(&self) -> Result<Process, String> {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        idle.map_or_else(Process::start, Ok)
    }

    fn put_back(&self, process: Process) {
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

/// The entries of a directory in the order of their names.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, Stop> {
    let entries = std::fs::read_dir(dir).map_err(|error| Stop::Fatal(error.to_string()))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    Ok(paths)
}

/// Every file has to have an ordinary name and size.
fn check_files(dir: &Path) -> Result<(), Stop> {
    let paths = entries(dir)?;
    if paths.len() > SCRIPTS_MAX {
        return Err(Stop::Fatal(format!(
            "there are more than {SCRIPTS_MAX} scripts"
        )));
    }
    for path in paths {
        paths::check_input(&path, Kind::Any)?;
        if path
            .metadata()
            .is_ok_and(|m| m.is_file() && m.len() > SCRIPT_BYTES_MAX)
        {
            return Err(Stop::Fatal(format!("{} is too large", path.display())));
        }
    }
    Ok(())
}

/// A file called `alg_{name}.py` or `.pyc`.
fn script(path: PathBuf) -> Option<Script> {
    if !path.is_file() {
        return None;
    }
    let file_name = path.file_name()?.to_str()?;
    let stem = file_name
        .strip_suffix(".py")
        .or_else(|| file_name.strip_suffix(".pyc"));
    let name = stem.and_then(|stem| stem.strip_prefix(PREFIX));
    let is_word = |name: &&str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let Some(name) = name.filter(is_word) else {
        log::warning(&format!(
            "The file '{file_name}' does not match 'alg_{{algorithm_name}}.py', please check the \
             file."
        ));
        return None;
    };
    let name = name.to_owned();
    Some(Script { name, path })
}
