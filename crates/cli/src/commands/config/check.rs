//! `opscope config check`.

use std::path::PathBuf;

use opscope_config::ConfigEnvironment;
use serde_json::Value;

use super::{ConfigVerdict, MindSporeTarget, ReadingMode};
use crate::commands::environment;
use crate::console;
use crate::exit::CommandFailure;

/// Say whether AscendCL or MindSpore would accept a configuration, and what in it has no effect
///
/// Whose file it is shows in its keys. Every finding is printed with file, line, column, the code
/// under which AscendCL reports it, and what is allowed. Directories are looked up, nothing is
/// created and nothing is run. `$HOME/` and `~/` at the beginning of `dump_path` are the user's
/// directory, with a note: AscendCL takes them literally.
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 all accepted, 2 one is refused, 3 one cannot be read.

Examples:
  opscope config check acl.json
  opscope config check --json acl.json
  opscope config check --target gpu data_dump.json"
)]
pub(super) struct CheckArguments {
    /// Configuration files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// For files of MindSpore: what it runs on [default: cpu, or ge if ENABLE_MS_GE_DUMP is 1]
    #[arg(long, value_enum)]
    target: Option<MindSporeTarget>,
    /// For files of MindSpore: the number of the device
    #[arg(long, value_name = "N", default_value = "0")]
    device: u32,
    /// Print one JSON object; for several files an array of them
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &CheckArguments) -> Result<(), CommandFailure> {
    let reading = ReadingMode {
        env: ConfigEnvironment {
            device_id: arguments.device,
            ..environment()?
        },
        target: arguments.target,
        is_for_run: false,
    };
    let mut code = None;
    let mut objects = Vec::new();
    for path in &arguments.files {
        let verdict = ConfigVerdict::read(path, &reading);
        // `None` is less than any code, so the worst file decides.
        code = code.max(verdict.exit_code());
        if arguments.json {
            objects.push(verdict.json(path));
        } else {
            verdict.print(path)?;
        }
    }
    if arguments.json {
        let value = match objects.len() {
            // One file is the usual case, and a program that gives one need not look for it in a
            // list.
            1 => objects.remove(0),
            _ => Value::Array(objects),
        };
        console::print_json(&value)?;
    }
    code.map_or(Ok(()), |code| Err(CommandFailure::silent(code)))
}
