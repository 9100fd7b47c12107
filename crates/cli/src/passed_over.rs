//! Telling of files that were not read as a part of a dump.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use opscope_store::dump::{PassReason, PassedOver};
use serde_json::{Value, json};

use crate::exit::{CommandFailure, UNREADABLE};
use crate::format;

/// One line with numbers, nothing where there is only what every dump has.
pub(crate) fn print(
    out: &mut impl Write,
    passed_over: &[PassedOver],
) -> Result<(), CommandFailure> {
    let told = passed_over.iter().filter(|one| !one.reason.is_ordinary());
    if let Some(text) = text(told) {
        writeln!(out, "passed over: {text}")?;
    }
    Ok(())
}

/// `2 tables of statistics, 1 hidden file or directory`; none where there is nothing.
pub(crate) fn text<'a>(passed_over: impl IntoIterator<Item = &'a PassedOver>) -> Option<String> {
    let mut counts: BTreeMap<PassReason, u64> = BTreeMap::new();
    for one in passed_over {
        *counts.entry(one.reason).or_default() += 1;
    }
    let parts = counts.into_iter();
    let parts: Vec<String> = parts
        .map(|(reason, n)| format::count_as(n, reason.nouns()))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// All of them, each with its reason.
pub(crate) fn to_json(passed_over: &[PassedOver]) -> Value {
    let one = |one: &PassedOver| json!({ "path": one.path, "reason": one.reason.name() });
    passed_over.iter().map(one).collect()
}

impl CommandFailure {
    /// A directory in which there is nothing to read.
    pub(crate) fn nothing_at(path: &Path, passed_over: &[PassedOver]) -> CommandFailure {
        let mut message = format!("`{}` holds no dump files", path.display());
        // Files that every dump has are counted here too, as there is nothing else.
        if let Some(text) = text(passed_over) {
            message.push_str(&format!("; passed over: {text}"));
        }
        CommandFailure::message(UNREADABLE, message)
    }
}
