//! The process that runs DuckDB: the program `duckdb`, or Python with the package of that name.
//!
//! Both read statements from standard input, one per line, and stop at the first that fails.
//! Answers come by `copy … to` standard output, so that both produce the same bytes.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

use super::quoting::literal;
use super::script;
use crate::exit::{CommandFailure, CommandResult, INTERRUPTED, UNREADABLE, USAGE};

/// The program.
const PROGRAM: &str = "duckdb";
/// Skips the user's startup statements, expects non-terminal input, and stops at the first error.
const OPTIONS: [&str; 4] = ["-init", "/dev/null", "-batch", "-bail"];
/// The oldest supported version: a long-term support release with all the settings.
const OLDEST: (u32, u32) = (1, 4);
/// DuckDB's names of errors caused by a query.
const MISTAKES: &[&str] = &[
    "Binder",
    "Catalog",
    "Conversion",
    "Invalid Type",
    "Mismatch Type",
    "Not implemented",
    "Out of Range",
    "Parser",
    "Permission",
    "Syntax",
];
/// Maximum time for handling an ending signal, which first removes temporary files.
const SIGNAL_WAIT: Duration = Duration::from_secs(10);
const OUT_OF_MEMORY: &str = "Out of Memory";
/// Errors continue with advice to change settings, which are locked.
const ADVICE: [&str; 2] = ["LINE ", "Possible solutions"];

/// Finds the command of a Python with DuckDB.
type PythonCommand = fn() -> Option<Vec<OsString>>;

static PYTHON: OnceLock<PythonCommand> = OnceLock::new();

/// Registers `find`, which returns the command of a Python with DuckDB that reads statements as the
/// program does. For the Python package.
pub fn look_for_duckdb(find: PythonCommand) {
    // A second module of the same process finds the same Python.
    let _ = PYTHON.set(find);
}

/// DuckDB's current work, which decides the exit code of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Parsing the query.
    Start,
    /// Opening the tables.
    Tables,
    /// Planning the query.
    Question,
    /// Answering it.
    Answer,
}

/// A running DuckDB, killed on drop.
pub(super) struct DuckDb {
    child: Arc<Mutex<Child>>,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: File,
    is_late: Arc<AtomicBool>,
    is_signalled: Arc<AtomicBool>,
    /// Stops waiting for the time limit.
    watch: Option<Sender<()>>,
}

/// Kills DuckDB from another thread.
pub(super) struct DuckDbStop {
    child: Arc<Mutex<Child>>,
    /// Whether a signal is about to end this process.
    is_signalled: Arc<AtomicBool>,
}

impl DuckDb {
    /// Starts DuckDB; `None` if it is not installed.
    ///
    /// # Errors
    ///
    /// The reason why it does not start.
    pub(super) fn start() -> CommandResult<Option<DuckDb>> {
        let errors = tempfile::tempfile()?;
        let mut command = match PYTHON.get().and_then(|find| find()) {
            Some(words) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
            None => {
                let mut command = Command::new(PROGRAM);
                command.args(OPTIONS);
                command
            }
        };
        let stderr = errors.try_clone()?;
        // A separate process group, because the program may be a script that starts another one.
        command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let error = anyhow!(error).context("DuckDB does not start");
                return Err(CommandFailure::new(USAGE, error).with_hint(install_hint()));
            }
        };
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(CommandFailure::message(USAGE, "DuckDB has no pipes"));
        };
        Ok(Some(DuckDb {
            child: Arc::new(Mutex::new(child)),
            input: Some(input),
            output: BufReader::new(output),
            errors,
            is_late: Arc::default(),
            is_signalled: Arc::default(),
            watch: None,
        }))
    }

    pub(super) fn stop(&self) -> DuckDbStop {
        DuckDbStop {
            child: self.child.clone(),
            is_signalled: self.is_signalled.clone(),
        }
    }

    /// The syntax tree of a query; `None` if it is too deep to parse.
    ///
    /// # Errors
    ///
    /// A usage error if this DuckDB is too old.
    pub(super) fn tree(&mut self, question: &str) -> CommandResult<Option<Value>> {
        let question = literal(question);
        self.send(&script::copied(
            "select version() as version",
            "format json",
        ));
        let version = self.json(Stage::Start)?;
        let version = version["version"].as_str().unwrap_or_default();
        if !is_new_enough(version) {
            let (major, minor) = OLDEST;
            let message = format!("DuckDB is {version}, but at least {major}.{minor} is required");
            return Err(CommandFailure::message(USAGE, message).with_hint(install_hint()));
        }
        let parsed = format!("select json_serialize_sql({question}) as question");
        self.send(&script::copied(&parsed, "format json"));
        let line = self.line(Stage::Start)?;
        // DuckDB's own JSON fails to parse only if the tree is too deep.
        let tree = serde_json::from_slice::<Value>(&line).ok();
        Ok(tree.map(|mut tree| tree["question"].take()))
    }

    /// Sends a statement.
    pub(super) fn send(&mut self, statement: &str) {
        if let Some(input) = &mut self.input {
            // A DuckDB that stopped reading has reported why; reading its answer finds that.
            let _ = writeln!(input, "{statement};");
        }
    }

    /// Kills DuckDB after this time from now on; `None` removes the limit.
    pub(super) fn limit(&mut self, time: Option<Duration>) {
        self.watch = None;
        let Some(time) = time else {
            return;
        };
        let (watch, watched) = mpsc::channel();
        let (stop, is_late) = (self.stop(), self.is_late.clone());
        self.watch = Some(watch);
        thread::spawn(move || {
            if watched.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                is_late.store(true, Ordering::Relaxed);
                stop.stop();
            }
        });
    }

    /// The next line of JSON.
    ///
    /// # Errors
    ///
    /// The error that DuckDB reports instead.
    pub(super) fn json(&mut self, stage: Stage) -> CommandResult<Value> {
        let line = self.line(stage)?;
        serde_json::from_slice(&line).map_err(|error| {
            CommandFailure::new(UNREADABLE, anyhow!(error).context("DuckDB's JSON"))
        })
    }

    fn line(&mut self, stage: Stage) -> CommandResult<Vec<u8>> {
        let mut line = Vec::new();
        let read = self.output.read_until(b'\n', &mut line);
        if read.is_err() || line.is_empty() {
            return Err(self.failure(stage));
        }
        Ok(line)
    }

    /// The rest of the output, after the last statement.
    pub(super) fn answer(&mut self) -> &mut BufReader<ChildStdout> {
        self.input = None;
        &mut self.output
    }

    /// Waits for the process to end.
    ///
    /// # Errors
    ///
    /// The error of a failed statement.
    pub(super) fn finish(mut self) -> CommandResult {
        self.input = None;
        let status = locked(&self.child).wait();
        if status.is_ok_and(|status| status.success()) {
            return Ok(());
        }
        Err(self.failure(Stage::Answer))
    }

    fn failure(&mut self, stage: Stage) -> CommandFailure {
        self.input = None;
        let status = locked(&self.child).wait();
        if self.is_signalled.load(Ordering::Relaxed) {
            // The thread that handles the signal ends the process, with the signal's exit code.
            thread::sleep(SIGNAL_WAIT);
            return CommandFailure::silent(INTERRUPTED);
        }
        if self.is_late.load(Ordering::Relaxed) {
            let message = "no answer within the `--timeout`";
            return CommandFailure::message(UNREADABLE, message);
        }
        let mut text = Vec::new();
        let read = self.errors.rewind();
        let read = read.and_then(|()| self.errors.read_to_end(&mut text));
        let text = first_paragraph(&String::from_utf8_lossy(&text));
        if read.is_err() || text.is_empty() {
            let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            let message = format!("DuckDB ended without an error message: {status}");
            return CommandFailure::message(UNREADABLE, message);
        }
        let kind = text.split(" Error:").next().unwrap_or_default();
        if kind == OUT_OF_MEMORY {
            let hint = "raise `--memory`; or select fewer columns, or filter by `run` or `rank`";
            return CommandFailure::message(UNREADABLE, text).with_hint(hint);
        }
        match stage {
            Stage::Start => CommandFailure::message(USAGE, text).with_hint(install_hint()),
            Stage::Question | Stage::Answer if MISTAKES.contains(&kind) => {
                CommandFailure::message(USAGE, text)
            }
            Stage::Tables | Stage::Question | Stage::Answer => {
                CommandFailure::message(UNREADABLE, text)
            }
        }
    }
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        self.stop().stop();
    }
}

impl DuckDbStop {
    /// Kills DuckDB for a signal that then ends this process.
    pub(super) fn stop_by_signal(&self) {
        self.is_signalled.store(true, Ordering::Relaxed);
        self.stop();
    }

    pub(super) fn stop(&self) {
        let mut child = locked(&self.child);
        // The process id of an ended child may have been reused.
        if matches!(child.try_wait(), Ok(None)) {
            if let Ok(group) = i32::try_from(child.id()) {
                let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
            }
            let _ = child.wait();
        }
    }
}

/// The command that installs a supported DuckDB.
pub(super) fn install_hint() -> String {
    let package = if PYTHON.get().is_some() {
        "'opscope[sql]'"
    } else {
        "duckdb-cli"
    };
    format!("`pip install --upgrade {package}` installs DuckDB")
}

/// Ignores poisoning: a panic elsewhere does not affect the child.
fn locked(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a version such as `v1.5.6` is supported.
fn is_new_enough(version: &str) -> bool {
    let numbers = version.trim_start_matches('v').split('.');
    let mut numbers = numbers.map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next(), numbers.next());
    matches!(version, (Some(major), Some(minor)) if (major, minor) >= OLDEST)
}

/// An error on one line, without its position in generated statements.
fn first_paragraph(text: &str) -> String {
    let lines = text
        .lines()
        .map(str::trim)
        .skip_while(|line| line.is_empty());
    let lines = lines.take_while(|line| {
        !line.is_empty() && !ADVICE.iter().any(|advice| line.starts_with(advice))
    });
    lines.collect::<Vec<_>>().join(" ")
}
