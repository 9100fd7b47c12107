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

use anyhow::anyhow;
use opscope_config::ConfigEnvironment;

use crate::exit::{CommandFailure, USAGE};

/// Returns the process state that configurations depend on.
fn environment() -> Result<ConfigEnvironment, CommandFailure> {
    // Configurations resolve relative paths against the current directory, which may have been
    // removed.
    ConfigEnvironment::of_process()
        .map_err(|error| CommandFailure::new(USAGE, anyhow!(error).context("no current directory")))
}
