//! `dump_list`: which models, and which operators of each.

use opscope_capture::{ModelSelection, OperatorSelection};

use super::object::{Cursor, Findings};

/// One entry: the model it is for, or every model, and the operators.
pub(super) type Entry = (Option<String>, OperatorSelection);

/// Keys of an entry that belong to other modes.
const OTHER: &[&str] = &[
    "watcher_nodes",
    "optype_blacklist",
    "opname_blacklist",
    "opname_range",
];

/// Checks the list and reads its entries.
///
/// With the operator switch on, an entry with an empty name or an empty layer list is skipped with a
/// warning; with the switch off it is an error.
pub(super) fn read(
    list: &Cursor<'_>,
    is_switch_on: bool,
    findings: &mut Findings,
) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    for item in list.array(findings)? {
        item.object(findings)?;
        for (name, place, _) in item.members() {
            if name != "model_name" && name != "layer" {
                let pointer = format!("{}/{name}", item.pointer());
                let message = if OTHER.contains(&name) {
                    "is not supported yet"
                } else {
                    "unknown key, not supported; an entry takes `model_name` and `layer`"
                };
                findings.push(crate::Severity::Error, None, &pointer, place, message);
            }
        }
        if findings.has_error() {
            return None;
        }
        let model = match item.member("model_name") {
            Some(name) => Some(name.string(findings)?),
            None => None,
        };
        let layer = match item.member("layer") {
            Some(layer) => Some(strings(&layer, findings)?),
            None => None,
        };
        let empty = [
            ("model_name", model.is_some_and(str::is_empty)),
            ("layer", layer.as_ref().is_some_and(Vec::is_empty)),
        ];
        match empty.iter().find(|(_, is_empty)| *is_empty) {
            Some((key, _)) if is_switch_on => {
                let message = format!("the entry has no effect: its `{key}` is empty");
                findings.warn(item.pointer(), item.place(), &message);
                continue;
            }
            Some((key, _)) => {
                let at = item.member(key)?;
                findings.error("EP0001", at.pointer(), at.place(), "the value is empty");
                return None;
            }
            None => {}
        }
        let operators = layer.map_or(OperatorSelection::every(), OperatorSelection::named);
        entries.push((model.map(str::to_owned), operators));
    }
    Some(entries)
}

/// What a non-empty list selects. Entries without a name apply to every model, the last of them
/// counts, and they put named entries out of effect. A list with no entry left selects everything.
pub(super) fn models(entries: Vec<Entry>) -> ModelSelection {
    let mut named = Vec::new();
    let mut common = None;
    for (model, operators) in entries {
        match model {
            Some(model) => named.push((model, operators)),
            None => common = Some(operators),
        }
    }
    match common {
        Some(operators) => ModelSelection::Every(operators),
        None if named.is_empty() => ModelSelection::Every(OperatorSelection::every()),
        None => ModelSelection::Named(named),
    }
}

fn strings(list: &Cursor<'_>, findings: &mut Findings) -> Option<Vec<String>> {
    let items = list.array(findings)?;
    items
        .iter()
        .map(|item| item.string(findings).map(str::to_owned))
        .collect()
}
