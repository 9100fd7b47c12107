//! Colours of levels on terminals.

use std::env::var_os;
use std::ffi::OsStr;

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
    // By convention an empty `NO_COLOR` counts as unset.
    let get = |name: &str| var_os(name).filter(|value| !value.is_empty());
    let is_zero = |value: &OsStr| value == "0";
    if get("NO_COLOR").is_some() {
        return false;
    }
    if let Some(value) = get("CLICOLOR_FORCE")
        && !is_zero(&value)
    {
        return true;
    }
    let is_refused = get("CLICOLOR").is_some_and(|value| is_zero(&value));
    let is_dumb = get("TERM").is_none_or(|term| term == "dumb");
    console::is_terminal() && !is_refused && !is_dumb
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
