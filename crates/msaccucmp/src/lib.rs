//! A drop-in for the vendor's `msaccucmp`: `convert`, `overflow`, `compare` and `file_compare`.
//!
//! Scripts that call the reference go on working: the same command line, names and bytes of the
//! output files and exit status, the reference's mistakes included. `docs/msaccucmp.md` lists
//! those, with what `opscope convert` gives instead. The texts on stderr say the same in the same
//! form, but are no contract.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`arguments`], [`options`] | the command line, read as Python's `argparse` reads it |
//! | [`paths`] | which paths are accepted |
//! | [`source`] | dump files of three kinds, brought into one form |
//! | [`formats`], [`dtype`] | what the reference knows of layouts and dtypes |
//! | [`mod@array`] | arrays with strides, as numpy has them, because they show in the npy header |
//! | [`layout`], [`mod@slice`] | conversion to another layout and cutting to the wanted shape |
//! | [`custom`] | converters that users wrote in Python |
//! | [`numpy`] | array files, as numpy reads them |
//! | [`names`], [`output`] | output files |
//! | [`convert`], [`overflow`], [`compare`] | the commands |

mod arguments;
mod array;
mod compare;
mod convert;
mod custom;
mod dtype;
mod failure;
mod formats;
mod layout;
mod log;
mod names;
mod numpy;
mod options;
mod output;
mod overflow;
mod paths;
mod slice;
mod source;

use std::ffi::OsString;
use std::time::Instant;

use opscope_store::visible::visible;

use failure::ToolFailure;
use options::ToolCommand;

/// Runs the drop-in on the words after `msaccucmp` and returns its exit status.
///
/// 0 fine, 1 what the reference does not catch, 2 usage, and the reference's other codes as
/// `docs/msaccucmp.md` lists them. Never panics; every message is on stderr except the help.
pub fn run(args: &[OsString]) -> i32 {
    let args: Vec<String> = args
        .iter()
        // Nothing is lost for paths: the reference accepts certain ASCII characters alone, and the
        // replacement character breaks that rule as the original bytes would.
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let command = match options::parse(&args) {
        Ok(command) => command,
        Err(stop) => return visible_stop(&args, stop).finish(),
    };
    let start = Instant::now();
    log::warn_if_root();
    let result = match &command {
        ToolCommand::Convert(options) => convert::run(options),
        ToolCommand::Overflow(options) => overflow::run(options),
        ToolCommand::Compare(options) => compare::run(options),
        ToolCommand::FileCompare(options) => compare::run_files(options),
    };
    let status = match result {
        Ok(()) => 0,
        Err(ToolFailure::Unexpected(message)) => {
            log::error(&format!("Basic error running msaccucmp: {message}"));
            // The reference prints its closing line only where it caught what went wrong.
            return failure::UNEXPECTED_STATUS;
        }
        Err(failure) => {
            failure.log();
            failure.status()
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    log::info(&format!(
        "The command was completed and took {seconds:.1} seconds."
    ));
    status
}

/// The same end with arguments that are one line each, as the message repeats some of them.
fn visible_stop(args: &[String], stop: options::OptionStop) -> options::OptionStop {
    let visible: Vec<String> = args.iter().map(|arg| visible(arg).into_owned()).collect();
    options::parse(&visible).err().unwrap_or(stop)
}

/// Whether a text holds fusion rules that `compare` takes.
pub fn is_fusion_rule(text: &str) -> bool {
    compare::is_fusion_rule(text)
}
