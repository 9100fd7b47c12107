//! Colours of levels on terminals.

use std::env::var_os;
use std::ffi::OsString;

use opscope_analysis::compare::result::VerdictLevel;

use crate::console;

const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[1;31m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

/// Every terminal sequence that a comparison prints.
pub(super) const SEQUENCES: &[&str] = &[GREEN, YELLOW, RED, DIM, RESET];

/// Whether standard output takes colours: `NO_COLOR` disables them, `CLICOLOR_FORCE` forces them,
/// otherwise terminals that support colours get them.
pub(super) fn is_wanted() -> bool {
    if variable("NO_COLOR").is_some() {
        return false;
    }
    if let Some(value) = variable("CLICOLOR_FORCE")
        && value != "0"
    {
        return true;
    }
    let is_refused = variable("CLICOLOR").is_some_and(|value| value == "0");
    // Without `TERM` nothing is known of the terminal, and `dumb` is the name of one that prints
    // sequences as text.
    let is_dumb = variable("TERM").is_none_or(|term| term == "dumb");
    console::is_terminal() && !is_refused && !is_dumb
}

/// An environment variable. By convention an empty one counts as unset.
fn variable(name: &str) -> Option<OsString> {
    var_os(name).filter(|value| !value.is_empty())
}

/// A text in the colour of a level.
pub(super) fn painted(text: &str, level: VerdictLevel, is_coloured: bool) -> String {
    if !is_coloured {
        return text.to_owned();
    }
    let code = match level {
        VerdictLevel::Pass => GREEN,
        VerdictLevel::Warn => YELLOW,
        VerdictLevel::Fail => RED,
        VerdictLevel::Skip => DIM,
    };
    format!("{code}{text}{RESET}")
}
