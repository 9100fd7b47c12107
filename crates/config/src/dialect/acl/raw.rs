//! The `dump` object as it stands in the file: every value of the right type, none looked at yet.

use super::object::{Cursor, Findings, Refused, nearest_hint};
use crate::json::Value;
use crate::report::Reason;

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
pub(super) struct Text<'a> {
    pub(super) at: Cursor<'a>,
    pub(super) value: &'a str,
}

/// An array.
pub(super) struct List<'a, T> {
    pub(super) at: Cursor<'a>,
    pub(super) members: Vec<T>,
}

/// The `dump` object.
pub(super) struct Raw<'a> {
    pub(super) at: Cursor<'a>,
    pub(super) path: Option<Text<'a>>,
    pub(super) mode: Option<Text<'a>>,
    pub(super) op_switch: Option<Text<'a>>,
    pub(super) level: Option<Text<'a>>,
    pub(super) scene: Option<Text<'a>>,
    pub(super) data: Option<Text<'a>>,
    pub(super) debug: Option<Text<'a>>,
    pub(super) kernel_data: Option<Text<'a>>,
    pub(super) step: Option<Text<'a>>,
    pub(super) stats: Option<List<'a, Text<'a>>>,
    pub(super) list: Option<List<'a, Entry<'a>>>,
}

/// A member of `dump_list`.
pub(super) struct Entry<'a> {
    pub(super) at: Cursor<'a>,
    pub(super) model_name: Option<Text<'a>>,
    pub(super) layer: Option<List<'a, Text<'a>>>,
    pub(super) watcher_nodes: Option<List<'a, Text<'a>>>,
    pub(super) optype_blacklist: Option<List<'a, Excluded<'a>>>,
    pub(super) opname_blacklist: Option<List<'a, Excluded<'a>>>,
    pub(super) opname_range: Option<List<'a, Range<'a>>>,
}

/// A member of a blacklist.
pub(super) struct Excluded<'a> {
    pub(super) at: Cursor<'a>,
    pub(super) name: Option<Text<'a>>,
    pub(super) pos: Option<List<'a, Text<'a>>>,
}

/// A member of `opname_range`.
pub(super) struct Range<'a> {
    pub(super) at: Cursor<'a>,
    pub(super) begin: Option<Text<'a>>,
    pub(super) end: Option<Text<'a>>,
}

impl<'a, T> List<'a, T> {
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl<'a> Text<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.value.is_empty()
    }
}

impl<'a> Raw<'a> {
    /// Checks the types, in the vendor's order. Keys that nobody knows are warned about.
    pub(super) fn read(at: Cursor<'a>, findings: &mut Findings) -> Result<Raw<'a>, Refused> {
        // Unknown keys have no effect in the vendor's library, so they are no reason to refuse the
        // file.
        warn_unknown(&at, DUMP_KEYS, findings);
        let mut texts = Vec::with_capacity(9);
        // The order of the keys is that in which the vendor checks types; of several errors it
        // tells only the first.
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
            elements(list, |entry: Cursor<'a>| {
                if !matches!(entry.value(), Value::Object(_)) {
                    return Err(findings.refuse(entry.wrong_type("an object", Reason::NotObject)));
                }
                Entry::read(entry, findings)
            })
        })?;
        // Fields are taken in the order of the keys above.
        let mut texts = texts.into_iter();
        let mut next = || texts.next().flatten();
        Ok(Raw {
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

impl<'a> Entry<'a> {
    fn read(at: Cursor<'a>, findings: &mut Findings) -> Result<Entry<'a>, Refused> {
        warn_unknown(&at, ENTRY_KEYS, findings);
        Ok(Entry {
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

fn warn_unknown(at: &Cursor<'_>, known: &[&str], findings: &mut Findings) {
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
    parent: &Cursor<'a>,
    key: &str,
    findings: &mut Findings,
) -> Result<Option<Text<'a>>, Refused> {
    let Some(at) = parent.member(key) else {
        return Ok(None);
    };
    match at.value() {
        Value::String(value) => Ok(Some(Text { value, at })),
        _ => Err(findings.refuse(at.wrong_type("a string", Reason::NotString))),
    }
}

/// The array called `key`, its members read by `read`.
fn list<'a, T>(
    parent: &Cursor<'a>,
    key: &str,
    findings: &mut Findings,
    read: impl FnOnce(Vec<Cursor<'a>>, &mut Findings) -> Result<Vec<T>, Refused>,
) -> Result<Option<List<'a, T>>, Refused> {
    let Some(at) = parent.member(key) else {
        return Ok(None);
    };
    match at.elements() {
        Some(elements) => Ok(Some(List {
            members: read(elements, findings)?,
            at,
        })),
        None => Err(findings.refuse(at.wrong_type("an array", Reason::NotArray))),
    }
}

fn elements<'a, T>(
    elements: Vec<Cursor<'a>>,
    read: impl FnMut(Cursor<'a>) -> Result<T, Refused>,
) -> Result<Vec<T>, Refused> {
    elements.into_iter().map(read).collect()
}

fn texts_of<'a>(
    members: Vec<Cursor<'a>>,
    findings: &mut Findings,
) -> Result<Vec<Text<'a>>, Refused> {
    elements(members, |at| match at.value() {
        Value::String(value) => Ok(Text { value, at }),
        _ => Err(findings.refuse(at.wrong_type("a string", Reason::MemberNotString))),
    })
}

/// The vendor looks at the type of every member before it looks into one.
fn check_objects(members: &[Cursor<'_>], findings: &mut Findings) -> Result<(), Refused> {
    match members
        .iter()
        .find(|at| !matches!(at.value(), Value::Object(_)))
    {
        Some(at) => Err(findings.refuse(at.wrong_type("an object", Reason::MemberNotObject))),
        None => Ok(()),
    }
}

fn excluded_of<'a>(
    members: Vec<Cursor<'a>>,
    findings: &mut Findings,
) -> Result<Vec<Excluded<'a>>, Refused> {
    check_objects(&members, findings)?;
    elements(members, |at| {
        warn_unknown(&at, BLACKLIST_KEYS, findings);
        Ok(Excluded {
            name: text(&at, "name", findings)?,
            pos: list(&at, "pos", findings, texts_of)?,
            at,
        })
    })
}

fn ranges_of<'a>(
    members: Vec<Cursor<'a>>,
    findings: &mut Findings,
) -> Result<Vec<Range<'a>>, Refused> {
    check_objects(&members, findings)?;
    elements(members, |at| {
        warn_unknown(&at, RANGE_KEYS, findings);
        Ok(Range {
            begin: text(&at, "begin", findings)?,
            end: text(&at, "end", findings)?,
            at,
        })
    })
}
