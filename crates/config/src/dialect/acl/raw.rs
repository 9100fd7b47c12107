//! The `dump` object of the file: every value has the right type, and none is checked yet.

use super::object::{ConfigRefusal, IssueCollector, JsonCursor, nearest_hint};
use crate::json::JsonValue;
use crate::report::RefusalReason;

/// Keys of the `dump` object.
pub(super) const DUMP_KEYS: &[&str] = &[
    "dump_path",
    "dump_list",
    "dump_mode",
    "dump_op_switch",
    "dump_data",
    "dump_stats",
    "dump_step",
    "dump_level",
    "dump_debug",
    "dump_scene",
    "dump_kernel_data",
];
/// Keys of an entry of `dump_list`.
const ENTRY_KEYS: &[&str] = &[
    "model_name",
    "layer",
    "watcher_nodes",
    "optype_blacklist",
    "opname_blacklist",
    "opname_range",
];
const BLACKLIST_KEYS: &[&str] = &["name", "pos"];
const RANGE_KEYS: &[&str] = &["begin", "end"];

/// A string.
pub(super) struct RawText<'a> {
    pub(super) at: JsonCursor<'a>,
    pub(super) value: &'a str,
}

/// An array.
pub(super) struct RawList<'a, T> {
    pub(super) at: JsonCursor<'a>,
    pub(super) members: Vec<T>,
}

/// The `dump` object.
pub(super) struct RawDump<'a> {
    pub(super) at: JsonCursor<'a>,
    pub(super) path: Option<RawText<'a>>,
    pub(super) mode: Option<RawText<'a>>,
    pub(super) op_switch: Option<RawText<'a>>,
    pub(super) level: Option<RawText<'a>>,
    pub(super) scene: Option<RawText<'a>>,
    pub(super) data: Option<RawText<'a>>,
    pub(super) debug: Option<RawText<'a>>,
    pub(super) kernel_data: Option<RawText<'a>>,
    pub(super) step: Option<RawText<'a>>,
    pub(super) stats: Option<RawList<'a, RawText<'a>>>,
    pub(super) list: Option<RawList<'a, RawModelEntry<'a>>>,
}

/// A member of `dump_list`.
pub(super) struct RawModelEntry<'a> {
    pub(super) at: JsonCursor<'a>,
    pub(super) model_name: Option<RawText<'a>>,
    pub(super) layer: Option<RawList<'a, RawText<'a>>>,
    pub(super) watcher_nodes: Option<RawList<'a, RawText<'a>>>,
    pub(super) optype_blacklist: Option<RawList<'a, RawBlacklistEntry<'a>>>,
    pub(super) opname_blacklist: Option<RawList<'a, RawBlacklistEntry<'a>>>,
    pub(super) opname_range: Option<RawList<'a, RawNameRange<'a>>>,
}

/// A member of a blacklist.
pub(super) struct RawBlacklistEntry<'a> {
    pub(super) at: JsonCursor<'a>,
    pub(super) name: Option<RawText<'a>>,
    pub(super) pos: Option<RawList<'a, RawText<'a>>>,
}

/// A member of `opname_range`.
pub(super) struct RawNameRange<'a> {
    pub(super) at: JsonCursor<'a>,
    pub(super) begin: Option<RawText<'a>>,
    pub(super) end: Option<RawText<'a>>,
}

impl<'a, T> RawList<'a, T> {
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl<'a> RawText<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.value.is_empty()
    }
}

impl<'a> RawDump<'a> {
    /// Checks the types, in the vendor's order. Unknown keys cause a warning.
    pub(super) fn read(
        at: JsonCursor<'a>,
        findings: &mut IssueCollector,
    ) -> Result<RawDump<'a>, ConfigRefusal> {
        // Unknown keys have no effect in the vendor's library, so they are not refused.
        warn_unknown(&at, DUMP_KEYS, findings);
        let mut texts = Vec::with_capacity(9);
        // Keys are in the order in which the vendor checks types; it reports only the first error.
        for key in [
            "dump_path",
            "dump_mode",
            "dump_op_switch",
            "dump_level",
            "dump_scene",
            "dump_data",
            "dump_debug",
            "dump_kernel_data",
            "dump_step",
        ] {
            texts.push(text(&at, key, findings)?);
        }
        let stats = list(&at, "dump_stats", findings, texts_of)?;
        let list = list(&at, "dump_list", findings, |list, findings| {
            elements(list, |entry: JsonCursor<'a>| {
                if !matches!(entry.value(), JsonValue::Object(_)) {
                    return Err(
                        findings.refuse(entry.wrong_type("an object", RefusalReason::NotObject))
                    );
                }
                RawModelEntry::read(entry, findings)
            })
        })?;
        // Fields follow the order of the keys above.
        let mut texts = texts.into_iter();
        let mut next = || texts.next().flatten();
        Ok(RawDump {
            path: next(),
            mode: next(),
            op_switch: next(),
            level: next(),
            scene: next(),
            data: next(),
            debug: next(),
            kernel_data: next(),
            step: next(),
            stats,
            list,
            at,
        })
    }
}

impl<'a> RawModelEntry<'a> {
    fn read(
        at: JsonCursor<'a>,
        findings: &mut IssueCollector,
    ) -> Result<RawModelEntry<'a>, ConfigRefusal> {
        warn_unknown(&at, ENTRY_KEYS, findings);
        Ok(RawModelEntry {
            model_name: text(&at, "model_name", findings)?,
            layer: list(&at, "layer", findings, texts_of)?,
            watcher_nodes: list(&at, "watcher_nodes", findings, texts_of)?,
            optype_blacklist: list(&at, "optype_blacklist", findings, excluded_of)?,
            opname_blacklist: list(&at, "opname_blacklist", findings, excluded_of)?,
            opname_range: list(&at, "opname_range", findings, ranges_of)?,
            at,
        })
    }
}

fn warn_unknown(at: &JsonCursor<'_>, known: &[&str], findings: &mut IssueCollector) {
    for member in at
        .members()
        .iter()
        .filter(|member| !known.contains(&member.name.as_str()))
    {
        let mut issue = at.member_warning(member, "unknown key, it has no effect");
        issue.hint = nearest_hint(&member.name, known);
        findings.warn(issue);
    }
}

fn text<'a>(
    parent: &JsonCursor<'a>,
    key: &str,
    findings: &mut IssueCollector,
) -> Result<Option<RawText<'a>>, ConfigRefusal> {
    let Some(at) = parent.member(key) else {
        return Ok(None);
    };
    match at.value() {
        JsonValue::String(value) => Ok(Some(RawText { value, at })),
        _ => Err(findings.refuse(at.wrong_type("a string", RefusalReason::NotString))),
    }
}

/// The array called `key`, with members read by `read`.
fn list<'a, T>(
    parent: &JsonCursor<'a>,
    key: &str,
    findings: &mut IssueCollector,
    read: impl FnOnce(Vec<JsonCursor<'a>>, &mut IssueCollector) -> Result<Vec<T>, ConfigRefusal>,
) -> Result<Option<RawList<'a, T>>, ConfigRefusal> {
    let Some(at) = parent.member(key) else {
        return Ok(None);
    };
    match at.elements() {
        Some(elements) => Ok(Some(RawList {
            members: read(elements, findings)?,
            at,
        })),
        None => Err(findings.refuse(at.wrong_type("an array", RefusalReason::NotArray))),
    }
}

fn elements<'a, T>(
    elements: Vec<JsonCursor<'a>>,
    read: impl FnMut(JsonCursor<'a>) -> Result<T, ConfigRefusal>,
) -> Result<Vec<T>, ConfigRefusal> {
    elements.into_iter().map(read).collect()
}

fn texts_of<'a>(
    members: Vec<JsonCursor<'a>>,
    findings: &mut IssueCollector,
) -> Result<Vec<RawText<'a>>, ConfigRefusal> {
    elements(members, |at| match at.value() {
        JsonValue::String(value) => Ok(RawText { value, at }),
        _ => Err(findings.refuse(at.wrong_type("a string", RefusalReason::MemberNotString))),
    })
}

/// The vendor checks the type of every member before the contents of any.
fn check_objects(
    members: &[JsonCursor<'_>],
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    match members
        .iter()
        .find(|at| !matches!(at.value(), JsonValue::Object(_)))
    {
        Some(at) => {
            Err(findings.refuse(at.wrong_type("an object", RefusalReason::MemberNotObject)))
        }
        None => Ok(()),
    }
}

fn excluded_of<'a>(
    members: Vec<JsonCursor<'a>>,
    findings: &mut IssueCollector,
) -> Result<Vec<RawBlacklistEntry<'a>>, ConfigRefusal> {
    check_objects(&members, findings)?;
    elements(members, |at| {
        warn_unknown(&at, BLACKLIST_KEYS, findings);
        Ok(RawBlacklistEntry {
            name: text(&at, "name", findings)?,
            pos: list(&at, "pos", findings, texts_of)?,
            at,
        })
    })
}

fn ranges_of<'a>(
    members: Vec<JsonCursor<'a>>,
    findings: &mut IssueCollector,
) -> Result<Vec<RawNameRange<'a>>, ConfigRefusal> {
    check_objects(&members, findings)?;
    elements(members, |at| {
        warn_unknown(&at, RANGE_KEYS, findings);
        Ok(RawNameRange {
            begin: text(&at, "begin", findings)?,
            end: text(&at, "end", findings)?,
            at,
        })
    })
}
