//! A drop-in for the vendor's `msaccucmp`: `convert`, `overflow`, `compare` and `file_compare`.
//!
//! Scripts for the reference keep working: command line, names and bytes of the output files and
//! exit status are the same, including the reference's mistakes. `docs/msaccucmp.md` lists those,
//! with the result of `opscope convert`. Messages on stderr have the same meaning and form, but
//! their text is not guaranteed.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`arguments`], [`options`] | the command line, parsed like Python's `argparse` |
//! | [`paths`] | accepted paths |
//! | [`source`] | dump files of three kinds in one form |
//! | [`formats`], [`dtype`] | the reference's layouts and dtypes |
//! | [`mod@array`] | arrays with numpy's strides, which affect the npy header |
//! | [`layout`], [`mod@slice`] | conversion to another layout and cutting to the wanted shape |
//! | [`custom`] | users' converters in Python |
//! | [`numpy`] | array files, read like numpy |
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
/// 0 success, 1 an exception that the reference does not catch, 2 usage, and the reference's other
/// codes, listed in `docs/msaccucmp.md`. Never panics; every message is on stderr except the help.
pub fn run(args: &[OsString]) -> i32 {
    let args: Vec<String> = args
        .iter()
        // Paths lose nothing: the reference accepts only certain ASCII characters, and refuses the
        // replacement character like the original bytes.
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
            // The reference prints its closing line only after failures that it caught.
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

/// The same result with arguments escaped to one line each, as the message repeats some of them.
fn visible_stop(args: &[String], stop: options::OptionStop) -> options::OptionStop {
    let visible: Vec<String> = args.iter().map(|arg| visible(arg).into_owned()).collect();
    options::parse(&visible).err().unwrap_or(stop)
}

/// Whether a text contains fusion rules for `compare`.
pub fn is_fusion_rule(text: &str) -> bool {
    compare::is_fusion_rule(text)
}
