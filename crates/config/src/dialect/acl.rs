//! AscendCL's `acl.json`: its `dump` object, and the variables that replace it.
//!
//! `docs/config/acl.md` lists every key. The vendor's checker determines which files are refused,
//! with which codes and in which order; unknown keys have no effect there and cause a warning here.
//!
//! A file passes five stages: types (`raw`), words (`settings`), rules between settings (`checks`,
//! `dump_path`, `dump_step`), the plan (`lower`), and what has no effect (`notes`).

mod checks;
mod dump;
mod dump_path;
mod dump_step;
mod explain;
mod judge;
mod lower;
mod notes;
mod object;
mod raw;
mod settings;
mod surroundings;

use self::judge::RuleAuthority;
use self::object::{ConfigRefusal, IssueCollector, JsonCursor, nearest_hint, top_level_warning};
use self::raw::RawDump;
use crate::json::{self, JsonMember, JsonValue};
use crate::text_position::TextPosition;
use crate::{ConfigEnvironment, ConfigIssue, Severity};

pub use dump::{AclConfig, AclContent, AclDump, DumpMode};
pub use explain::explain;
pub use settings::{AclSettings, DumpLevel, DumpScene};
pub use surroundings::{failures_in_force, from_environment};

/// The scope of the error reports that the library returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportScope {
    /// Reports of the calling thread.
    #[default]
    Thread,
    /// Reports of the whole process.
    Process,
}

/// Top-level keys, of which Opscope reads the first two.
const TOP_LEVEL_KEYS: &[&str] = &[
    DUMP,
    REPORT_SCOPE,
    "profiler",
    "max_opqueue_num",
    "defaultDevice",
    "StackSize",
    "simd_printf_fifo_size_per_core",
    "simt_printf_fifo_size_per_core",
    "acl_graph",
];
const DUMP: &str = "dump";
const REPORT_SCOPE: &str = "err_msg_mode";

/// Checks `text` and lowers it to a plan, following the documentation. Directories are checked,
/// none is created.
///
/// Only the parser limits nesting here: see [`crate::check_nesting`].
///
/// # Errors
/// The issues, if any is an error; errors come first, in the vendor's order.
pub fn load(text: &str, env: &ConfigEnvironment) -> Result<AclConfig, Vec<ConfigIssue>> {
    judge(text, env, RuleAuthority::Documents)
}

/// [`load`] with the verdict of the vendor's checker, also in the two cases where it contradicts
/// the documentation: a `dump_list` next to `dump_debug`, and a `dump_path` that is the home
/// directory itself.
///
/// # Errors
/// As for [`load`].
pub fn check(text: &str, env: &ConfigEnvironment) -> Result<AclConfig, Vec<ConfigIssue>> {
    judge(text, env, RuleAuthority::Checker)
}

fn judge(
    text: &str,
    env: &ConfigEnvironment,
    judge: RuleAuthority,
) -> Result<AclConfig, Vec<ConfigIssue>> {
    let mut findings = IssueCollector::default();
    // To the vendor's library an empty file means "no configuration", not an error.
    if text.is_empty() {
        return Ok(nothing(None, findings, "the file is empty"));
    }
    let root = json::parse(text).map_err(|issue| vec![*issue])?;
    let JsonValue::Object(members) = &root.value else {
        // The vendor's checker only searches the member `dump`, and finds none in any other value.
        return Ok(nothing(None, findings, "the file contains no object"));
    };
    warn_unknown(members, &mut findings);
    let Some(dump) = member(members, DUMP) else {
        return Ok(nothing(None, findings, "there is no `dump` object"));
    };
    match lower(JsonCursor::dump(&dump.node), (env, judge), &mut findings) {
        Err(ConfigRefusal) => Err(findings.into_issues()),
        Ok((settings, Some(dump))) => Ok(AclConfig {
            dump: Some(dump),
            settings,
            issues: findings.into_issues(),
        }),
        Ok((None, None)) => Ok(nothing(None, findings, "the `dump` object is empty")),
        Ok((settings, None)) => {
            let why = "`dump_list` has no entry and `dump_op_switch` is not on";
            Ok(nothing(settings, findings, why))
        }
    }
}

/// Reads `err_msg_mode`: absent, or the string `0` or `1`.
///
/// # Errors
/// If it is anything else, or the file is not valid JSON.
pub fn report_scope(text: &str) -> Result<ReportScope, Box<ConfigIssue>> {
    if text.is_empty() {
        return Ok(ReportScope::default());
    }
    let root = json::parse(text)?;
    let JsonValue::Object(members) = &root.value else {
        return Ok(ReportScope::default());
    };
    let Some(member) = member(members, REPORT_SCOPE) else {
        return Ok(ReportScope::default());
    };
    let found = match &member.node.value {
        JsonValue::String(text) if text == "0" => return Ok(ReportScope::Thread),
        JsonValue::String(text) if text == "1" => return Ok(ReportScope::Process),
        JsonValue::String(text) => format!("`{}`", object::shown(text)),
        other => other.kind().to_owned(),
    };
    let expected = "the string `0` or `1`".to_owned();
    Err(Box::new(ConfigIssue {
        pointer: format!("/{REPORT_SCOPE}"),
        item: REPORT_SCOPE.to_owned(),
        message: format!("found {found}, expected {expected}"),
        found: Some(found),
        expected: Some(expected),
        ..ConfigIssue::of_file(Severity::Error, member.node.place, "")
    }))
}

fn member<'a>(members: &'a [JsonMember], name: &str) -> Option<&'a JsonMember> {
    members.iter().find(|member| member.name == name)
}

fn warn_unknown(members: &[JsonMember], findings: &mut IssueCollector) {
    for member in members {
        let name = member.name.as_str();
        if !TOP_LEVEL_KEYS.contains(&name) {
            let message = "unknown key, it has no effect".to_owned();
            let mut issue = top_level_warning(name, member.place, message);
            issue.hint = nearest_hint(name, TOP_LEVEL_KEYS);
            // The most frequent mistake is a key one level too high.
            if raw::DUMP_KEYS.contains(&name) {
                issue.hint = Some(format!("`{name}` belongs in the `dump` object"));
            }
            findings.warn(issue);
        }
    }
}

fn nothing(settings: Option<AclSettings>, mut findings: IssueCollector, why: &str) -> AclConfig {
    let start = TextPosition { line: 1, column: 1 };
    let message = format!("nothing is dumped: {why}");
    findings.push(ConfigIssue::of_file(Severity::Warning, start, message));
    AclConfig {
        dump: None,
        settings,
        issues: findings.into_issues(),
    }
}

/// The settings, and the requested dump.
type Lowered = (Option<AclSettings>, Option<AclDump>);

fn lower(
    dump: JsonCursor<'_>,
    judged: (&ConfigEnvironment, RuleAuthority),
    findings: &mut IssueCollector,
) -> Result<Lowered, ConfigRefusal> {
    if !matches!(dump.value(), JsonValue::Object(_)) {
        let issue = dump.wrong_type("an object", crate::RefusalReason::NotObject);
        return Err(findings.refuse(issue));
    }
    if dump.members().is_empty() {
        return Ok((None, None));
    }
    let raw = RawDump::read(dump, findings)?;
    let settings = AclSettings::read(&raw, findings)?;
    let dump = dump_of(&raw, &settings, judged, findings)?;
    notes::without_effect(&raw, dump.as_ref(), findings);
    Ok((Some(settings), dump))
}

/// Runs the checks of the requested mode, and returns its dump.
fn dump_of(
    raw: &RawDump<'_>,
    settings: &AclSettings,
    (env, judge): (&ConfigEnvironment, RuleAuthority),
    findings: &mut IssueCollector,
) -> Result<Option<AclDump>, ConfigRefusal> {
    checks::scene(raw, settings, findings)?;
    if let Some(DumpScene::Failures(detail)) = settings.scene {
        dump_path::note_home(raw.path.as_ref(), env, findings);
        let places = dump_path::failure_places(raw.path.as_ref(), env);
        return Ok(Some(lower::failures(detail, places)));
    }
    // The checks follow the vendor's order: of several faults its report names the first.
    let place = dump_path::check(raw, env, judge, findings)?;
    checks::debug(raw, settings, judge, findings)?;
    if settings.is_debug_on {
        return Ok(Some(lower::overflow(raw, place)));
    }
    let steps = match &raw.step {
        Some(text) => dump_step::read(text, findings)?,
        None => opscope_capture::Steps::every(),
    };
    // These come last, since the vendor checks the list only for dumps of values.
    checks::entries(raw, settings, findings)?;
    checks::stats(raw, settings, findings)?;
    Ok(lower::values(raw, settings, steps, place, findings))
}

#[cfg(test)]
mod tests;
