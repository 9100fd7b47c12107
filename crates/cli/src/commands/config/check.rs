//! `opscope config check`.

use std::path::PathBuf;

use opscope_config::ConfigEnvironment;
use serde_json::Value;

use super::{ConfigVerdict, MindSporeTarget, ReadingMode};
use crate::commands::environment;
use crate::console;
use crate::exit::{CommandFailure, CommandResult};

/// Report whether AscendCL or MindSpore would accept a configuration, and which parts have no
/// effect
///
/// The keys show whose file it is. Every finding has file, line, column, the code under which
/// AscendCL reports it, and the allowed values. Directories are checked, but nothing is created or
/// run. `$HOME/` and `~/` at the beginning of `dump_path` expand to the user's directory, with a
/// note: AscendCL takes them literally.
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
    /// For MindSpore files: the backend [default: cpu, or ge if ENABLE_MS_GE_DUMP is 1]
    #[arg(long, value_enum)]
    target: Option<MindSporeTarget>,
    /// For MindSpore files: the device number
    #[arg(long, value_name = "N", default_value = "0")]
    device: u32,
    /// Print one JSON object, or an array for several files
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &CheckArguments) -> CommandResult {
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
        // `None` sorts below any code, so the worst file decides.
        code = code.max(verdict.exit_code());
        if arguments.json {
            objects.push(verdict.json(path));
        } else {
            verdict.print(path)?;
        }
    }
    if arguments.json {
        let value = match objects.len() {
            // For a single file, programs get the object itself rather than a list.
            1 => objects.remove(0),
            _ => Value::Array(objects),
        };
        console::print_json(&value)?;
    }
    code.map_or(Ok(()), |code| Err(CommandFailure::silent(code)))
}
