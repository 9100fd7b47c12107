//! The `dump` object of AscendCL's `acl.json`, its model-dump part.
//!
//! `docs/config/acl.md` lists every key. What this version does not implement is refused at its
//! place, never ignored. Order of the checks and report codes follow the vendor's checker.

mod dump_list;
mod dump_path;
mod dump_step;
mod object;

use std::path::{Path, PathBuf};

use opscope_capture::sink::Content;
use opscope_capture::{ModelSelection, OperatorSelection, Plan, Sides, Steps};

use self::object::{Cursor, Findings};
use crate::json::{self, Value};
use crate::{Issue, Severity};

pub use dump_path::expand_home;

/// What a configuration asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclConfig {
    /// The dump to make, or `None` if the configuration is accepted and asks for nothing.
    pub dump: Option<AclDump>,
    /// Warnings; no errors.
    pub issues: Vec<Issue>,
}

/// A dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclDump {
    /// What to keep of models.
    pub plan: Plan,
    /// The directory, made absolute; it exists.
    pub dump_path: PathBuf,
    /// What to write of a tensor.
    pub content: Content,
    /// Whether operators that run outside a model are kept too.
    pub has_single_operators: bool,
}

/// Keys of the `dump` object that model dump uses.
const SUPPORTED: &[&str] = &[
    "dump_list",
    "dump_path",
    "dump_mode",
    "dump_data",
    "dump_op_switch",
    "dump_step",
];
/// Keys of other modes, each with the value that switches it off and is accepted for that reason.
const OFF: &[(&str, &str)] = &[("dump_debug", "off"), ("dump_level", "all")];
/// Keys of other modes that have no such value.
const OTHER: &[&str] = &["dump_scene", "dump_stats", "dump_kernel_data"];

/// Checks `text` and lowers it to a plan. A relative `dump_path` is taken from `current_dir`.
///
/// # Errors
/// The issues, in the order in which the vendor's checker looks, if any of them is an error.
pub fn load(text: &str, current_dir: &Path) -> Result<AclConfig, Vec<Issue>> {
    if text.is_empty() {
        return Ok(nothing(Findings::default(), "the file is empty"));
    }
    let root = json::parse(text).map_err(|issue| vec![issue])?;
    let mut findings = Findings::default();
    let Value::Object(members) = &root.value else {
        return Ok(nothing(findings, "the file holds no object"));
    };
    for member in members.iter().filter(|member| member.name != "dump") {
        let message = "has no effect: Opscope reads `dump` only";
        findings.warn(&format!("/{}", member.name), member.place, message);
    }
    let Some(dump) = members.iter().find(|member| member.name == "dump") else {
        return Ok(nothing(findings, "there is no `dump` object"));
    };
    let dump = Cursor::new("/dump", &dump.node);
    let result = lower(&dump, current_dir, &mut findings);
    match result {
        Some(_) if findings.has_error() => Err(findings.into_issues()),
        Some(Some(dump)) => Ok(AclConfig {
            dump: Some(dump),
            issues: findings.into_issues(),
        }),
        Some(None) => Ok(nothing(
            findings,
            "`dump_list` names no model and `dump_op_switch` is off",
        )),
        None => Err(findings.into_issues()),
    }
}

fn nothing(mut findings: Findings, why: &str) -> AclConfig {
    findings.warn(
        "",
        crate::Place { line: 1, column: 1 },
        &format!("nothing is dumped: {why}"),
    );
    AclConfig {
        dump: None,
        issues: findings.into_issues(),
    }
}

/// `None` if an error was found, `Some(None)` if nothing is to be dumped.
fn lower(
    dump: &Cursor<'_>,
    current_dir: &Path,
    findings: &mut Findings,
) -> Option<Option<AclDump>> {
    let members = dump.object(findings)?;
    if members.is_empty() {
        return Some(None);
    }
    refuse_unsupported(dump, findings)?;
    let path = dump
        .member("dump_path")
        .map(|c| c.string(findings))
        .transpose_option()?;
    let mode = one_of(
        dump,
        "dump_mode",
        &["all", "input", "output"],
        "output",
        findings,
    )?;
    let switch = one_of(dump, "dump_op_switch", &["off", "on"], "off", findings)?;
    let data = one_of(dump, "dump_data", &["stats", "tensor"], "tensor", findings)?;
    if data == "stats" {
        let at = dump.member("dump_data")?;
        findings.error(
            "EP0002",
            at.pointer(),
            at.place(),
            "`stats` is not supported yet",
        );
        return None;
    }
    let step = dump
        .member("dump_step")
        .map(|c| c.string(findings))
        .transpose_option()?;
    let list = match dump.member("dump_list") {
        Some(list) => dump_list::read(&list, switch == "on", findings)?,
        None => Vec::new(),
    };
    let dump_path = dump_path::check(dump, path, current_dir, findings)?;
    let steps = match step {
        Some(text) => dump_step::read(&dump.member("dump_step")?, text, findings)?,
        None => Steps::every(),
    };
    let is_list_given = dump
        .member("dump_list")
        .is_some_and(|c| c.array(findings).is_some_and(|l| !l.is_empty()));
    let models = match (is_list_given, switch) {
        (true, _) => dump_list::models(list),
        (false, "on") => ModelSelection::Every(OperatorSelection::every()),
        (false, _) => return Some(None),
    };
    let sides = match mode {
        "input" => Sides::Inputs,
        "all" => Sides::Both,
        _ => Sides::Outputs,
    };
    Some(Some(AclDump {
        plan: Plan {
            models,
            sides,
            steps,
            ..Plan::everything()
        },
        dump_path,
        content: Content::Tensors,
        has_single_operators: switch == "on",
    }))
}

/// Reports every key that asks for something this version does not do.
fn refuse_unsupported(dump: &Cursor<'_>, findings: &mut Findings) -> Option<()> {
    let n_before = findings.n_errors();
    for (name, place, node) in dump.members() {
        let pointer = format!("/dump/{name}");
        let off = OFF.iter().find(|(key, _)| *key == name);
        let is_off = off.is_some_and(|(_, off)| node.value == Value::String((*off).to_owned()));
        if SUPPORTED.contains(&name) || is_off {
            continue;
        }
        let message = match off {
            Some((_, off)) => format!("only `{off}` is supported yet"),
            None if OTHER.contains(&name) => "is not supported yet".to_owned(),
            None => {
                let nearest = nearest(name, &[SUPPORTED, OTHER].concat());
                let hint = nearest.map(|key| format!("; did you mean `{key}`?"));
                format!("unknown key, not supported{}", hint.unwrap_or_default())
            }
        };
        findings.push(Severity::Error, None, &pointer, place, &message);
    }
    (findings.n_errors() == n_before).then_some(())
}

/// The value of a key that takes one of a few words.
fn one_of<'a>(
    dump: &Cursor<'a>,
    key: &str,
    allowed: &[&str],
    default: &'a str,
    findings: &mut Findings,
) -> Option<&'a str> {
    let Some(cursor) = dump.member(key) else {
        return Some(default);
    };
    let value = cursor.string(findings)?;
    if value.is_empty() {
        findings.error(
            "EP0001",
            cursor.pointer(),
            cursor.place(),
            "the value is empty",
        );
        return None;
    }
    if !allowed.contains(&value) {
        let message = format!("found `{value}`, expected {}", allowed.join("/"));
        findings.error("EP0002", cursor.pointer(), cursor.place(), &message);
        return None;
    }
    Some(value)
}

/// The known word with the fewest edits, if there are at most three.
fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |other: &str| {
        let other: Vec<char> = other.chars().collect();
        let mut row: Vec<usize> = (0..=other.len()).collect();
        for (i, a) in word.chars().enumerate() {
            let mut diagonal = row[0];
            row[0] = i + 1;
            for (j, &b) in other.iter().enumerate() {
                let substituted = diagonal + usize::from(a != b);
                diagonal = row[j + 1];
                row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
            }
        }
        row[other.len()]
    };
    known
        .iter()
        .map(|key| (distance(key), *key))
        .filter(|(n, _)| *n <= 3)
        .min()
        .map(|(_, k)| k)
}

/// `Option<Option<T>>` the other way round: an absent key is fine, a bad value is not.
trait TransposeOption<T> {
    fn transpose_option(self) -> Option<Option<T>>;
}

impl<T> TransposeOption<T> for Option<Option<T>> {
    fn transpose_option(self) -> Option<Option<T>> {
        match self {
            None => Some(None),
            Some(Some(value)) => Some(Some(value)),
            Some(None) => None,
        }
    }
}

#[cfg(test)]
mod tests;
