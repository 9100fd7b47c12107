//! Converters that users wrote in Python.
//!
//! They run in a separate `python3`, which needs numpy, like the reference. Each worker has one
//! process, started with the first converter.

pub(super) mod process;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use opscope_tensor::Layout;
use process::InterpreterProcess;

use crate::array::ElementArray;
use crate::failure::ToolFailure;
use crate::paths::{self, PathKind};
use crate::{formats, log};

pub(super) use process::ConverterCall;

/// The subdirectory with the scripts.
const SCRIPT_DIR: &str = "format_convert";
/// Limits of the reference.
const SCRIPTS_MAX: usize = 1000;
const SCRIPT_BYTES_MAX: u64 = 1 << 20;
const NAME_BYTES_MAX: usize = 128;
/// Arguments of a converter, without and with groups.
const ARGUMENTS: usize = 3;
const ARGUMENTS_WITH_GROUPS: usize = 4;

/// The user's converters.
pub(super) struct UserConverters {
    scripts: Vec<ConverterScript>,
    /// Interpreters that no worker uses at the moment.
    idle: Mutex<Vec<InterpreterProcess>>,
}

struct ConverterScript {
    from: Layout,
    to: Layout,
    path: PathBuf,
}

/// Whether a directory, if given, contains converters.
pub(super) fn has_converters(dir: &str) -> Result<bool, ToolFailure> {
    if dir.is_empty() {
        return Ok(false);
    }
    paths::check_given(dir, PathKind::Directory)?;
    Ok(paths::resolve(dir).join(SCRIPT_DIR).is_dir())
}

impl UserConverters {
    /// Searches converters below `dir`. Other files are skipped with a warning.
    pub(super) fn open(dir: &str) -> Result<UserConverters, ToolFailure> {
        let dir = paths::resolve(dir);
        paths::check_input(&dir, PathKind::Directory)?;
        let dir = dir.join(SCRIPT_DIR);
        let custom = UserConverters {
            scripts: Vec::new(),
            idle: Mutex::default(),
        };
        if !dir.exists() {
            log::warning(&format!(
                "There is no '{SCRIPT_DIR}' in {}, please check the custom path.",
                log::quoted(dir.parent().unwrap_or(&dir))
            ));
            return Ok(custom);
        }
        let mut scripts: Vec<ConverterScript> =
            list(&dir)?.iter().filter_map(|path| script(path)).collect();
        scripts.retain(|script| custom.takes_the_right_arguments(script));
        Ok(UserConverters { scripts, ..custom })
    }

    /// Calls the user's converter between two layouts, if there is one. An error holds the reason
    /// for the user.
    pub(super) fn convert(
        &self,
        from: Layout,
        to: Layout,
        call: &ConverterCall<'_, '_>,
    ) -> Option<Result<ElementArray<'static>, String>> {
        // Of several scripts for the same layouts, such as a `.py` and a `.pyc`, the last one
        // counts.
        let script = self
            .scripts
            .iter()
            .rev()
            .find(|s| (s.from, s.to) == (from, to))?;
        Some(self.take_process().and_then(|mut process| {
            let result = process.convert(&script.path, call);
            self.put_back(process);
            result
        }))
    }

    fn takes_the_right_arguments(&self, script: &ConverterScript) -> bool {
        // Only these layouts depend on the number of groups.
        let takes_groups = formats::name(script.to).is_some_and(|to| to.starts_with("FRACTAL_Z"));
        let expected = if takes_groups {
            ARGUMENTS_WITH_GROUPS
        } else {
            ARGUMENTS
        };
        let path = script.path.display();
        let mut process = match self.take_process() {
            Ok(process) => process,
            Err(reason) => {
                // The converter cannot be inspected, but tensors that need it must fail.
                log::warning(&format!("[Custom] {path} cannot be used. {reason}"));
                return true;
            }
        };
        let n_arguments = process.count_arguments(&script.path);
        self.put_back(process);
        match n_arguments {
            Ok(n) if n == expected => true,
            Ok(n) => {
                log::warning(&format!(
                    "[Custom] The argument count ({n}) of 'convert' in {path} is not {expected}. \
                     Please check the file."
                ));
                false
            }
            Err(reason) => {
                log::warning(&format!("[Custom] Failed to load {path}. {reason}"));
                false
            }
        }
    }

    /// Returns an idle interpreter, or starts one.
    fn take_process(&self) -> Result<InterpreterProcess, String> {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        idle.map_or_else(InterpreterProcess::start, Ok)
    }

    fn put_back(&self, process: InterpreterProcess) {
        // An interpreter that failed is dropped: the next call starts a new one.
        if process.is_usable()
            && let Ok(mut idle) = self.idle.lock()
        {
            idle.push(process);
        }
    }
}

/// The files of a directory, sorted by name.
fn list(dir: &Path) -> Result<Vec<PathBuf>, ToolFailure> {
    let entries =
        std::fs::read_dir(dir).map_err(|error| ToolFailure::unexpected(error.to_string()))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            path.metadata()
                .is_ok_and(|m| m.is_file() && m.len() <= SCRIPT_BYTES_MAX)
        })
        .take(SCRIPTS_MAX)
        .collect();
    paths.sort();
    Ok(paths)
}

/// The layouts in a name such as `convert_{from}_to_{to}.py`.
fn layouts(name: &str) -> Option<(Layout, Layout)> {
    let stem = name
        .strip_suffix(".py")
        .or_else(|| name.strip_suffix(".pyc"))?;
    let is_word = stem.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let (from, to) = stem.strip_prefix("convert_")?.split_once("_to_")?;
    (is_word && stem.len() <= NAME_BYTES_MAX)
        .then_some((formats::from_name(from)?, formats::from_name(to)?))
}

/// A file called `convert_{from}_to_{to}.py` or `.pyc`.
fn script(path: &Path) -> Option<ConverterScript> {
    let name = path.file_name()?.to_str()?;
    let Some((from, to)) = layouts(name) else {
        log::warning(&format!(
            "The file '{name}' does not match 'convert_{{src_format}}_to_{{dest_format}}.py', \
             please check the file."
        ));
        return None;
    };
    let path = path.to_owned();
    Some(ConverterScript { from, to, path })
}
