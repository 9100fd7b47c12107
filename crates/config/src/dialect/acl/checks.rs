//! Rules between settings, in the order of the vendor's checker.

use super::judge::RuleAuthority;
use super::object::{ConfigRefusal, IssueCollector, JsonCursor};
use super::raw::{RawBlacklistEntry, RawDump, RawList, RawModelEntry, RawText};
use super::settings::{AclSettings, DumpLevel, DumpScene};
use crate::ConfigIssue;
use crate::report::RefusalReason;

/// Maximum length of a blacklist.
const N_EXCLUDED_MAX: usize = 100;

/// Refuses settings that cannot be combined with `dump_scene`.
pub(super) fn scene(
    raw: &RawDump<'_>,
    settings: &AclSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    let (Some(scene), Some(word)) = (settings.scene, &raw.scene) else {
        return Ok(());
    };
    let other = ("dump_scene", word.value);
    conflict_with(settings.is_debug_on, &raw.debug, other, findings)?;
    conflict_with(settings.is_op_switch_on, &raw.op_switch, other, findings)?;
    // A watcher observes only outputs, so `dump_mode` may only be `output`.
    let is_mode_other = raw.mode.as_ref().is_some_and(|mode| mode.value != "output");
    conflict_with(
        scene == DumpScene::Watcher && is_mode_other,
        &raw.mode,
        other,
        findings,
    )
}

/// Refuses settings that cannot be combined with `dump_debug`, or warns about them.
///
/// The documentation calls an additional dump of models an error. The vendor's checker accepts it,
/// and its library then silently drops the overflows of models.
pub(super) fn debug(
    raw: &RawDump<'_>,
    settings: &AclSettings,
    judge: RuleAuthority,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    let debug = ("dump_debug", "on");
    let is_conflict = settings.is_debug_on && settings.is_op_switch_on;
    conflict_with(is_conflict, &raw.op_switch, debug, findings)?;
    // An empty list names no model, so it does not count.
    let list = raw.list.as_ref().filter(|list| !list.is_empty());
    let Some(list) = list.filter(|_| settings.is_debug_on) else {
        return Ok(());
    };
    let hint = Some("leave `dump_list` out".to_owned());
    // A dump that silently lacks the requested overflows is worse than a refusal.
    if judge == RuleAuthority::Documents {
        let issue = list.at.conflict(None, true, debug);
        return Err(findings.refuse(ConfigIssue { hint, ..issue }));
    }
    let message = "AscendCL accepts this with `dump_debug` and then dumps no overflow of a model; its \
                   documents call it an error, and Opscope refuses to dump with it";
    let issue = list.at.warning(message);
    findings.warn(ConfigIssue { hint, ..issue });
    Ok(())
}

/// The entries of `dump_list`.
pub(super) fn entries(
    raw: &RawDump<'_>,
    settings: &AclSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    let entries = raw.list.iter().flat_map(|list| &list.members);
    for entry in entries {
        // With the switch on, the vendor skips entries that select nothing; `lower.rs` warns about
        // them.
        if !settings.is_op_switch_on {
            selection(entry, findings)?;
        }
        watched(entry, settings, findings)?;
        let blacklists = [&entry.optype_blacklist, &entry.opname_blacklist];
        // All lengths are checked before any level, as in the vendor's checker.
        for list in blacklists.into_iter().flatten() {
            blacklist_length(list, findings)?;
        }
        for list in blacklists.into_iter().flatten() {
            needs_operator_level(&list.at, list.is_empty(), settings, findings)?;
        }
        ranges(entry, settings, findings)?;
    }
    Ok(())
}

/// `dump_stats`.
pub(super) fn stats(
    raw: &RawDump<'_>,
    settings: &AclSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    match &raw.stats {
        Some(stats) if stats.is_empty() => {
            Err(findings.refuse(stats.at.empty("at least one statistic")))
        }
        Some(stats) if !settings.is_statistics => {
            let mut issue = stats.at.conflict(None, true, ("dump_data", "tensor"));
            issue.hint = Some("set `dump_data` to `stats`".to_owned());
            Err(findings.refuse(issue))
        }
        _ => Ok(()),
    }
}

/// `EP0005` if `text` has a forbidden value.
fn conflict_with(
    is_conflict: bool,
    text: &Option<RawText<'_>>,
    other: (&str, &str),
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    match text {
        Some(text) if is_conflict => {
            Err(findings.refuse(text.at.conflict(Some(text.value), true, other)))
        }
        _ => Ok(()),
    }
}

/// A name or a layer list that selects nothing.
fn selection(
    entry: &RawModelEntry<'_>,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    if let Some(name) = entry.model_name.as_ref().filter(|name| name.is_empty()) {
        return Err(findings.refuse(name.at.empty("the name of a model")));
    }
    if let Some(layer) = entry.layer.as_ref().filter(|layer| layer.is_empty()) {
        let mut issue = layer.at.empty("names of operators");
        issue.hint = Some("without `layer` every operator is dumped".to_owned());
        return Err(findings.refuse(issue));
    }
    Ok(())
}

fn watched(
    entry: &RawModelEntry<'_>,
    settings: &AclSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    let expected = "names of operators to watch";
    let issue = match (settings.scene, &entry.watcher_nodes) {
        (Some(DumpScene::Watcher), None) => entry.at.missing("watcher_nodes", expected),
        (Some(DumpScene::Watcher), Some(nodes)) if nodes.is_empty() => nodes.at.empty(expected),
        (Some(DumpScene::Watcher), Some(_)) => match &entry.model_name {
            Some(name) => name.at.conflict(None, true, ("dump_scene", "watcher")),
            None => return Ok(()),
        },
        (_, Some(nodes)) if !nodes.is_empty() => {
            nodes.at.conflict(None, false, ("dump_scene", "watcher"))
        }
        _ => return Ok(()),
    };
    Err(findings.refuse(issue))
}

fn blacklist_length(
    list: &RawList<'_, RawBlacklistEntry<'_>>,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    let n = list.members.len();
    if n <= N_EXCLUDED_MAX {
        return Ok(());
    }
    let message = format!("found {n} entries, at most {N_EXCLUDED_MAX} are allowed");
    let issue = list
        .at
        .unusable(&n.to_string(), RefusalReason::TooManyExclusions, message);
    Err(findings.refuse(issue))
}

fn needs_operator_level(
    at: &JsonCursor<'_>,
    is_empty: bool,
    settings: &AclSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    // Kernels have no names for a blacklist or a range.
    if is_empty || settings.level == DumpLevel::Operators {
        return Ok(());
    }
    let mut issue = at.conflict(None, false, ("dump_level", "op"));
    issue.hint = Some("set `dump_level` to `op`".to_owned());
    Err(findings.refuse(issue))
}

fn ranges(
    entry: &RawModelEntry<'_>,
    settings: &AclSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    let Some(list) = entry.opname_range.as_ref().filter(|list| !list.is_empty()) else {
        return Ok(());
    };
    needs_operator_level(&list.at, false, settings, findings)?;
    let expected = "the name of the model that contains the range";
    match &entry.model_name {
        None => return Err(findings.refuse(entry.at.missing("model_name", expected))),
        Some(name) if name.is_empty() => return Err(findings.refuse(name.at.empty(expected))),
        Some(_) => {}
    }
    for range in &list.members {
        let [begin, end] =
            [&range.begin, &range.end].map(|end| end.as_ref().map_or("", |end| end.value));
        if begin.is_empty() || end.is_empty() {
            let value = format!("begin={begin}, end={end}");
            let message =
                "a range needs the names of its first operator, `begin`, and its last, `end`";
            let issue = range
                .at
                .unusable(&value, RefusalReason::RangeIncomplete, message);
            return Err(findings.refuse(issue));
        }
    }
    Ok(())
}
