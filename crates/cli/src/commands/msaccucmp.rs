//! `opscope msaccucmp`: the drop-in for the vendor's script.

use std::ffi::OsString;

use crate::exit::{CommandFailure, CommandResult};

/// Convert, inspect and compare dumps with the vendor's command line (drop-in for msaccucmp.py)
///
/// Implements `convert`, `overflow`, `compare` and `file_compare` with the options, output names,
/// bytes and exit codes of the vendor's `msaccucmp.py`, including its bugs. `opscope convert`
/// produces correct results instead.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct MsaccucmpArguments {
    /// The arguments of `msaccucmp.py`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(arguments: &MsaccucmpArguments) -> CommandResult {
    match opscope_msaccucmp::run(&arguments.arguments) {
        0 => Ok(()),
        code => Err(CommandFailure::silent(u8::try_from(code).unwrap_or(1))),
    }
}
