//! Reports files that were not read as part of a dump.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use opscope_store::dump::{PassReason, PassedOver};
use serde_json::{Value, json};

use crate::exit::{CommandFailure, CommandResult, UNREADABLE};
use crate::format;

/// Prints one line with counts; nothing if only files that every dump has were skipped.
pub(crate) fn print(out: &mut impl Write, passed_over: &[PassedOver]) -> CommandResult {
    let unusual = passed_over
        .iter()
        .filter(|entry| !entry.reason.is_ordinary());
    if let Some(text) = text(unusual) {
        writeln!(out, "skipped: {text}")?;
    }
    Ok(())
}

/// `2 tables of statistics, 1 hidden file or directory`; `None` if nothing was skipped.
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

/// All skipped files with their reasons.
pub(crate) fn to_json(passed_over: &[PassedOver]) -> Value {
    passed_over
        .iter()
        .map(|entry| json!({ "path": entry.path, "reason": entry.reason.name() }))
        .collect()
}

impl CommandFailure {
    /// The error for a directory without readable files.
    pub(crate) fn nothing_at(path: &Path, passed_over: &[PassedOver]) -> CommandFailure {
        let mut message = format!("`{}` holds no dump files", path.display());
        // Files that every dump has are counted too, because there is nothing else to list.
        if let Some(text) = text(passed_over) {
            message.push_str(&format!("; skipped: {text}"));
        }
        CommandFailure::message(UNREADABLE, message)
    }
}
