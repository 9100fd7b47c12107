//! One module for each command.

pub(crate) mod cluster;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod gears;
pub(crate) mod index;
pub(crate) mod man;
pub(crate) mod mcp;
mod mindspore_target;
pub(crate) mod model_experiments;
pub(crate) mod msaccucmp;
pub(crate) mod nan;
pub(crate) mod op;
pub(crate) mod overflow;
mod ranked_run;
pub(crate) mod ranks;
pub(crate) mod replay;
mod saved_result;
pub(crate) mod sensitivity;
pub(crate) mod show;
pub(crate) mod sql;
pub(crate) mod verify;
pub(crate) mod view;

use std::path::Path;

use anyhow::anyhow;
use opscope_config::ConfigEnvironment;

use crate::exit::{CommandFailure, CommandResult, USAGE};

/// The line that ends a report: the command to type next, with paths quoted for a shell.
fn next_line(command: &str, paths: &[&Path]) -> String {
    let paths = paths
        .iter()
        .map(|path| diff::quote(&path.to_string_lossy()));
    let words: Vec<String> = std::iter::once(command.to_owned()).chain(paths).collect();
    format!("next: opscope {}", words.join(" "))
}

/// Returns the process state that configurations depend on.
fn environment() -> CommandResult<ConfigEnvironment> {
    // Configurations resolve relative paths against the current directory, which may have been
    // removed.
    ConfigEnvironment::of_process()
        .map_err(|error| CommandFailure::new(USAGE, anyhow!(error).context("no current directory")))
}
