//! How a command ends.

use std::io;
use std::path::Path;

use anyhow::anyhow;
use opscope_analysis::compare::report::ReportError;
use opscope_config::ConfigError;
use opscope_diff::RunError;
use opscope_engine::{EngineError, InputError};
use opscope_store::{StoreError, regular_file, remote};

/// The result of a command, or of a part of it.
pub(crate) type CommandResult<T = ()> = Result<T, CommandFailure>;

/// A command that did not complete.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    /// The exit code.
    pub(crate) code: u8,
    /// Error to report, unless it has already been reported.
    pub(crate) error: Option<anyhow::Error>,
    /// Advice for the user.
    pub(crate) hint: Option<String>,
}

/// An overflow or a difference was found.
pub(crate) const FOUND: u8 = 1;
/// Wrong usage or configuration.
pub(crate) const USAGE: u8 = 2;
/// A file is unreadable, damaged or not runnable.
pub(crate) const UNREADABLE: u8 = 3;
/// Partly done.
pub(crate) const PARTIAL: u8 = 4;
/// Ended by a signal.
pub(crate) const INTERRUPTED: u8 = 130;

impl CommandFailure {
    /// An error with its exit code.
    pub(crate) fn new(code: u8, error: impl Into<anyhow::Error>) -> CommandFailure {
        CommandFailure {
            code,
            error: Some(error.into()),
            hint: None,
        }
    }

    /// A message with its exit code.
    pub(crate) fn message(code: u8, message: impl Into<String>) -> CommandFailure {
        CommandFailure::new(code, anyhow!(message.into()))
    }

    /// An exit code alone; the error has already been reported.
    pub(crate) fn silent(code: u8) -> CommandFailure {
        CommandFailure {
            code,
            error: None,
            hint: None,
        }
    }

    /// Adds advice.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> CommandFailure {
        CommandFailure {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Adds the file or directory in which it happened.
    pub(crate) fn at(self, path: &Path) -> CommandFailure {
        let place = format!("`{}`", path.display());
        let error = self.error.map(|error| error.context(place));
        CommandFailure { error, ..self }
    }

    /// Whether the reader of our output has closed it, which is not an error.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let chain = self.error.iter().flat_map(|error| error.chain());
        // Rust ignores SIGPIPE, so writing to a closed reader, such as `head`, is an error; on
        // standard output it has this code.
        chain
            .filter_map(|cause| cause.downcast_ref::<io::Error>())
            .any(|error| error.kind() == io::ErrorKind::BrokenPipe && self.code == PARTIAL)
    }
}

/// Whether a directory or a regular file is at `path`.
pub(crate) fn check_path(path: &Path) -> CommandResult {
    // Opening a pipe would block until a writer appears, and opening a device may affect it, so
    // both are refused by type.
    let checked = if remote::is_dir(path) {
        Ok(())
    } else {
        regular_file::check(path).map(drop)
    };
    checked.map_err(|error| {
        let message = format!("cannot read `{}`: {error}", path.display());
        CommandFailure::message(UNREADABLE, message)
    })
}

/// [`check_path`] of a dump.
pub(crate) fn check_dump(path: &Path) -> CommandResult {
    check_path(path)?;
    refuse_model(path)
}

/// Refuses a model where a dump is expected, and names commands for models.
pub(crate) fn refuse_model(path: &Path) -> CommandResult {
    if !has_extension(path, "onnx") || remote::is_dir(path) {
        return Ok(());
    }
    let path = path.display();
    let message = format!("`{path}` is an ONNX model, but this command reads dumps");
    let hint =
        format!("`opscope dump {path} --out DIR` dumps it; `opscope diff` compares two models");
    Err(CommandFailure::message(UNREADABLE, message).with_hint(hint))
}

/// Refuses an array where a model is expected.
pub(crate) fn refuse_array(path: &Path) -> CommandResult {
    if !(has_extension(path, "npy") || has_extension(path, "npz")) {
        return Ok(());
    }
    let path = path.display();
    let message = format!("`{path}` is an array, but this command runs ONNX models");
    let hint =
        format!("`opscope show {path}` shows it; `--input NAME={path}` passes it to a model");
    Err(CommandFailure::message(UNREADABLE, message).with_hint(hint))
}

fn has_extension(path: &Path, extension: &str) -> bool {
    let own = path.extension().and_then(|own| own.to_str());
    own.is_some_and(|own| own.eq_ignore_ascii_case(extension))
}

/// An error with its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

impl From<RunError> for CommandFailure {
    fn from(error: RunError) -> CommandFailure {
        match error {
            RunError::Engine { step, source } => {
                let failure = CommandFailure::from(source);
                let error = failure.error.map(|e| e.context(format!("step {step}")));
                CommandFailure { error, ..failure }
            }
            other => CommandFailure::new(PARTIAL, other),
        }
    }
}

impl From<io::Error> for CommandFailure {
    /// Errors of standard output.
    fn from(error: io::Error) -> CommandFailure {
        let error = anyhow!(error).context("cannot write to standard output");
        CommandFailure::new(PARTIAL, error)
    }
}

impl From<ConfigError> for CommandFailure {
    /// A readable file that is not text is a refused configuration.
    fn from(error: ConfigError) -> CommandFailure {
        let code = if error.issue().is_some() {
            USAGE
        } else {
            UNREADABLE
        };
        CommandFailure::new(code, error)
    }
}

const UNKNOWN_FILE: &str = "the file does not begin as npy, npz, safetensors, HDF5, PyTorch or ONNX \
    files do, so it was read as a DumpData file of AscendCL, which begins with the header's length";

impl From<StoreError> for CommandFailure {
    fn from(error: StoreError) -> CommandFailure {
        // Files of this format have no magic, so every file without a known start counts as one.
        let is_unknown = matches!(
            &error,
            StoreError::Corrupt { format, source, .. } if *format == "DumpData" && source.offset == 0
        );
        let hint = is_unknown.then(|| UNKNOWN_FILE.to_owned());
        CommandFailure {
            hint,
            ..CommandFailure::new(UNREADABLE, error)
        }
    }
}

impl From<ReportError> for CommandFailure {
    fn from(error: ReportError) -> CommandFailure {
        match error {
            ReportError::Exists(_) => {
                CommandFailure::message(USAGE, error.to_string()).with_hint("`--force` replaces it")
            }
            ReportError::Stream(_) => CommandFailure::message(USAGE, error.to_string()),
            ReportError::Store(error) => CommandFailure::new(USAGE, error),
        }
    }
}

impl From<InputError> for CommandFailure {
    fn from(error: InputError) -> CommandFailure {
        let hint = match &error {
            InputError::Missing { name, .. } => Some(format!(
                "pass `--input {name}=FILE.npy`, or `--seed N` for random values"
            )),
            InputError::Dynamic { name, shape } => {
                let example = example_shape(shape);
                Some(format!("set its shape, such as `--shape {name}:{example}`"))
            }
            _ => None,
        };
        CommandFailure {
            hint,
            ..CommandFailure::new(USAGE, error)
        }
    }
}

/// A declared shape with 1 for every dynamic dimension: `[batch,3]` becomes `1,3`.
pub(crate) fn example_shape(shape: &str) -> String {
    let Some(dims) = shape
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
    else {
        // Without brackets the input may have any shape, and only an example can be given.
        return "1,3,224,224".into();
    };
    dims.split(',')
        .map(|dim| {
            dim.parse::<usize>()
                .map_or("1".to_owned(), |n| n.to_string())
        })
        .collect::<Vec<_>>()
        .join(",")
}

impl From<EngineError> for CommandFailure {
    fn from(error: EngineError) -> CommandFailure {
        match error {
            EngineError::Input(error) => error.into(),
            // The model is fine: another engine, or an additional package, makes it run.
            EngineError::Library { .. } | EngineError::NoEngine { .. } => {
                CommandFailure::new(USAGE, error)
            }
            EngineError::Stopped => CommandFailure::new(INTERRUPTED, error),
            EngineError::Operator { .. }
            | EngineError::Engine { .. }
            | EngineError::Write { .. } => CommandFailure::new(PARTIAL, error),
            // Only ONNX Runtime can be added by the user, as it is loaded as a library; tract is
            // compiled in or not.
            EngineError::Unsupported {
                other_engine: Some("ONNX Runtime"),
                ..
            } => CommandFailure::new(UNREADABLE, error).with_hint(
                "`pip install onnxruntime` or `--engine-lib` provides it, and `--engine onnxruntime` \
                 selects it",
            ),
            EngineError::Read { .. }
            | EngineError::Invalid { .. }
            | EngineError::Unsupported { .. }
            | EngineError::Watch { .. } => CommandFailure::new(UNREADABLE, error),
        }
    }
}
