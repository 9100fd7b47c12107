//! Lowers settings that passed all checks to a plan.

use std::collections::HashMap;
use std::path::PathBuf;
use std::ptr;

use opscope_capture::{
    Exclusion, FailureDetail, ModelSelection, NameRange, OperatorRule, OperatorSelection, Plan,
    Purpose, SlotSides, Steps,
};
use opscope_store::file_format::stats_csv::StatsColumns;
use opscope_store::record::SlotSide;

use super::dump::{AclContent, AclDump, DumpMode};
use super::object::{IssueCollector, shown};
use super::raw::{RawBlacklistEntry, RawDump, RawList, RawModelEntry, RawText};
use super::settings::{AclSettings, DumpLevel, DumpScene};

/// Operators that a device never executes as such, so they leave no file: those that run other
/// graphs, and constants.
const NEVER_DUMPED: [&str; 4] = ["If", "Loop", "Scan", "Constant"];
/// Operators that a device turns into memory addresses, so they leave no file unless requested by
/// name: with ONNX's and the vendor's names.
const DATA_FLOW: [&str; 10] = [
    "Concat",
    "ConcatD",
    "ConcatV2",
    "ConcatV2D",
    "ConcatFromSequence",
    "Split",
    "SplitD",
    "SplitV",
    "SplitVD",
    "SplitToSequence",
];

/// A dump of failing operators. Nothing is excluded: every failure is worth a file.
pub(super) fn failures(detail: FailureDetail, places: Vec<PathBuf>) -> AclDump {
    AclDump {
        mode: DumpMode::Failures(detail),
        // Failing operators of every model are dumped, with every slot.
        plan: Plan {
            purpose: Purpose::Failures(detail),
            ..Plan::everything()
        },
        content: AclContent::Tensors,
        has_single_operators: true,
        places,
    }
}

/// A dump of overflowing operators.
///
/// The vendor's checker accepts an additional `dump_list`; no overflow of a model is found then.
pub(super) fn overflow(raw: &RawDump<'_>, place: PathBuf) -> AclDump {
    let models = match raw.list.as_ref().filter(|list| !list.is_empty()) {
        None => ModelSelection::Every(OperatorSelection::every()),
        // With the verdict of the vendor's checker, behaves like the vendor's library.
        Some(_) => ModelSelection::None,
    };
    AclDump {
        mode: DumpMode::Overflow,
        plan: Plan {
            purpose: Purpose::Overflow,
            models,
            excluded: never_dumped().collect(),
            ..Plan::everything()
        },
        content: AclContent::Tensors,
        has_single_operators: false,
        places: vec![place],
    }
}

/// A dump of values, watched or not; `None` if the file requests none.
pub(super) fn values(
    raw: &RawDump<'_>,
    settings: &AclSettings,
    steps: Steps,
    place: PathBuf,
    findings: &mut IssueCollector,
) -> Option<AclDump> {
    let is_watcher = settings.scene == Some(DumpScene::Watcher);
    let list = raw.list.as_ref().filter(|list| !list.is_empty());
    // Without a list and without the switch the file selects nothing.
    if list.is_none() && !settings.is_op_switch_on && !is_watcher {
        return single_operators(raw, settings, place, findings);
    }
    let entries = usable_entries(list, findings);
    let mut models = match list {
        None if is_watcher => {
            let message = "no operator is watched: there is no `dump_list` with `watcher_nodes`";
            findings.warn(raw.at.warning(message));
            ModelSelection::None
        }
        _ => models(&entries, findings),
    };
    if let (DumpLevel::Kernels, Some(level)) = (settings.level, &raw.level) {
        let message = "models leave no files with `kernel`, which selects only kernels";
        findings.warn(level.at.warning(message));
        models = ModelSelection::None;
    }
    // Blacklists of every entry count, whether or not the entry selects anything.
    let exclusions = entries.iter().flat_map(|entry| exclusions(entry, findings));
    let excluded = exclusions.collect::<Vec<_>>();
    Some(AclDump {
        mode: if is_watcher {
            DumpMode::Watcher
        } else {
            DumpMode::Operator
        },
        plan: Plan {
            purpose: if is_watcher {
                Purpose::Watch
            } else {
                Purpose::Values
            },
            models,
            excluded: excluded
                .into_iter()
                .chain(never_dumped())
                // Any operator may change a watched value.
                .chain(data_flow().filter(|_| !is_watcher))
                .collect(),
            sides: if is_watcher {
                SlotSides::Outputs
            } else {
                settings.sides
            },
            steps,
            // Data operators produce no files, according to the documentation.
            has_graph_inputs: false,
            has_parameters: false,
            has_constants: false,
            shows_quantising: false,
            n_overflows_max: None,
        },
        content: content(settings),
        has_single_operators: settings.is_op_switch_on,
        places: vec![place],
    })
}

/// A dump of operators outside models, which the documentation requests with an empty `dump_list`,
/// without mentioning `dump_op_switch`. The vendor's checker accepts that, and its library dumps
/// nothing.
fn single_operators(
    raw: &RawDump<'_>,
    settings: &AclSettings,
    place: PathBuf,
    findings: &mut IssueCollector,
) -> Option<AclDump> {
    let list = raw.list.as_ref().filter(|_| raw.op_switch.is_none())?;
    let message = "operators outside models are dumped, as documented for an empty list \
                   without `dump_op_switch`; AscendCL dumps nothing";
    findings.warn(list.at.note(message));
    Some(AclDump {
        mode: DumpMode::SingleOperators,
        plan: Plan {
            models: ModelSelection::None,
            sides: settings.sides,
            ..Plan::nothing()
        },
        content: content(settings),
        has_single_operators: true,
        places: vec![place],
    })
}

fn content(settings: &AclSettings) -> AclContent {
    if !settings.is_statistics {
        return AclContent::Tensors;
    }
    AclContent::Statistics(match &settings.columns {
        None => StatsColumns::Plain,
        Some(columns) => {
            let mut columns = columns.clone();
            // The file has each column once, in the vendor's order.
            columns.sort_unstable();
            columns.dedup();
            StatsColumns::Chosen(columns)
        }
    })
}

pub(super) fn never_dumped() -> impl Iterator<Item = Exclusion> {
    NEVER_DUMPED.iter().map(|op_type| Exclusion {
        model: None,
        operators: OperatorRule::Type((*op_type).to_owned()),
        slots: None,
    })
}

pub(super) fn data_flow() -> impl Iterator<Item = Exclusion> {
    DATA_FLOW.iter().map(|op_type| Exclusion {
        model: None,
        operators: OperatorRule::UnnamedOfType((*op_type).to_owned()),
        slots: None,
    })
}

/// The effective entries. With the switch on, an empty name or layer list is not an error: the
/// vendor skips the entry.
fn usable_entries<'r, 'a>(
    list: Option<&'r RawList<'a, RawModelEntry<'a>>>,
    findings: &mut IssueCollector,
) -> Vec<&'r RawModelEntry<'a>> {
    let mut entries = Vec::new();
    for entry in list.into_iter().flat_map(|list| &list.members) {
        let empty_name = entry.model_name.as_ref().filter(|name| name.is_empty());
        let empty_layer = entry.layer.as_ref().filter(|layer| layer.is_empty());
        let empty = empty_name.map(|name| &name.at);
        match empty.or(empty_layer.map(|layer| &layer.at)) {
            Some(at) => findings.warn(at.warning("the entry has no effect: this is empty")),
            None => entries.push(entry),
        }
    }
    entries
}

/// Returns the selected models. Of several entries for a model the last counts; an entry for every
/// model overrides entries for single ones; no entry means every model.
fn models(entries: &[&RawModelEntry<'_>], findings: &mut IssueCollector) -> ModelSelection {
    let mut last: HashMap<Option<&str>, &RawModelEntry<'_>> = HashMap::new();
    for entry in entries {
        last.insert(name_of(entry), entry);
    }
    let common = last.get(&None).copied();
    let mut named = Vec::new();
    for entry in entries {
        let name = name_of(entry);
        // Pointers are compared, because two entries may be equal.
        let last = last.get(&name).filter(|last| !ptr::eq(**last, *entry));
        // An entry for every model contradicts one for a single model; the vendor uses the former.
        if common.is_some() && name.is_some() {
            let message = "the entry selects nothing: another one has no `model_name` and is for \
                           every model";
            findings.warn(entry.at.warning(message));
        } else if let Some(last) = last {
            let message = format!(
                "the entry selects nothing: `{}` is for the same model and overrides it",
                last.at.item()
            );
            findings.warn(entry.at.warning(message));
        } else if let Some(name) = name {
            named.push((name.to_owned(), selection(entry)));
        }
    }
    match common {
        Some(entry) => ModelSelection::Every(selection(entry)),
        None if entries.is_empty() => ModelSelection::Every(OperatorSelection::every()),
        None => ModelSelection::Named(named),
    }
}

fn name_of<'r>(entry: &'r RawModelEntry<'_>) -> Option<&'r str> {
    entry.model_name.as_ref().map(|name| name.value)
}

fn texts(list: &RawList<'_, RawText<'_>>) -> Vec<String> {
    list.members.iter().map(|text| text.value.into()).collect()
}

fn selection(entry: &RawModelEntry<'_>) -> OperatorSelection {
    let ranges = entry.opname_range.iter().flat_map(|list| &list.members);
    OperatorSelection {
        names: entry.layer.as_ref().map(texts),
        ranges: ranges
            .map(|range| {
                let [begin, end] = [&range.begin, &range.end]
                    .map(|text| text.as_ref().map_or("", |text| text.value).to_owned());
                NameRange { begin, end }
            })
            .collect(),
        watched: entry.watcher_nodes.as_ref().map(texts).unwrap_or_default(),
        kernels: None,
    }
}

/// The tensors that an entry's blacklists exclude. They count even if the entry selects nothing.
fn exclusions(entry: &RawModelEntry<'_>, findings: &mut IssueCollector) -> Vec<Exclusion> {
    let model = entry.model_name.as_ref().map(|name| name.value.to_owned());
    let by_type = (&entry.optype_blacklist, true);
    let by_name = (&entry.opname_blacklist, false);
    let mut exclusions = Vec::new();
    for (list, is_type) in [by_type, by_name] {
        for excluded in list.iter().flat_map(|list| &list.members) {
            let name = excluded.name.as_ref().map_or("", |name| name.value);
            let slots = slots(excluded, findings);
            // The vendor silently accepts such an entry and excludes nothing, which cannot be
            // intended.
            if name.is_empty() || slots.is_empty() {
                let message = "this excludes nothing: it needs a `name`, and `pos` with tensors";
                findings.warn(excluded.at.warning(message));
                continue;
            }
            let name = name.to_owned();
            exclusions.push(Exclusion {
                model: model.clone(),
                operators: if is_type {
                    OperatorRule::Type(name)
                } else {
                    OperatorRule::Name(name)
                },
                slots: Some(slots),
            });
        }
    }
    exclusions
}

fn slots(
    excluded: &RawBlacklistEntry<'_>,
    findings: &mut IssueCollector,
) -> Vec<(SlotSide, usize)> {
    let mut slots = Vec::new();
    for text in excluded.pos.iter().flat_map(|list| &list.members) {
        match slot(text.value) {
            Some(slot) => slots.push(slot),
            None => {
                let message = format!(
                    "`{}` excludes nothing, expected `input` or `output` and a number, such as \
                     `input0`",
                    shown(text.value)
                );
                findings.warn(text.at.warning(message));
            }
        }
    }
    slots
}

/// `input0`, `output12`. Numbers beyond the range of tensors are invalid.
fn slot(text: &str) -> Option<(SlotSide, usize)> {
    let (side, number) = match text.strip_prefix("input") {
        Some(number) => (SlotSide::Input, number),
        None => (SlotSide::Output, text.strip_prefix("output")?),
    };
    // `parse` alone would accept a sign.
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| Some((side, number.parse().ok()?)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions() {
        for (text, expected) in [
            ("input0", Some((SlotSide::Input, 0))),
            ("output012", Some((SlotSide::Output, 12))),
            ("input", None),
            ("in0", None),
            ("input-1", None),
            ("input+1", None),
            ("Input0", None),
            ("input0 ", None),
            ("input99999999999999999999", None),
        ] {
            assert_eq!(slot(text), expected, "{text:?}");
        }
    }
}
