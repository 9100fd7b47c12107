//! Warnings about accepted settings without effect in the chosen mode.

use super::dump::{AclDump, DumpMode};
use super::object::{IssueCollector, JsonCursor};
use super::raw::RawDump;

/// Warns about everything in `raw` that does not affect `dump`.
pub(super) fn without_effect(
    raw: &RawDump<'_>,
    dump: Option<&AclDump>,
    findings: &mut IssueCollector,
) {
    if let Some(text) = &raw.kernel_data {
        let message = "it has no effect: kernels that print, assert or read the time are not run";
        findings.warn(text.at.warning(message));
    }
    match dump.map(|dump| dump.mode) {
        Some(DumpMode::Failures(_)) => {
            let when = "with an exception scene in `dump_scene`";
            if let Some(list) = raw.list.as_ref().filter(|list| !list.is_empty()) {
                let message =
                    format!("it has no effect {when}: operators of every model are dumped");
                findings.warn(list.at.warning(message));
            }
            // Dumps of failures and of overflows write whole tensors of both sides at any step,
            // regardless of these keys.
            warn_all(raw, when, findings);
        }
        Some(DumpMode::Overflow) => warn_all(raw, "with `dump_debug` on", findings),
        Some(DumpMode::Operator | DumpMode::SingleOperators | DumpMode::Watcher) | None => {}
    }
}

/// Warns about settings that only affect dumps of values.
fn warn_all(raw: &RawDump<'_>, when: &str, findings: &mut IssueCollector) {
    let texts = [&raw.level, &raw.data, &raw.step].into_iter().flatten();
    let mut all: Vec<&JsonCursor<'_>> = texts.map(|text| &text.at).collect();
    all.extend(raw.stats.as_ref().map(|stats| &stats.at));
    for at in all {
        let message = format!("it has no effect {when}");
        findings.warn(at.warning(message));
    }
    // `all` is the actual behaviour, so it needs no warning.
    if let Some(mode) = raw.mode.as_ref().filter(|mode| mode.value != "all") {
        let message = format!("it has no effect {when}: both sides are dumped");
        findings.warn(mode.at.warning(message));
    }
}
