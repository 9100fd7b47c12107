//! Explains a configuration in plain words.

use std::ops::RangeInclusive;

use opscope_capture::{
    Exclusion, FailureDetail, ModelSelection, OperatorRule, OperatorSelection, Purpose, SlotSides,
};
use opscope_store::file_format::stats_csv::{StatsColumn, StatsColumns};
use opscope_store::tree::acl::{FAILURE_DIR, MODEL_FILE, SINGLE_FILE};

use super::dump::{AclConfig, AclContent, AclDump, DumpMode};
use super::object::shown;
use super::settings::column_word;
use super::surroundings::{asking_variable, failures_in_force};
use crate::ConfigEnvironment;
use crate::dialect::explanation::{Explanation, list, list_ranges};

/// Describes the dump of a process in this environment: its contents, form and directory. Keys
/// without effect are among the configuration's issues.
pub fn explain(config: &AclConfig, env: &ConfigEnvironment) -> Explanation {
    let of_file = config.dump.as_ref();
    let of_variable = asking_variable(env).map(|(variable, _)| variable);
    let failures = failures_in_force(of_file, env);
    // Only one dump of failures is in force in a process: the first that can be written.
    let is_failures = of_file.is_none_or(|dump| matches!(dump.mode, DumpMode::Failures(_)));
    let Some(dump) = of_file.filter(|_| !is_failures).or(failures.first()) else {
        return Explanation {
            summary: "Nothing is dumped.".to_owned(),
            rows: Vec::new(),
        };
    };
    let mut rows = Vec::new();
    if let Some(variable) = of_variable.filter(|_| is_failures) {
        rows.push((
            "asked for by",
            format!("`{variable}`, which precedes the file"),
        ));
    }
    selection(dump, &mut rows);
    left_out(&dump.plan.excluded, &mut rows);
    rows.push(("sides", sides(dump).to_owned()));
    if dump.mode != DumpMode::SingleOperators {
        rows.push(("steps", steps(dump.plan.steps.ranges())));
    }
    rows.push(("form", form(dump)));
    places(dump, &mut rows);
    if let (Some(variable), Some(failures)) = (of_variable, failures.first())
        && !is_failures
    {
        let text = format!("dumped too, because of `{variable}`");
        rows.push(("operators that fail", text));
        places(failures, &mut rows);
    }
    Explanation {
        summary: summary(dump).to_owned(),
        rows,
    }
}

fn summary(dump: &AclDump) -> &'static str {
    if dump.plan.models == ModelSelection::None && !dump.has_single_operators {
        return "Nothing is dumped.";
    }
    match dump.mode {
        DumpMode::Operator => match dump.plan.sides {
            SlotSides::Inputs => "Operators' inputs are dumped.",
            SlotSides::Outputs => "Operators' outputs are dumped.",
            SlotSides::Both => "Operators' inputs and outputs are dumped.",
        },
        DumpMode::SingleOperators => "Only operators outside models are dumped.",
        DumpMode::Watcher => {
            "Outputs of watched operators are dumped when they are produced, and again after other \
             operators, to show which of these overwrites them."
        }
        DumpMode::Overflow => {
            "Operators whose arithmetic overflows are dumped, each with a record of the overflow."
        }
        DumpMode::Failures(FailureDetail::Brief) => {
            "Operators that fail are dumped with their inputs and outputs."
        }
        DumpMode::Failures(FailureDetail::Normal) => {
            "Operators that fail are dumped with their inputs and outputs, with names, types, shapes, \
             layouts and attributes."
        }
        DumpMode::Failures(FailureDetail::Full) => {
            "Operators that fail are dumped with their inputs and outputs, with names, types, shapes, \
             layouts, attributes and a backtrace."
        }
    }
}

fn selection(dump: &AclDump, rows: &mut Vec<(&'static str, String)>) {
    let purpose = dump.plan.purpose;
    match &dump.plan.models {
        ModelSelection::None => rows.push(("models", "none".to_owned())),
        ModelSelection::Every(rule) => {
            rows.push(("models", "every model".to_owned()));
            operators(purpose, rule, rows);
        }
        ModelSelection::Named(rules) => {
            for (name, rule) in rules {
                rows.push((
                    "model",
                    format!("`{}`, by file name or by the graph's name", shown(name)),
                ));
                operators(purpose, rule, rows);
            }
        }
    }
    if matches!(dump.mode, DumpMode::Operator | DumpMode::SingleOperators) {
        let text = if dump.mode == DumpMode::SingleOperators {
            "dumped"
        } else if dump.has_single_operators {
            "dumped too"
        } else {
            "not dumped"
        };
        rows.push(("operators outside models", text.to_owned()));
    }
}

fn operators(purpose: Purpose, rule: &OperatorSelection, rows: &mut Vec<(&'static str, String)>) {
    let subject = if purpose == Purpose::Watch {
        rows.push(("watched", names(&rule.watched)));
        "looked at after"
    } else {
        "operators"
    };
    if rule.is_every() {
        rows.push((subject, "every operator".to_owned()));
    }
    if let Some(listed) = &rule.names {
        rows.push((subject, names(listed)));
    }
    for range in &rule.ranges {
        let (begin, end) = (shown(&range.begin), shown(&range.end));
        let text = format!("from `{begin}` to `{end}`, in order of execution");
        rows.push((subject, text));
    }
}

fn left_out(excluded: &[Exclusion], rows: &mut Vec<(&'static str, String)>) {
    let mut whole = Vec::new();
    let mut unnamed = Vec::new();
    for exclusion in excluded {
        let operators = match &exclusion.operators {
            OperatorRule::Name(name) => format!("operator `{}`", shown(name)),
            OperatorRule::Type(name) => format!("operators of type `{}`", shown(name)),
            OperatorRule::UnnamedOfType(name) => {
                unnamed.push(format!("`{}`", shown(name)));
                continue;
            }
        };
        let of_model = match &exclusion.model {
            Some(model) => format!(" of model `{}`", shown(model)),
            None => String::new(),
        };
        let Some(slots) = &exclusion.slots else {
            whole.push(format!("{operators}{of_model}"));
            continue;
        };
        let slots = slots
            .iter()
            .map(|(side, index)| format!("{}.{index}", side.name()));
        let slots = list(&slots.collect::<Vec<_>>());
        rows.push(("left out", format!("{slots} of {operators}{of_model}")));
    }
    if !whole.is_empty() {
        rows.push(("left out", list(&whole)));
    }
    if !unnamed.is_empty() {
        let text = format!(
            "operators of types {} that are not named here",
            list(&unnamed)
        );
        rows.push(("left out", text));
    }
}

fn sides(dump: &AclDump) -> &'static str {
    match (dump.mode, dump.plan.sides) {
        (DumpMode::Overflow | DumpMode::Failures(_), _)
        | (DumpMode::Operator | DumpMode::SingleOperators, SlotSides::Both) => "inputs and outputs",
        (DumpMode::Watcher, _)
        | (DumpMode::Operator | DumpMode::SingleOperators, SlotSides::Outputs) => "outputs",
        (DumpMode::Operator | DumpMode::SingleOperators, SlotSides::Inputs) => "inputs",
    }
}

fn steps(ranges: Option<&[RangeInclusive<u64>]>) -> String {
    match ranges {
        None => "every execution of a model".to_owned(),
        Some(ranges) => format!("executions {} (they count from 0)", list_ranges(ranges)),
    }
}

fn form(dump: &AclDump) -> String {
    let columns = match &dump.content {
        AclContent::Tensors => return "whole tensors, one file for each operator".to_owned(),
        AclContent::StepTable => return "statistics, one table for each step".to_owned(),
        AclContent::Statistics(columns) | AclContent::Both(columns) => columns,
    };
    // A plain dump of statistics has the vendor's default columns for a missing `dump_stats`.
    let columns = match columns {
        StatsColumns::Plain => {
            use StatsColumn::{Average, Max, Min, NanCount, NegativeInfCount, PositiveInfCount};
            vec![
                Max,
                Min,
                Average,
                NanCount,
                NegativeInfCount,
                PositiveInfCount,
            ]
        }
        StatsColumns::Chosen(columns) => columns.clone(),
    };
    let words: Vec<&str> = columns.into_iter().map(column_word).collect();
    format!(
        "statistics, one CSV file for each operator: the number of elements and {}",
        words.join(", ")
    )
}

fn places(dump: &AclDump, rows: &mut Vec<(&'static str, String)>) {
    let suffix = match dump.content {
        AclContent::Tensors | AclContent::Both(_) | AclContent::StepTable => "",
        AclContent::Statistics(_) => ".csv",
    };
    let places = dump.places.iter().enumerate();
    for (i, place) in places {
        let place = place.display();
        let subject = if i == 0 { "files" } else { "or, if that fails" };
        if matches!(dump.mode, DumpMode::Failures(_)) {
            rows.push((subject, format!("{place}/{FAILURE_DIR}")));
            continue;
        }
        if dump.plan.models != ModelSelection::None {
            rows.push((subject, format!("{place}/{MODEL_FILE}{suffix}")));
        }
        if dump.has_single_operators {
            let text = format!("{place}/{SINGLE_FILE}{suffix} for operators outside models");
            rows.push((subject, text));
        }
    }
}

fn names(names: &[String]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", shown(name)))
        .collect();
    list(&quoted)
}
